"""What if: the same failures with other groups, restarts, checkpoints, detection, spares.

    published = Scenario(groups=12, mtbf_s=1080, arrivals="periodic", stall_s=180, restart_s=600)
    result = simulate(published)
    result.isolated.ett_capacity.mean      # 0.801
    result.synchronous.ett_capacity.mean   # 0.444

Monte Carlo with a seed (`simulate`), a given list of failures (`replay`), or a curve for a slider
(`curve`). Each answer stands beside its synchronous twin under the same failures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rankscope.analytics.accounting import CATEGORIES, account
from rankscope.analytics.scenario import DAY_S, Arrivals, Failures, Floats, Scenario, draw
from rankscope.analytics.windows import Ns
from rankscope.ingest.vocabulary import LedgerCategory

__all__ = ["Arrivals", "Band", "Failures", "Outcome", "Over", "Point", "Result", "Scenario", "curve",
           "replay", "simulate"]  # fmt: skip

Over = Literal["mtbf", "groups", "checkpoint", "restart", "detection", "size"]

_RUNS_AT_ONCE = 32
_FAILURES_AT_ONCE = 100_000  # keeps the arrays of a chunk within the cache, or at least the memory
_CURVE_RUNS = 8
_CURVE_FAILURES = 300  # of each run
_NORMAL_P95 = 1.6449


@dataclass(frozen=True, slots=True)
class Band:
    """A ratio over runs: mean and percentiles."""

    mean: float
    p5: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one way of running made of the failures.

    The ledger is in group-nanoseconds over all runs and adds up to ledger_total_ns exactly.
    """

    ett_capacity: Band  # productive ÷ all
    ett_time: Band  # productive ÷ (all − absent)
    ledger_ns: dict[LedgerCategory, int]
    ledger_total_ns: int

    def share(self, category: LedgerCategory) -> float:
        """Part of all group-time that went there."""
        return self.ledger_ns[category] / self.ledger_total_ns


@dataclass(frozen=True, slots=True)
class Result:
    """A scenario's outcome beside that of its synchronous twin."""

    scenario: Scenario
    runs: int
    failures: float  # in a run, on average
    isolated: Outcome
    synchronous: Outcome

    @property
    def gpu_hours_gained_per_day(self) -> float:
        """GPU-hours a day that isolation gives back."""
        gain = self.isolated.ett_capacity.mean - self.synchronous.ett_capacity.mean
        return gain * self.scenario.gpus * 24


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a curve, and what it gives. Bands are those of a run of the scenario's length."""

    value: float
    isolated: Band
    synchronous: Band
    ett_time: Band  # of the isolated one


def simulate(scenario: Scenario, runs: int = 1000, seed: int = 0) -> Result:
    """Monte Carlo: `runs` runs of scenario.days, the same ones for the same seed.

    Periodic arrivals leave nothing to chance, so one run stands for all of them.
    """
    if runs < 1:
        raise ValueError("runs must be at least 1")
    if scenario.arrivals == "periodic":
        runs = 1
    together = int(np.clip(_FAILURES_AT_ONCE * scenario.mtbf_s / scenario.horizon_s, 1, _RUNS_AT_ONCE))
    parts = [range(first, min(first + together, runs)) for first in range(0, runs, together)]
    return _result(scenario, parts, lambda part: draw(scenario, part, seed))


def replay(scenario: Scenario, failures: Failures) -> Result:
    """The outcome under given failures: one run's (1-D), or many runs' (runs × n)."""
    runs = failures.as_runs()
    parts = [range(first, first + _RUNS_AT_ONCE) for first in range(0, len(runs.time_s), _RUNS_AT_ONCE)]
    return _result(scenario, parts, lambda part: runs.rows(part.start, len(part)))


def curve(scenario: Scenario, over: Over, points: Sequence[float], seed: int = 0) -> list[Point]:
    """Outcomes along one parameter, fast enough for a slider.

    A few short runs with the same random numbers at every point: curves are smooth, and means within about
    a point of `simulate`'s. Bands are scaled from the short runs' spread to scenario.days. Where spare hosts
    can run out, runs have their full length (and are fewer), since that takes its time.

    Args:
        over: `mtbf`, `checkpoint`, `restart`, `detection` in seconds; `groups`; `size` in GPUs, where MTBF
            goes as 1/size and a group keeps its size.
    """
    return [_point(value, _with(scenario, over, value), seed) for value in points]


def _point(value: float, scenario: Scenario, seed: int) -> Point:
    days, runs = min(scenario.days, _CURVE_FAILURES * scenario.mtbf_s / DAY_S), _CURVE_RUNS
    if scenario.spare_hosts is not None:
        runs = int(np.clip(runs * days / scenario.days, 2, runs))
        days = scenario.days
    if scenario.arrivals == "periodic":
        runs = 1
    short = replace(scenario, days=days)
    failures = draw(short, range(runs), seed)
    scale = float(np.sqrt(days / scenario.days))
    capacity, time = _ratios(account(short, failures))
    twin, _ = _ratios(account(short.synchronous(), failures))
    return Point(value, _scaled(capacity, scale), _scaled(twin, scale), _scaled(time, scale))


def _scaled(values: Floats, scale: float) -> Band:
    mean = float(values.mean())
    half = _NORMAL_P95 * scale * float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Band(mean, max(0.0, mean - half), mean, min(1.0, mean + half))


def _with(scenario: Scenario, over: Over, value: float) -> Scenario:
    if over == "mtbf":
        return replace(scenario, mtbf_s=value)
    if over == "groups":
        return replace(scenario, groups=round(value), least_groups=min(scenario.least_groups, round(value)))
    if over == "checkpoint":
        return replace(scenario, checkpoint_interval_s=value)
    if over == "restart":
        own = scenario.group_restart_s
        scaled = None if own is None else own * value / scenario.restart_s if scenario.restart_s else value
        return replace(scenario, restart_s=value, group_restart_s=scaled)
    if over == "detection":
        return replace(scenario, detect_s=value)
    if over == "size":
        groups = max(1, round(scenario.groups * value / scenario.gpus))
        return replace(
            scenario,
            gpus=round(value),
            groups=groups,
            least_groups=min(scenario.least_groups, groups),
            mtbf_s=scenario.mtbf_s * scenario.gpus / value,
        )
    raise ValueError(f"there is no curve over {over!r}")


def _result(scenario: Scenario, parts: list[range], failures_of: Callable[[range], Failures]) -> Result:
    twin = scenario.synchronous()

    def run(part: range) -> tuple[list[int], dict[LedgerCategory, Ns], dict[LedgerCategory, Ns]]:
        failures = failures_of(part)
        counts: list[int] = (failures.time_s < scenario.horizon_s).sum(axis=1).tolist()
        return counts, account(scenario, failures), account(twin, failures)

    counts: list[int] = []
    isolated, synchronous = _Sum(), _Sum()
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # sorting and searching leave the lock alone
        for count, ledger, twin_ledger in threads.map(run, parts):
            counts += count
            isolated.add(ledger)
            synchronous.add(twin_ledger)
    return Result(scenario, len(counts), sum(counts) / len(counts), isolated.outcome(), synchronous.outcome())


class _Sum:
    """Ledgers of many runs, chunk by chunk."""

    def __init__(self) -> None:
        self.ledger_ns = dict.fromkeys(CATEGORIES, 0)
        self.capacity: list[Floats] = []
        self.time: list[Floats] = []

    def add(self, ledger: dict[LedgerCategory, Ns]) -> None:
        capacity, time = _ratios(ledger)
        self.capacity.append(capacity)
        self.time.append(time)
        for category, ns in ledger.items():
            self.ledger_ns[category] += sum(ns.tolist())  # Python's integers: all runs may pass 2**63

    def outcome(self) -> Outcome:
        return Outcome(
            _band(np.concatenate(self.capacity)),
            _band(np.concatenate(self.time)),
            self.ledger_ns,
            sum(self.ledger_ns.values()),
        )


def _ratios(ledger: dict[LedgerCategory, Ns]) -> tuple[Floats, Floats]:
    """ett_capacity and ett_time of each run, as METRICS defines them."""
    total = np.sum(list(ledger.values()), axis=0)
    productive = ledger[LedgerCategory.PRODUCTIVE]
    there = total - ledger[LedgerCategory.ABSENT]
    return productive / total, productive / np.maximum(there, 1)


def _band(values: Floats) -> Band:
    p5, p50, p95 = np.percentile(values, [5, 50, 95])
    return Band(float(values.mean()), float(p5), float(p50), float(p95))
