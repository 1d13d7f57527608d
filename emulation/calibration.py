"""Fits to the published points: few free parameters, and the error on the points that were held out.

The baseline has one: the time p of one AllGather round (size, then data). Its other terms are known from
source: 1 ms of stagger a rank, two loops over pairs of ranks, five one-way AllGathers. p comes from 8K and
32K GPUs, and 96K is predicted. NCCLX has two, a fixed part and a time a rank; three points with a falling
cost a step lie on no simple law, so its error is shown, whichever point is held out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from rankscope.analytics.init_law import Law, fit_law
from rankscope.emulation import published
from rankscope.emulation.model.costs import Costs
from rankscope.emulation.published import Point

BASELINE_ALLGATHERS = 5  # world-size AllGathers of NCCL 2.20 to 2.22


@dataclass(frozen=True)
class Checked:
    """A published point beside what a fit says of it."""

    point: Point
    predicted_s: float
    held_out: bool

    @property
    def error_ratio(self) -> float:
        """(predicted - published) / published."""
        return self.predicted_s / self.point.seconds - 1


@dataclass(frozen=True)
class Fit:
    """A series, its law in words, its fitted parameters, and every point checked."""

    series: str
    law: str
    parameters: dict[str, float]
    checked: tuple[Checked, ...]
    growth: str
    note: str = ""

    def held_out(self) -> tuple[Checked, ...]:
        return tuple(c for c in self.checked if c.held_out)

    def as_dict(self) -> dict[str, Any]:
        return {
            "series": self.series,
            "law": self.law,
            "parameters": self.parameters,
            "growth": self.growth,
            "note": self.note,
            "points": [
                {
                    "ranks": c.point.ranks,
                    "published_s": c.point.seconds,
                    "predicted_s": c.predicted_s,
                    "error_ratio": c.error_ratio,
                    "held_out": c.held_out,
                    "source": c.point.source,
                    "level": c.point.level,
                }
                for c in self.checked
            ],
        }


def loops_s(ranks: int) -> float:
    """Both loops over pairs of ranks, in seconds."""
    return (published.RING_LOOP.value + published.TRANSPORT_LOOP.value) * ranks**2


def baseline_s(ranks: int, round_s: float) -> float:
    """Start of the baseline: stagger, loops, five one-way AllGathers of N - 1 rounds."""
    return published.STAGGER.value * ranks + loops_s(ranks) + BASELINE_ALLGATHERS * (ranks - 1) * round_s


def round_at(point: Point) -> float:
    """The time of an AllGather round that makes the baseline's law meet `point`."""
    rest = point.seconds - baseline_s(point.ranks, 0.0)
    return rest / (BASELINE_ALLGATHERS * (point.ranks - 1))


@cache
def fit_baseline() -> Fit:
    """p as the mean of what the calibration points give."""
    points = published.series(published.BASELINE)
    round_s = float(np.mean([round_at(p) for p in points if p.calibrates]))
    seconds = [baseline_s(p.ranks, round_s) for p in points]
    growth = growth_exponent(points[-2].ranks, points[-1].ranks, seconds[-2], seconds[-1])
    measured = growth_exponent(points[-2].ranks, points[-1].ranks, points[-2].seconds, points[-1].seconds)
    return Fit(
        published.BASELINE,
        "1 ms·N + loops·N² + 5 (N - 1)·p",
        {"round_s": round_s, "loops_s_at_98304": loops_s(98_304)},
        _check(points, lambda n: baseline_s(n, round_s)),
        f"N^{growth:.2f} from {points[-2].ranks:,} to {points[-1].ranks:,} ranks; published N^{measured:.2f}",
    )


def fit_line(name: str, note: str = "") -> Fit:
    """fixed + a·N through a series' calibration points (least relative squares)."""
    points = published.series(name)
    used = [p for p in points if p.calibrates]
    fixed, per_rank = _line(used)
    low, high = points[-2], points[-1]
    growth = growth_exponent(
        low.ranks, high.ranks, fixed + per_rank * low.ranks, fixed + per_rank * high.ranks
    )
    return Fit(
        name, "fixed + a·N", {"fixed_s": fixed, "a_s": per_rank},
        _check(points, lambda n: fixed + per_rank * n),
        f"N^{growth:.2f} from {low.ranks:,} to {high.ranks:,} ranks", note,
    )  # fmt: skip


def fit_ncclx() -> Fit:
    """NCCLX's three points: a line through two, and what it makes of the third."""
    points = published.series(published.NCCLX)
    left_out = []
    for point in points:
        fixed, per_rank = _line([p for p in points if p is not point])
        left_out.append(f"{point.ranks:,} {(fixed + per_rank * point.ranks) / point.seconds - 1:+.0%}")
    steps = ", ".join(f"{p.seconds / (1.5 * p.ranks) * 1e6:.0f}" for p in points)
    return fit_line(
        published.NCCLX,
        f"a step (T / 1.5 N) costs {steps} µs: it falls with N, so no simple law meets all three; "
        f"each left out in turn: {', '.join(left_out)}",
    )


def fit_ft_hsdp() -> Fit:
    """a·N + b·N² through the smallest and the largest point."""
    points = published.series(published.FT_HSDP)
    used = [p for p in points if p.calibrates]
    matrix = np.array([[p.ranks, p.ranks**2] for p in used], dtype=float)
    a, b = np.linalg.solve(matrix, [p.seconds for p in used])
    share = loops_s(98_304) / (b * 98_304**2)
    return Fit(
        published.FT_HSDP, "a·N + b·N²", {"a_s": float(a), "b_s": float(b)},
        _check(points, lambda n: float(a * n + b * n**2)),
        "O(N²) at the largest size", f"the two known loops explain {share:.0%} of the quadratic term",
    )  # fmt: skip


def fit_store() -> Fit:
    """A fixed cost a client, from 4K clients: 96K misses it, so the cost of a connection grows with load."""
    points = published.series(published.STORE)
    per_client = points[0].seconds / points[0].ranks
    missed = points[-1].seconds / (per_client * points[-1].ranks)
    return Fit(
        published.STORE,
        "a·N",
        {"a_s": per_client},
        _check(points, lambda n: per_client * n),
        "O(N), and worse",
        f"96K clients take {missed:.1f} times what this law says",
    )


def fit_gloo(name: str) -> Fit:
    """a·N^k through the two smaller points."""
    points = published.series(name)
    first, second = [p for p in points if p.calibrates]
    power = growth_exponent(first.ranks, second.ranks, first.seconds, second.seconds)
    return Fit(
        name, "a·N^k", {"a_s": first.seconds / first.ranks**power, "k": power},
        _check(points, lambda n: first.seconds * (n / first.ranks) ** power), f"N^{power:.2f}",
    )  # fmt: skip


def all_fits() -> list[Fit]:
    """Every series that can be checked against a law."""
    return [
        fit_baseline(), fit_ncclx(), fit_ft_hsdp(), fit_store(),
        fit_gloo(published.GLOO_BEFORE), fit_gloo(published.GLOO_AFTER),
    ]  # fmt: skip


def growth_exponent(few: int, many: int, few_s: float, many_s: float) -> float:
    """k in t ~ N^k between two sizes."""
    return float(np.log(many_s / few_s) / np.log(many / few))


def law_of(points: Sequence[tuple[int, float]]) -> Law:
    """a + b·N + c·N² of (ranks, seconds), for curves shown beside real runs."""
    return fit_law([n for n, _ in points], [t for _, t in points])


def published_costs() -> Costs:
    """Costs of a cluster: what the published points give, the rest read in source or assumed, and said so."""
    half = fit_baseline().parameters["round_s"] / 2
    return Costs(
        name="published",
        hop_s=half,
        connect_s=2 * half,
        accept_s=half,
        reply_s=2 * half,
        store_accept_s=30e-6,
        store_op_s=5e-6,
        store_key_s=1e-6,
        store_trip_s=half,
        bytes_per_s=10e9 / 8,
        ring_pair_s=published.RING_LOOP.value,
        transport_pair_s=published.TRANSPORT_LOOP.value,
        fixed_s=0.37,
        sources={
            "hop_s": "half of an AllGather round fitted to the NCCL baseline at 8K and 32K GPUs",
            "connect_s": "a round trip, twice hop_s",
            "accept_s": "the root waits for each rank's message, as hop_s",
            "reply_s": "the root opens a connection, as connect_s; with accept_s 5,700 ranks a second, "
            "and NCCL since 2.23 holds ranks back to 7,000",
            "store_accept_s": "assumed: not measured",
            "store_op_s": "assumed: one client on loopback was seen to set 130,000 to 390,000 keys a second",
            "store_key_s": "assumed: multi_set on loopback was seen to take about a million keys a second",
            "store_trip_s": "as hop_s",
            "bytes_per_s": "10 Gb/s a host, the network that bootstraps of Meta's CPU emulation shared",
            "ring_pair_s": published.RING_LOOP.source,
            "transport_pair_s": published.TRANSPORT_LOOP.source,
            "fixed_s": "NCCL_DEBUG=INFO of 2 ranks: 0.37 s of which bootstrap 0.00",
        },
    )


def _line(points: Sequence[Point]) -> tuple[float, float]:
    """(fixed, a) of fixed + a·N, least relative squares."""
    weights = np.array([1 / p.seconds for p in points])
    matrix = np.array([[1.0, p.ranks] for p in points]) * weights[:, None]
    fixed, per_rank = np.linalg.lstsq(matrix, np.ones(len(points)), rcond=None)[0]
    return float(fixed), float(per_rank)


def _check(points: Sequence[Point], law: Callable[[int], float]) -> tuple[Checked, ...]:
    return tuple(Checked(p, law(p.ranks), not p.calibrates) for p in points)
