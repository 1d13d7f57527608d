"""From what one run showed to the rates that expected effective time is computed from."""

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rankscope.analytics.expected import Rates
from rankscope.analytics.observed import observed_rates
from rankscope.analytics.reliability import Mttf, mttf

_FEW = 3  # failures below this say little


@dataclass(frozen=True)
class Observed:
    """Rates of a run, as far as it shows them."""

    rates: Rates | None  # None: too little is known
    mttf: Mttf | None
    notes: tuple[str, ...]  # what is missing, or was taken from elsewhere


def observed(row: dict[str, Any]) -> Observed:
    """Rates from a row of queries/rates.sql."""
    if not row["observed_s"]:
        return Observed(None, None, ("nothing has run yet",))
    failures, notes = row["failures"] or 0, []
    rate = mttf(failures, row["observed_s"] / 3600)
    if not row["gap_s"]:
        why = "no two checkpoints were saved in one attempt: without an interval nothing can be expected"
        return Observed(None, rate, (why,))
    restarts = row["restart_s"]
    if not restarts:
        if row["time_to_start_s"] is None:
            return Observed(None, rate, ("no step has begun yet",))
        restarts = [row["time_to_start_s"]]
        notes.append("no restart was seen to its end: Time to Start stands in for it")
    if failures < _FEW:
        few = {0: "no failure says", 1: "one failure says", 2: "two failures say"}[failures]
        notes.append(f"{few} little about how often they come: the range is wide")
    rates = observed_rates(
        failures=failures,
        wall_s=row["observed_s"],
        restart_s=restarts,
        checkpoint_gap_s=row["gap_s"],
        checkpoint_write_s=row["write_s"],
        queue_s=[row["queue_s"]] if row["queue_s"] else (),
    )
    return Observed(rates, rate, tuple(notes))


def exact(rates: Rates) -> Rates:
    """The same rates without their bounds: a hundred times faster for curves."""
    return Rates.of(
        failures_per_day=rates.failures_per_day.value,
        restart_s=rates.restart_s.value,
        checkpoint_interval_s=rates.checkpoint_interval_s.value,
        checkpoint_write_s=rates.checkpoint_write_s.value,
        queue_s=rates.queue_s.value,
        productive_s=rates.productive_s.value,
    )


def mean(values: list[float]) -> float | None:
    """Mean, or None of nothing."""
    return fmean(values) if values else None
