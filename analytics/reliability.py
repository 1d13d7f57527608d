"""How often things fail: mean time to failure with its interval, by size, by host, and in storms.

mttf(failures=10, exposure_h=100)                        # 10 h, between 5.44 and 20.85
mttf_by_size(sizes=[256, 2048], failures=[3, 11], hours=[1000, 600])
repeat_offenders(["a", "b"], failures=[9, 0], exposure=[30, 30])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from rankscope.analytics.interval import Interval

Correction = Literal["holm", "bh"]


@dataclass(frozen=True, slots=True)
class Mttf:
    """Mean time to failure in hours; `value` is None where nothing failed, `high` infinite then."""

    failures: int
    exposure_h: float
    value: float | None
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class SizeLaw:
    """Failure rate against size over many runs.

    `per_node_day` assumes the law rate = r·N (so MTTF ∝ 1/N); `exponent` is what the runs themselves say
    about the power of N, and `follows` whether 1 lies within its interval. The exponent is None where all
    runs have one size or nothing failed.
    """

    per_node_day: Interval
    exponent: Interval | None
    follows: bool | None

    def mttf_h(self, nodes: float) -> Interval:
        """MTTF in hours of a job of that many nodes."""
        value, low, high = self.per_node_day.value, self.per_node_day.low, self.per_node_day.high

        def hours(rate: float) -> float:
            return float("inf") if rate == 0 else 24 / (nodes * rate)

        return Interval(hours(value), hours(high), hours(low))


@dataclass(frozen=True, slots=True)
class Offender:
    """A host, and how surprising its failures are if all hosts fail alike."""

    host: str
    failures: int
    expected: float
    p: float
    p_corrected: float
    correction: Correction
    flagged: bool


def expected_mttf_h(nodes: float, failures_per_node_day: float) -> float:
    """MTTF = 24/(N·r_f) hours (arXiv 2410.21680)."""
    if nodes <= 0 or failures_per_node_day <= 0:
        raise ValueError("nodes and failures_per_node_day must be positive")
    return 24 / (nodes * failures_per_node_day)


def mttf(failures: int, exposure_h: float, confidence: float = 0.95) -> Mttf:
    """MTTF of a time-terminated observation: [2T/χ²(1−α/2, 2n+2), 2T/χ²(α/2, 2n)]."""
    if failures < 0 or exposure_h <= 0 or not 0 < confidence < 1:
        raise ValueError("failures must be ≥ 0, exposure_h > 0 and confidence between 0 and 1")
    tail = (1 - confidence) / 2
    low = 2 * exposure_h / float(stats.chi2.ppf(1 - tail, 2 * failures + 2))
    if failures == 0:
        return Mttf(0, exposure_h, None, low, float("inf"), confidence)
    high = 2 * exposure_h / float(stats.chi2.ppf(tail, 2 * failures))
    return Mttf(failures, exposure_h, exposure_h / failures, low, high, confidence)


def failures_per_1000_node_days(failures: int, node_days: float, confidence: float = 0.95) -> Interval:
    """Failures per 1,000 node-days, with the exact Poisson interval (the same χ² as MTTF's)."""
    bounds = mttf(failures, node_days, confidence)  # any unit of exposure will do
    return Interval(1000 * failures / node_days, 1000 / bounds.high, 1000 / bounds.low)


def mttf_by_size(
    sizes: Sequence[float], failures: Sequence[int], hours: Sequence[float], confidence: float = 0.95
) -> SizeLaw:
    """Fit the 1/N law over runs: nodes, failures and hours of each.

    Under the law all node-days are alike, so r is pooled (and exact). The exponent b of rate = r·N^b is
    fitted by Poisson likelihood; its interval is the set that a likelihood-ratio test does not reject.
    """
    size, count, time = (np.asarray(column, dtype=float) for column in (sizes, failures, hours))
    if not len(size) == len(count) == len(time) or len(size) == 0:
        raise ValueError("sizes, failures and hours must have one value a run each, at least one run")
    if (size <= 0).any() or (time <= 0).any() or (count < 0).any():
        raise ValueError("sizes and hours must be positive, failures not negative")
    pooled = failures_per_1000_node_days(int(count.sum()), float(size @ time) / 24, confidence)
    law = Interval(pooled.value / 1000, pooled.low / 1000, pooled.high / 1000)
    if count.sum() == 0 or np.unique(size).size == 1:
        return SizeLaw(law, None, None)
    exponent = _exponent(np.log(size / size.min()), count, time, confidence)
    return SizeLaw(law, exponent, exponent.low <= 1 <= exponent.high)


def repeat_offenders(
    hosts: Sequence[str],
    failures: Sequence[int],
    exposure: Sequence[float],
    *,
    correction: Correction = "holm",
    alpha: float = 0.05,
) -> list[Offender]:
    """Hosts with more failures than chance explains, most surprising first; all hosts are returned.

    If all hosts fail at one rate then, given n failures in all, a host with share s of the exposure has
    Binomial(n, s) of them whatever that rate is: exact for unequal exposures, nothing to estimate.
    p is the chance of at least as many. `holm` bounds the chance of naming any innocent host by alpha,
    `bh` the expected share of innocent ones among those named.
    """
    count = np.asarray(failures, dtype=np.int64)
    time = np.asarray(exposure, dtype=float)
    if not len(hosts) == len(count) == len(time):
        raise ValueError("hosts, failures and exposure must be equally long")
    if (count < 0).any() or (time < 0).any() or (count[time == 0] > 0).any():
        raise ValueError("failures and exposure must not be negative, and a failure needs exposure")
    if len(hosts) == 0 or time.sum() == 0:
        return []
    share = time / time.sum()
    p = np.where(count > 0, stats.binom.sf(count - 1, count.sum(), share), 1.0)
    corrected = corrected_p(p, correction)
    expected = count.sum() * share
    return [
        Offender(
            hosts[i],
            int(count[i]),
            float(expected[i]),
            float(p[i]),
            float(corrected[i]),
            correction,
            bool(corrected[i] <= alpha),
        )
        for i in np.argsort(p, kind="stable")
    ]


def corrected_p(p: npt.NDArray[np.float64], correction: Correction) -> npt.NDArray[np.float64]:
    """p-values corrected for their number: Holm (family-wise) or Benjamini–Hochberg (false discoveries)."""
    order = np.argsort(p, kind="stable")
    number = len(p)
    if correction == "holm":
        raised = np.maximum.accumulate(p[order] * (number - np.arange(number)))
    elif correction == "bh":
        raised = np.minimum.accumulate((p[order] * number / np.arange(1, number + 1))[::-1])[::-1]
    else:
        raise ValueError("correction must be 'holm' or 'bh'")
    corrected = np.empty(number)
    corrected[order] = np.minimum(raised, 1.0)
    return corrected


def _exponent(
    log_size: npt.NDArray[np.float64],
    count: npt.NDArray[np.float64],
    time: npt.NDArray[np.float64],
    confidence: float,
) -> Interval:
    """Maximum of the Poisson likelihood over b, the rate maximised out, and its likelihood interval."""
    grid = np.linspace(-3.0, 5.0, 8001)
    # Given b, r = Σn/Σ(t·N^b); the log-likelihood is then n·b·logN − Σn·log Σ(t·N^b) up to a constant.
    exposure = np.log(np.exp(np.outer(grid, log_size)) @ time)
    likelihood = grid * float(count @ log_size) - count.sum() * exposure
    within = grid[2 * (likelihood.max() - likelihood) <= stats.chi2.ppf(confidence, 1)]
    best = float(grid[int(likelihood.argmax())])
    low = -np.inf if within[0] == grid[0] else float(within[0])
    high = np.inf if within[-1] == grid[-1] else float(within[-1])
    return Interval(best, float(low), float(high))
