"""Expected effective training time ratio (ETTR) from a run's own rates, and how far it can be trusted.

    run = Rates.of(failures_per_day=13, restart_s=300, checkpoint_interval_s=421, checkpoint_write_s=10)
    expected(run).value        # 0.87…
    sensitivities(run)         # what a second of restart, of interval, … costs

Three forms, all from *Revisiting Reliability in Large-Scale Machine Learning Research Clusters*
(Kokolis et al., arXiv 2410.21680): (a) and (b) are approximations shown as checks, (c) is the one to use.
With λ failures a second, u0 restart overhead, Δt checkpoint interval, w blocking write of one checkpoint,
q queue time of one interruption and R productive time:

    (a)  1 − λ(u0 + Δt/2)
    (b)  (1 − λ(u0 + Δt/2)) / (1 + w/Δt)
    (c)  S = (R(1 + w/Δt) + u0) / (1 − λ(u0 + Δt/2));  W = S(1 + λq) + q;  R / W

Each is 0 where its numerator or denominator is not positive: a run that loses more than it makes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar

from rankscope.analytics.interval import Interval

DAY_S = 86400.0
DEFAULT_PRODUCTIVE_S = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class Rates:
    """What (a), (b) and (c) need. Each may carry bounds; all are ≥ 0, the interval and R > 0."""

    failures_per_day: Interval  # λ, of the whole job
    restart_s: Interval  # u0: failure → first step again, detection included, queue not
    checkpoint_interval_s: Interval  # Δt
    checkpoint_write_s: Interval  # w: the part that blocks training
    queue_s: Interval  # q: wait for machines at each interruption
    productive_s: Interval  # R: training time asked for

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name).low < 0:
                raise ValueError(f"{field.name} must not be negative")
        for name in ("checkpoint_interval_s", "productive_s"):
            if getattr(self, name).low <= 0:
                raise ValueError(f"{name} must be positive")

    @classmethod
    def of(
        cls,
        *,
        failures_per_day: float | Interval,
        restart_s: float | Interval,
        checkpoint_interval_s: float | Interval,
        checkpoint_write_s: float | Interval = 0.0,
        queue_s: float | Interval = 0.0,
        productive_s: float | Interval = DEFAULT_PRODUCTIVE_S,
    ) -> Rates:
        """Plain numbers are taken as exact."""

        def bounded(value: float | Interval) -> Interval:
            return value if isinstance(value, Interval) else Interval.exactly(float(value))

        return cls(
            bounded(failures_per_day),
            bounded(restart_s),
            bounded(checkpoint_interval_s),
            bounded(checkpoint_write_s),
            bounded(queue_s),
            bounded(productive_s),
        )


@dataclass(frozen=True, slots=True)
class Sensitivities:
    """Partial derivatives of (c): change of the ratio for one unit more of each input."""

    per_restart_s: float
    per_checkpoint_interval_s: float
    per_failure_per_day: float
    per_queue_s: float
    per_checkpoint_write_s: float


def failures_per_day(nodes: float, failures_per_node_day: float) -> float:
    """λ = N · r_f."""
    return nodes * failures_per_node_day


def approximation_a(rates: Rates) -> float:
    """(a): failures only, no cost of writing checkpoints."""
    return max(0.0, _kept(rates))


def approximation_b(rates: Rates) -> float:
    """(b): failures, and the blocking write of checkpoints."""
    return max(0.0, _kept(rates)) / (1 + rates.checkpoint_write_s.value / rates.checkpoint_interval_s.value)


def best_interval_b(rates: Rates) -> float:
    """Δt* = √(2w/λ) in seconds, the interval that (b) is close to best at; infinite without failures."""
    rate = rates.failures_per_day.value / DAY_S
    return float(np.inf) if rate == 0 else float(np.sqrt(2 * rates.checkpoint_write_s.value / rate))


def expected(rates: Rates) -> Interval:
    """(c) with bounds: the least and the most it can be while every input stays within its own.

    That is wider than an interval of the same confidence as the inputs' own: not all of them are at
    their worst at once. (c) falls with λ, u0, w and q, rises with R, and has one maximum over Δt, so the
    extremes lie at corners or at that maximum.
    """
    middle = _ratio_c(*(getattr(rates, field.name).value for field in fields(rates)))
    bounds = [getattr(rates, field.name) for field in fields(rates)]
    if all(bound.is_exact for bound in bounds):
        return Interval.exactly(middle)
    corners = [_ratio_c(*corner) for corner in product(*((bound.low, bound.high) for bound in bounds))]
    best = max(*corners, _best_within(rates))
    return Interval(middle, min(middle, *corners), max(middle, best))


def best_interval(rates: Rates) -> float:
    """The checkpoint interval in seconds at which (c) is largest; 0 where saving costs nothing.

    Infinite where there are no failures. It differs from √(2w/λ) where failures are frequent.
    """
    rate, write = rates.failures_per_day.value / DAY_S, rates.checkpoint_write_s.value
    if rate == 0:
        return float(np.inf)
    # d(c)/dΔt = 0  ⇔  λ·A/2·Δt² = R·w·D with A = R(1 + w/Δt) + u0 and D = 1 − λ(u0 + Δt/2): a quadratic.
    restart, work = rates.restart_s.value, rates.productive_s.value
    square = rate * (work + restart) / 2
    linear = rate * work * write
    constant = -work * write * (1 - rate * restart)
    if constant > 0:
        return 0.0  # restarting takes longer than failures leave: no interval helps
    return float((-linear + np.sqrt(linear * linear - 4 * square * constant)) / (2 * square))


def sensitivities(rates: Rates) -> Sensitivities:
    """∂(c)/∂(u0, Δt, λ, q, w) at the inputs' values; all 0 where (c) is 0."""
    rate = rates.failures_per_day.value / DAY_S
    restart, interval = rates.restart_s.value, rates.checkpoint_interval_s.value
    write, queue, work = rates.checkpoint_write_s.value, rates.queue_s.value, rates.productive_s.value
    kept = _kept(rates)
    if kept <= 0:
        return Sensitivities(0.0, 0.0, 0.0, 0.0, 0.0)
    busy = work * (1 + write / interval) + restart
    scheduled = busy / kept
    wall = scheduled * (1 + rate * queue) + queue
    by_wall = -work / wall**2
    waits = 1 + rate * queue
    return Sensitivities(
        per_restart_s=by_wall * waits * (1 / kept + busy * rate / kept**2),
        per_checkpoint_interval_s=by_wall
        * waits
        * (busy * rate / (2 * kept**2) - work * write / (interval**2 * kept)),
        per_failure_per_day=by_wall
        * (waits * busy * (restart + interval / 2) / kept**2 + scheduled * queue)
        / DAY_S,
        per_queue_s=by_wall * (scheduled * rate + 1),
        per_checkpoint_write_s=by_wall * waits * work / (interval * kept),
    )


def with_value(rates: Rates, name: str, value: float) -> Rates:
    """The same rates with one of them given exactly."""
    return replace(rates, **{name: Interval.exactly(value)})


def _kept(rates: Rates) -> float:
    """Share of the time that failures leave: 1 − λ(u0 + Δt/2)."""
    rate = rates.failures_per_day.value / DAY_S
    return 1 - rate * (rates.restart_s.value + rates.checkpoint_interval_s.value / 2)


def _ratio_c(
    per_day: float, restart: float, interval: float, write: float, queue: float, work: float
) -> float:
    rate = per_day / DAY_S
    kept = 1 - rate * (restart + interval / 2)
    if kept <= 0:
        return 0.0
    scheduled = (work * (1 + write / interval) + restart) / kept
    return work / (scheduled * (1 + rate * queue) + queue)


def _best_within(rates: Rates) -> float:
    """(c) at its maximum over Δt's bounds, everything else at its best."""
    span = rates.checkpoint_interval_s
    best = (rates.failures_per_day.low, rates.restart_s.low)
    rest = (rates.checkpoint_write_s.low, rates.queue_s.low, rates.productive_s.high)
    if span.is_exact or not np.isfinite(span.high):
        return _ratio_c(*best, span.low, *rest)
    found = minimize_scalar(
        lambda interval: -_ratio_c(*best, float(interval), *rest),
        bounds=(span.low, span.high),
        method="bounded",
    )
    return float(-found.fun)
