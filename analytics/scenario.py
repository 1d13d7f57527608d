"""What a what-if is asked about: a fleet, how it fails and how it recovers.

    Scenario(groups=12, mtbf_s=18 * 60, arrivals="periodic", stall_s=180, restart_s=600)

One failure, in time. With replica groups: the survivors notice after `detect_s`, agree and rebuild in
`stall_s`, do the step in flight again in `redo_s`, and go on without the failed group, which is back
`detect_s + group_restart_s + heal_s` after its failure; when it joins, all wait `rejoin_stall_s`.
Synchronous: nobody trains for `detect_s + restart_s`, and the work since the last checkpoint is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

DAY_S = 86400.0
Arrivals = Literal["periodic", "exponential", "trace"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """All times in seconds.

    Raises:
        ValueError: a time is negative, or a number makes no sense; the message names it.
    """

    groups: int = 1  # replica groups; 1 is synchronous
    gpus: int = 1  # all groups together: turns shares into GPU-hours
    days: float = 30.0
    mtbf_s: float = 18 * 60.0  # between failures anywhere in the fleet
    arrivals: Arrivals = "exponential"
    trace_gaps_s: tuple[float, ...] = ()  # arrivals 'trace': gaps to draw from, scaled to mtbf_s
    failures_during_recovery: bool = True  # False: a group that is away does not fail again
    detect_s: float = 0.0  # failure → noticed
    restart_s: float = 600.0  # synchronous: noticed → training again
    group_restart_s: float | None = None  # one group: noticed → ready to join; None: restart_s
    stall_s: float = 0.0  # survivors: noticed → going on (quorum and reconfiguration)
    redo_s: float = 0.0  # survivors: work in flight that is done again
    heal_s: float = 0.0  # a joiner receives the state, while the others go on
    rejoin_stall_s: float = 0.0  # all wait when a group joins
    least_groups: int = 1  # with fewer, nobody trains
    checkpoint_interval_s: float | None = None  # of training; None: lost work is part of restart_s
    checkpoint_write_s: float = 0.0  # the blocking part of one save
    spare_hosts: int | None = None  # None: always one at hand
    repair_s: float = 0.0  # a failed host is a spare again after that

    def __post_init__(self) -> None:
        for name in ("groups", "gpus", "days", "mtbf_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive")
        for name in (
            "detect_s",
            "restart_s",
            "stall_s",
            "redo_s",
            "heal_s",
            "rejoin_stall_s",
            "checkpoint_write_s",
            "repair_s",
        ):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative")
        if self.group_restart_s is not None and self.group_restart_s < 0:
            raise ValueError("group_restart_s must not be negative")
        if self.checkpoint_interval_s is not None and self.checkpoint_interval_s <= 0:
            raise ValueError("checkpoint_interval_s must be positive")
        if not 1 <= self.least_groups <= self.groups:
            raise ValueError("least_groups must be between 1 and groups")
        if self.spare_hosts is not None and self.spare_hosts < 0:
            raise ValueError("spare_hosts must not be negative")
        if self.arrivals == "trace" and not sum(self.trace_gaps_s) > 0:
            raise ValueError("arrivals 'trace' needs trace_gaps_s")

    @property
    def horizon_s(self) -> float:
        return self.days * DAY_S

    def synchronous(self) -> Scenario:
        """The twin without isolation: the same fleet as one group, where any failure stops all."""
        return replace(
            self,
            groups=1,
            least_groups=1,
            group_restart_s=None,
            stall_s=0.0,
            redo_s=0.0,
            heal_s=0.0,
            rejoin_stall_s=0.0,
        )


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures of one run (1-D arrays) or of many (runs × n, later than the horizon where a run has fewer).

    `place` says where in the fleet, from 0 to below 1, so that the same failures can be put to any number of
    groups: node ÷ nodes. Failures at one time in several places are one that spreads (a switch, a rack).
    """

    time_s: Floats  # since the run's beginning, in order
    place: Floats
    detect_s: Floats | None = None  # of each, instead of the scenario's
    repair_s: Floats | None = None

    def __post_init__(self) -> None:
        for column in (self.place, self.detect_s, self.repair_s):
            if column is not None and column.shape != self.time_s.shape:
                raise ValueError("the columns of failures must be equally long")
        if self.time_s.size and (np.diff(self.time_s, axis=-1) < 0).any():
            raise ValueError("failures must be in order of time")
        if (self.time_s < 0).any() or (self.place < 0).any() or (self.place >= 1).any():
            raise ValueError("times must not be negative and places lie in [0, 1)")

    def as_runs(self) -> Failures:
        """With one row a run."""
        return self if self.time_s.ndim == 2 else self._each(lambda column: column[None, :])

    def rows(self, first: int, number: int) -> Failures:
        """Some of the runs."""
        return self._each(lambda column: column[first : first + number])

    def _each(self, change: Callable[[Floats], Floats]) -> Failures:
        return Failures(
            change(self.time_s),
            change(self.place),
            None if self.detect_s is None else change(self.detect_s),
            None if self.repair_s is None else change(self.repair_s),
        )


def draw(scenario: Scenario, runs: range, seed: int) -> Failures:
    """Failures of these runs, each with its own random numbers: run 7 of a seed is the same in any company.

    Periodic ones start at 0, so that a horizon of whole periods holds whole cycles. Gaps are drawn in units
    of the mean and places as shares of the fleet: scenarios that differ in mtbf_s or groups get the same
    draws, which is what makes curves smooth.
    """
    count = scenario.horizon_s / scenario.mtbf_s
    if scenario.arrivals == "periodic":
        index = np.arange(int(np.ceil(count - 1e-9)))
        golden = (np.sqrt(5.0) - 1) / 2  # spreads evenly over any number of groups
        time, place = index * scenario.mtbf_s, (index * golden + 0.5 * golden) % 1.0
        return Failures(np.tile(time, (len(runs), 1)), np.tile(place, (len(runs), 1)))
    drawn = [_draw_run(scenario, count, np.random.default_rng((seed, run))) for run in runs]
    longest = max(len(time) for time, _ in drawn)
    times = [np.pad(time, (0, longest - len(time)), mode="edge") for time, _ in drawn]  # past the horizon
    places = [np.pad(place, (0, longest - len(place))) for _, place in drawn]
    return Failures(np.stack(times) * scenario.mtbf_s, np.stack(places))


def _draw_run(scenario: Scenario, count: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Times in units of the mean gap, to beyond `count`, and places."""
    gap_rng, place_rng = rng.spawn(2)
    size = int(count + 4 * np.sqrt(count) + 8)
    time = np.cumsum(_gaps(scenario, gap_rng, size))
    while time[-1] < count:
        time = np.concatenate([time, time[-1] + np.cumsum(_gaps(scenario, gap_rng, size))])
    return time, place_rng.random(len(time))


def _gaps(scenario: Scenario, rng: np.random.Generator, size: int) -> Floats:
    if scenario.arrivals == "exponential":
        return rng.exponential(size=size)
    gaps = np.asarray(scenario.trace_gaps_s, dtype=float)
    drawn: Floats = rng.choice(gaps / gaps.mean(), size=size)
    return drawn
