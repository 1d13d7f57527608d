"""What to change first: GPU-hours a day that each realistic improvement would give back.

advice(Rates.of(failures_per_day=13, restart_s=600, checkpoint_interval_s=3600), gpus=16384)
# 'Start with saving more often: …'
"""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.analytics.expected import Rates, best_interval, expected, with_value

# What a team can reach without new hardware, by published practice; each is a factor on today's value.
# Restart: in place instead of by requeue is 454–768 s → 46–65 s (ByteRobust), so half is modest.
# Failure rate: leaving out lemon nodes took failures of large jobs from 14 % to 4 % (arXiv 2410.21680);
# a fifth is what one such measure gives when failures have many causes.
FACTORS = {"restart_s": 0.5, "queue_s": 0.5, "checkpoint_write_s": 0.5, "failures_per_day": 0.8}

_WORDS = {
    "restart_s": "making restarts twice as fast",
    "queue_s": "halving the wait for machines after an interruption",
    "checkpoint_write_s": "halving the time that a checkpoint blocks training",
    "failures_per_day": "having a fifth fewer failures",
}
_WORTH_IT = 0.001  # a tenth of a per cent of the fleet


@dataclass(frozen=True, slots=True)
class Lever:
    """One change, and what it gives."""

    name: str  # field of Rates
    words: str
    now: float  # in the field's unit
    then: float
    ettr_now: float
    ettr_then: float
    gpu_hours_per_day: float


def levers(rates: Rates, gpus: int) -> list[Lever]:
    """Every lever, the one that gives most first.

    The checkpoint interval goes to its best value, all others by FACTORS. A gain is
    (expected ETTR after − before) · gpus · 24 h.
    """
    if gpus <= 0:
        raise ValueError("gpus must be positive")
    before = expected(rates).value
    found = []
    for name, factor in FACTORS.items():
        now = getattr(rates, name).value
        found.append(_lever(rates, gpus, name, _WORDS[name], now, now * factor, before))
    now = rates.checkpoint_interval_s.value
    best = best_interval(rates)
    # Where a save costs nothing the best is to save all the time; once a second stands for it.
    best = min(max(best, 1.0), rates.productive_s.value)
    words = "saving checkpoints more often" if best < now else "saving checkpoints less often"
    found.append(_lever(rates, gpus, "checkpoint_interval_s", words, now, best, before))
    return sorted(found, key=lambda lever: -lever.gpu_hours_per_day)


def advice(rates: Rates, gpus: int) -> str:
    """One sentence for the person who decides."""
    first, second = levers(rates, gpus)[:2]
    if first.gpu_hours_per_day < _WORTH_IT * gpus * 24:
        if first.ettr_then == 0:
            return (
                "No single improvement is enough: failures come faster than this run recovers from them, "
                "so they have to become fewer and restarts faster at the same time."
            )
        return (
            f"Nothing to change first: {first.ettr_now:.2%} of the time trains, and no single "
            "improvement would give back a tenth of a per cent."
        )
    return (
        f"Start with {first.words} ({_amount(first.name, first.now)} → {_amount(first.name, first.then)}): "
        f"it would give back {first.gpu_hours_per_day:,.0f} GPU-hours a day "
        f"({first.ettr_now:.1%} → {first.ettr_then:.1%} effective), "
        f"against {max(0.0, second.gpu_hours_per_day):,.0f} for {second.words}."
    )


def _lever(rates: Rates, gpus: int, name: str, words: str, now: float, then: float, before: float) -> Lever:
    after = expected(with_value(rates, name, then)).value
    return Lever(name, words, now, then, before, after, (after - before) * gpus * 24)


def _amount(name: str, value: float) -> str:
    if name == "failures_per_day":
        return f"{value:.3g} a day"
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"
