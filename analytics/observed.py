"""A run's own rates with their intervals: what `expected`, `levers` and the what-if engine start from.

rates = observed_rates(failures=3, wall_s=7 * 86400, restart_s=[310, 295, 460],
                       checkpoint_gap_s=[600, 605, 602], checkpoint_write_s=[11, 12, 10])
expected(rates)          # what such a run should reach, to compare with what it did
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from rankscope.analytics.expected import DAY_S, Rates
from rankscope.analytics.interval import Interval
from rankscope.analytics.reliability import mttf

_FEW = 3  # observations from which their own spread says something


def observed_rates(
    *,
    failures: int,
    wall_s: float,
    restart_s: Sequence[float],
    checkpoint_gap_s: Sequence[float],
    checkpoint_write_s: Sequence[float],
    queue_s: Sequence[float] = (),
    confidence: float = 0.95,
) -> Rates:
    """Rates of (a), (b), (c) from what a run did in `wall_s` seconds.

    Args:
        restart_s: failure → first step again, of each failure. A run without failures gives its Time to
            Start: a restart would repeat it.
        checkpoint_gap_s: training time between saves, without the save.
        checkpoint_write_s: blocking time of each save; none, if it does not save.
        queue_s: wait for machines at each interruption; none, if it kept them.

    Raises:
        ValueError: nothing was observed of a rate that has no natural zero.
    """
    for name, values in (("restart_s", restart_s), ("checkpoint_gap_s", checkpoint_gap_s)):
        if not values:
            raise ValueError(f"{name} has no observation")
    days = mttf(failures, wall_s / DAY_S, confidence)  # MTTF in days here: the same law in any unit
    per_day = Interval(failures / days.exposure_h, 1 / days.high, 1 / days.low)
    return Rates(
        failures_per_day=per_day,
        restart_s=mean_interval(restart_s, confidence),
        checkpoint_interval_s=mean_interval(checkpoint_gap_s, confidence),
        checkpoint_write_s=mean_interval(checkpoint_write_s or [0.0], confidence),
        queue_s=mean_interval(queue_s or [0.0], confidence),
        productive_s=Interval.exactly(wall_s),
    )


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean of durations with its interval, never below 0.

    From three on by Student's t; fewer are taken as exponential, which is wide and honest.

    Raises:
        ValueError: there are no values, or negative ones.
    """
    sample = np.asarray(values, dtype=float)
    if not len(sample) or (sample < 0).any():
        raise ValueError("durations must be there and not negative")
    mean, number = float(sample.mean()), len(sample)
    if (sample == 0).all():
        return Interval.exactly(0.0)
    tail = (1 - confidence) / 2
    if number >= _FEW:
        half = float(stats.t.ppf(1 - tail, number - 1) * sample.std(ddof=1) / np.sqrt(number))
        return Interval(mean, max(0.0, mean - half), mean + half)
    low, high = (2 * sample.sum() / stats.chi2.ppf(p, 2 * number) for p in (1 - tail, tail))
    return Interval(mean, float(low), float(high))
