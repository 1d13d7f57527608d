"""Restarts that come in storms, and restarts that lead nowhere.

restart_storms(times_s=[0, 5000, 5030, 5061, 5090, 9000], span_s=86400, window_s=600)
stuck_attempts(resumed_at=[0, 40, 40, 40, 80])           # [(1, 3)]: three attempts from step 40
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True, slots=True)
class Storm:
    """Restarts that stand closer together than chance explains."""

    first: int  # index of its first restart
    last: int
    begin_s: float
    end_s: float
    restarts: int
    p: float  # chance of a window as full as its fullest, anywhere in the run


def scan_p(most: int, rate_per_s: float, window_s: float, span_s: float) -> float:
    """Chance that some window of that length holds at least `most` events of a Poisson process.

    Alm's approximation of the scan statistic (Alm 1983; Glaz, Naus, Wallenstein: Scan Statistics, 2001).
    """
    if most <= 1:
        return 1.0 if most <= 0 else float(-np.expm1(-rate_per_s * span_s))
    mean = rate_per_s * window_s
    if most <= mean:
        return 1.0
    none = stats.poisson.logcdf(most - 1, mean)
    moving = (1 - mean / most) * rate_per_s * max(0.0, span_s - window_s) * stats.poisson.pmf(most - 1, mean)
    return float(-np.expm1(none - moving))


def restart_storms(
    times_s: Sequence[float], span_s: float, window_s: float = 1800.0, alpha: float = 0.01
) -> list[Storm]:
    """Storms among restart times, in order of time.

    The fullest window is compared with what a steady Poisson process of the run's own mean rate would show
    somewhere in `span_s` seconds. A storm is every restart that lies in a window with at least the smallest
    number whose chance is ≤ alpha, overlapping windows joined; never fewer than three restarts. The storm
    itself raises the mean rate, which makes this shy of small storms, not eager.
    """
    if span_s <= 0 or window_s <= 0:
        raise ValueError("span_s and window_s must be positive")
    times = np.sort(np.asarray(times_s, dtype=float))
    if len(times) < 3:
        return []
    rate = len(times) / span_s
    inside = np.searchsorted(times, times + window_s, side="right") - np.arange(len(times))
    enough = next(
        (k for k in range(3, int(inside.max()) + 1) if scan_p(k, rate, window_s, span_s) <= alpha), None
    )
    if enough is None:
        return []
    storms: list[Storm] = []
    for start in np.flatnonzero(inside >= enough):
        first, last, fullest = int(start), int(start + inside[start] - 1), int(inside[start])
        if storms and storms[-1].last >= first:
            before = storms.pop()
            first = before.first
            fullest = max(fullest, int(inside[before.first : start].max()))
        storms.append(
            Storm(
                first,
                last,
                float(times[first]),
                float(times[last]),
                last - first + 1,
                scan_p(fullest, rate, window_s, span_s),
            )
        )
    return storms


def stuck_attempts(resumed_at: Sequence[int | None], least: int = 3) -> list[tuple[int, int]]:
    """Spells of at least `least` attempts in a row that resumed no further than the one before.

    Args:
        resumed_at: first step of each attempt, in order; None where no step was reached.

    Returns:
        (first, last) attempt of each spell. An attempt that reached no step belongs to the spell around it.
    """
    spells: list[tuple[int, int]] = []
    first = 0
    furthest: int | None = None
    for attempt, step in enumerate(resumed_at):
        if step is not None and furthest is not None and step > furthest:
            if attempt - first >= least:
                spells.append((first, attempt - 1))
            first = attempt
        if step is not None:
            furthest = step if furthest is None else max(furthest, step)
    if len(resumed_at) - first >= least:
        spells.append((first, len(resumed_at) - 1))
    return spells
