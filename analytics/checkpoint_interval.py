"""How often to save a checkpoint: the textbook answers, and the run's own by simulation.

    daly(write_s=60, mttf_s=11134.8)                              # 1116.28
    simulated_optimum(failures=7, exposure_s=3e5, write_s=60)      # with its interval

The formulas take the time between saves that is spent on work, not counting the save itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rankscope.analytics.interval import Interval

_GRID_STEPS = 41
_GAPS_PER_DRAW = 1500
_ENOUGH_GAPS = 30  # below this, observed gaps say less about their distribution than "exponential" does


def young(write_s: float, mttf_s: float) -> float:
    """√(2CM) (Young, CACM 1974), seconds."""
    _check(write_s, mttf_s)
    return math.sqrt(2 * write_s * mttf_s)


def daly1(write_s: float, mttf_s: float) -> float:
    """√(2CM) − C, Daly's first order (Daly, FGCS 2006), seconds; not below 0."""
    return max(0.0, young(write_s, mttf_s) - write_s)


def daly(write_s: float, mttf_s: float) -> float:
    """√(2CM)(1 + √(C/2M)/3 + (C/2M)/9) − C for C < 2M, else M (Daly, FGCS 2006), seconds."""
    _check(write_s, mttf_s)
    if write_s >= 2 * mttf_s:
        return mttf_s
    ratio = write_s / (2 * mttf_s)
    return young(write_s, mttf_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - write_s


def simulated_optimum(
    failures: int,
    exposure_s: float,
    write_s: float,
    *,
    gaps_s: Sequence[float] = (),
    draws: int = 200,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """The interval that keeps most work, from the run's own failures, by simulation. Seconds.

    Each draw is one world that the observed failures are compatible with: from 30 gaps on, the gaps
    themselves are drawn again; with fewer, failures are taken as exponential with a rate from
    Gamma(failures + ½, exposure), the Jeffreys posterior. In each world many up-times are cut into work
    and writes, and the interval that keeps most is looked for. Time to restart does
    not move the optimum (it is paid once a failure, whatever the interval), so it is not asked for.

    Args:
        failures: how many were seen in `exposure_s` seconds of up-time.
        gaps_s: observed up-times between failures, if known.

    Raises:
        ValueError: nothing was exposed, or no write time: then the best is to save all the time.
    """
    if exposure_s <= 0 or write_s <= 0:
        raise ValueError("exposure_s and write_s must be positive")
    rng = np.random.default_rng(seed)
    # One gap from each of as many equally likely ranges, the same in every world: only the rate differs.
    ranges = (np.arange(_GAPS_PER_DRAW) + rng.random(_GAPS_PER_DRAW)) / _GAPS_PER_DRAW
    unit = -np.log1p(-ranges)
    gaps = np.asarray(gaps_s, dtype=float)
    best = np.empty(draws)
    for draw in range(draws):
        if len(gaps) >= _ENOUGH_GAPS:
            sample = _resample(gaps, rng)
        else:
            sample = unit * exposure_s / rng.gamma(failures + 0.5)
        best[draw] = _best_on_grid(sample, write_s)
    tail = 100 * (1 - confidence) / 2
    low, middle, high = np.percentile(best, [tail, 50, 100 - tail])
    return Interval(float(middle), float(low), float(high))


def kept_ratio(
    gaps_s: npt.NDArray[np.float64], interval_s: npt.NDArray[np.float64], write_s: float
) -> npt.NDArray[np.float64]:
    """Share of the up-time that is kept work, for each interval: whole cycles of work and write."""
    cycles = np.floor(gaps_s[None, :] / (interval_s[:, None] + write_s))
    kept: npt.NDArray[np.float64] = cycles.sum(axis=1) * interval_s / gaps_s.sum()
    return kept


def _resample(gaps: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Bootstrap in two stages (which gaps this world has, then many of them), smoothed by the kernel of
    Silverman's rule on the logarithm, so that whole cycles do not hit the same few values."""
    world = rng.choice(gaps, size=len(gaps))
    width = 0.9 * np.std(np.log(gaps)) * len(gaps) ** -0.2
    sample: npt.NDArray[np.float64] = rng.choice(world, size=_GAPS_PER_DRAW) * np.exp(
        width * rng.standard_normal(_GAPS_PER_DRAW)
    )
    return sample


def _best_on_grid(gaps: npt.NDArray[np.float64], write_s: float) -> float:
    """Maximum of the kept share, by a parabola through the grid near its top: the top itself is jagged."""
    centre = math.sqrt(2 * write_s * float(gaps.mean()))
    grid = centre * np.geomspace(0.3, 3.0, _GRID_STEPS)
    kept = kept_ratio(gaps, grid, write_s)
    near = kept >= 0.97 * kept.max()
    if near.sum() < 5:
        return float(grid[int(kept.argmax())])
    log = np.log(grid[near])
    curve = np.polynomial.Polynomial.fit(log, kept[near], 2).convert()
    if curve.coef[2] >= 0:
        return float(grid[int(kept.argmax())])
    top = -curve.coef[1] / (2 * curve.coef[2])
    return float(np.exp(np.clip(top, log[0], log[-1])))


def _check(write_s: float, mttf_s: float) -> None:
    if write_s < 0 or mttf_s <= 0:
        raise ValueError("write_s must not be negative and mttf_s must be positive")
