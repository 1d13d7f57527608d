"""From failures to absences of replica groups: when each goes, when it is back, and what survivors saw.

Runs lie one after the other on one axis of integer nanoseconds (`Axis`), see `windows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rankscope.analytics.scenario import Failures, Scenario
from rankscope.analytics.windows import Family, Ns

NS = 1e9


@dataclass(frozen=True, slots=True)
class Axis:
    """Runs one after the other."""

    runs: int
    horizon: int

    def __post_init__(self) -> None:
        if self.runs * (self.horizon + 1) >= 2**62:
            raise ValueError("too many runs of this length at once")

    @property
    def begin(self) -> Ns:
        return np.arange(self.runs, dtype=np.int64) * (self.horizon + 1)

    @property
    def end(self) -> Ns:
        return self.begin + self.horizon

    def run_of(self, time: Ns) -> Ns:
        return time // (self.horizon + 1)

    def cut(self, time: Ns, run: Ns) -> Ns:
        """Times no later than the end of their run."""
        return np.minimum(time, run * (self.horizon + 1) + self.horizon)

    def bounds(self, sorted_times: Ns) -> npt.NDArray[np.intp]:
        """Where each run's part of the sorted times begins, and where the last one's ends."""
        inner = np.searchsorted(sorted_times, self.begin[1:], side="left")
        return np.concatenate([[0], inner, [len(sorted_times)]])


@dataclass(frozen=True, slots=True)
class Absences:
    """`away` and `healing` are windows of groups; `seen` are failures of groups that were at hand."""

    away: Family
    healing: Family  # the last part of absences: the group receives its state
    seen: Ns
    noticed: Ns  # when the survivors noticed each of `seen`, sorted


def absences(scenario: Scenario, failures: Failures, axis: Axis) -> Absences:
    """Absences under these failures (runs × n). A group that fails while it is away starts over."""
    within = failures.time_s < scenario.horizon_s
    run = np.nonzero(within)[0].astype(np.int64)
    local = np.rint(failures.time_s[within] * NS).astype(np.int64)
    local = np.minimum(local, axis.horizon - 1)  # rounding must not move one into the next run
    time = local + axis.begin[run]
    group = (failures.place[within] * scenario.groups).astype(np.int64)
    detect = _column(failures.detect_s, within, scenario.detect_s)
    repair = _column(failures.repair_s, within, scenario.repair_s)
    restart = scenario.restart_s if scenario.group_restart_s is None else scenario.group_restart_s
    ready = _replaced(scenario, time, repair, run, axis)
    joined = np.maximum(time + detect, ready) + ns(restart)
    back = joined + ns(scenario.heal_s)
    owner = run * scenario.groups + group
    if not scenario.failures_during_recovery:
        struck = _struck(owner, time, back, axis.runs * scenario.groups)
        time, run, detect, joined, back, owner = (
            column[struck] for column in (time, run, detect, joined, back, owner)
        )

    order = np.argsort(_small(owner, axis.runs * scenario.groups), kind="stable")  # group by group, in time
    time, run, detect, owner = time[order], run[order], detect[order], owner[order]
    until, healing_from = _latest(back[order], owner), _latest(joined[order], owner)
    first = np.ones(len(time), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (time[1:] >= until[:-1])
    last = np.ones(len(time), dtype=bool)
    last[:-1] = first[1:]
    seen = np.sort(time[first])
    ends = np.sort(axis.cut(until[last], run[last]))
    return Absences(
        away=(seen, ends),
        healing=(np.sort(axis.cut(healing_from[last], run[last])), ends),
        seen=seen,
        noticed=np.sort(axis.cut(time[first] + detect[first], run[first])),
    )


def ns(seconds: float) -> int:
    """Whole nanoseconds."""
    return round(seconds * NS)


def _column(own: npt.NDArray[np.float64] | None, within: npt.NDArray[np.bool_], common_s: float) -> Ns:
    if own is None:
        return np.full(int(within.sum()), ns(common_s), dtype=np.int64)
    column: Ns = np.rint(own[within] * NS).astype(np.int64)
    return column


def _replaced(scenario: Scenario, time: Ns, repair: Ns, run: Ns, axis: Axis) -> Ns:
    """When each failure has a host in the failed one's place: spares first, then repaired ones, in turn."""
    if scenario.spare_hosts is None:
        return time
    ready = np.empty_like(time)
    bounds = axis.bounds(time)
    for begin, end in pairwise(bounds):
        mine = time[begin:end]
        spares = np.zeros(min(scenario.spare_hosts, len(mine)), dtype=np.int64)
        available = np.sort(np.concatenate([spares, mine + repair[begin:end]]))
        ready[begin:end] = np.maximum(mine, available[: len(mine)])
    return ready


def _struck(owner: Ns, time: Ns, back: Ns, owners: int) -> npt.NDArray[np.bool_]:
    """Which failures hit a group that is at hand, if those that are away are spared."""
    until = [0] * owners
    struck = np.zeros(len(time), dtype=bool)
    for index, (who, when, then) in enumerate(zip(owner.tolist(), time.tolist(), back.tolist(), strict=True)):
        if when >= until[who]:
            struck[index] = True
            until[who] = then
    return struck


def _latest(times: Ns, owner: Ns) -> Ns:
    """Running maximum within each owner; owners are sorted."""
    if not len(times) or ((times[1:] >= times[:-1]) | (owner[1:] != owner[:-1])).all():
        return times
    by_time = np.argsort(times, kind="stable")
    rank = np.empty_like(by_time)
    rank[by_time] = np.arange(len(times))
    # Ranks, not times, are made to rise with the owner: they are small, so that no product overflows.
    index = np.maximum.accumulate(owner * len(times) + rank) - owner * len(times)
    latest: Ns = times[by_time[index]]
    return latest


def _small(keys: Ns, count: int) -> npt.NDArray[np.integer]:
    """The same keys in 16 bits where they fit: numpy sorts those by radix."""
    return keys.astype(np.int16) if count <= np.iinfo(np.int16).max else keys
