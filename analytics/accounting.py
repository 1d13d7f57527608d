"""Where each replica group's time goes under given failures: exact, and for many runs at once.

Everything is a union of windows (see `windows`): groups that are away, moments in which too few are left and
nobody trains, stalls of the survivors. Each category is what one more union takes from the time that the
groups at hand still had, so the categories add up to groups × horizon by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.analytics.absences import Absences, Axis, absences, ns
from rankscope.analytics.scenario import Failures, Scenario
from rankscope.analytics.windows import Family, Ns, Windows, covered_by, sums, union
from rankscope.ingest.vocabulary import LedgerCategory

CATEGORIES = (
    LedgerCategory.ABSENT,
    LedgerCategory.RESTART,
    LedgerCategory.DETECT,
    LedgerCategory.QUORUM,
    LedgerCategory.RECONFIGURE,
    LedgerCategory.HEAL,
    LedgerCategory.LOST,
    LedgerCategory.CHECKPOINT,
    LedgerCategory.PRODUCTIVE,
)


def account(scenario: Scenario, failures: Failures) -> dict[LedgerCategory, Ns]:
    """Group-nanoseconds of each run by category; their sum is groups × horizon, exactly.

    While nobody trains (fewer than least_groups at hand), time is `detect` until the failure is noticed,
    then `restart`. Otherwise a group that is away is `absent`, `heal` at its end, and the others go through
    `detect`, `quorum`, `lost` (the step in flight), and `reconfigure` when a group joins.

    Args:
        failures: runs × n.
    """
    horizon = ns(scenario.horizon_s)
    if horizon * scenario.groups >= 2**63:
        raise ValueError("too many groups for a run of this length")
    axis = Axis(len(failures.time_s), horizon)
    return _Account(scenario, absences(scenario, failures, axis), axis).ledger()


@dataclass(frozen=True, slots=True)
class _Account:
    scenario: Scenario
    gone: Absences
    axis: Axis

    def ledger(self) -> dict[LedgerCategory, Ns]:
        scenario, gone = self.scenario, self.gone
        dark = covered_by(*gone.away, scenario.groups - scenario.least_groups + 1)
        blackout = union(dark)
        at_hand = self._at_hand(blackout)
        ledger = {category: np.zeros_like(at_hand) for category in CATEGORIES}
        idle = blackout
        for category, families in self._stalls(dark):
            idle = union(dark, *families)
            left = self._at_hand(idle)
            ledger[category] = at_hand - left
            at_hand = left

        healing = self._outside(blackout, gone.healing)
        ledger[LedgerCategory.HEAL] = healing
        ledger[LedgerCategory.ABSENT] = self._outside(blackout, gone.away) - healing
        noticing: Family = (gone.seen, gone.noticed)
        unnoticed = self._length(blackout) + self._length(union(noticing))
        unnoticed -= self._length(union(dark, noticing))
        ledger[LedgerCategory.DETECT] += scenario.groups * unnoticed
        ledger[LedgerCategory.RESTART] = scenario.groups * (self._length(blackout) - unnoticed)

        if scenario.checkpoint_interval_s is not None:
            rolled_back = self._rolled_back(blackout, idle)
            ledger[LedgerCategory.LOST] += rolled_back
            write = scenario.checkpoint_write_s
            # Writes are spread evenly over the time that trains: every kept cycle has one.
            share = write / (scenario.checkpoint_interval_s + write)
            at_hand = at_hand - rolled_back
            ledger[LedgerCategory.CHECKPOINT] = np.rint(at_hand * share).astype(np.int64)
            at_hand = at_hand - ledger[LedgerCategory.CHECKPOINT]
        ledger[LedgerCategory.PRODUCTIVE] = at_hand
        return ledger

    def _stalls(self, dark: Family) -> list[tuple[LedgerCategory, list[Family]]]:
        """What survivors wait for, each on top of the ones before it, in the ledger's order of precedence."""
        scenario, gone = self.scenario, self.gone
        if scenario.groups == 1:
            return []
        agreed = self._later(gone.noticed, scenario.stall_s)
        redone = self._later(agreed, scenario.redo_s)
        rejoin = self._rejoins(dark)
        stalls = [
            (LedgerCategory.DETECT, [(gone.seen, gone.noticed)]),
            (LedgerCategory.QUORUM, [(gone.seen, agreed)]),
            (LedgerCategory.RECONFIGURE, [(gone.seen, agreed), rejoin]),
            (LedgerCategory.LOST, [(gone.seen, redone), rejoin]),
        ]
        happens = (True, scenario.stall_s > 0, scenario.rejoin_stall_s > 0, scenario.redo_s > 0)
        return [stall for stall, really in zip(stalls, happens, strict=True) if really]

    def _rejoins(self, dark: Family) -> Family:
        """All wait when a group joins; not when its return ends a blackout: then nobody was training."""
        ends = self.gone.away[1]
        joins = np.ones(len(ends), dtype=bool)
        joins[: len(dark[0])] = dark[0] >= dark[1]
        return ends[joins], self._later(ends[joins], self.scenario.rejoin_stall_s)

    def _later(self, time: Ns, seconds: float) -> Ns:
        return self.axis.cut(time + ns(seconds), self.axis.run_of(time))

    def _length(self, windows: Windows) -> Ns:
        return windows.before(self.axis.end) - windows.before(self.axis.begin)

    def _at_hand(self, idle: Windows) -> Ns:
        """Group-time outside `idle` of groups that are not away."""
        everywhere = self.scenario.groups * (self.axis.horizon - self._length(idle))
        here: Ns = everywhere - self._outside(idle, self.gone.away)
        return here

    def _outside(self, windows: Windows, family: Family) -> Ns:
        """The family's time outside the windows, summed over each run."""
        begin, end = family
        return sums(windows.outside(end) - windows.outside(begin), self.axis.bounds(begin))

    def _rolled_back(self, blackout: Windows, idle: Windows) -> Ns:
        """Group-time between the last checkpoint and each blackout: no survivor holds the state any more."""
        assert self.scenario.checkpoint_interval_s is not None
        cycle = ns(self.scenario.checkpoint_interval_s) + ns(self.scenario.checkpoint_write_s)
        run = self.axis.run_of(blackout.begin)
        since = self.axis.begin[run]
        since[1:] = np.maximum(since[1:], blackout.end[:-1])
        ran_to = idle.outside(blackout.begin)
        saved = ran_to - (ran_to - idle.outside(since)) % cycle
        lost = self.scenario.groups * (ran_to - saved)
        if self.scenario.groups > 1:
            lost = lost - self._missing(idle, blackout.begin) + self._missing(idle, idle.moment(saved))
        return sums(lost, self.axis.bounds(blackout.begin))

    def _missing(self, idle: Windows, time: Ns) -> Ns:
        """Group-time outside `idle` that absences took before each time. It may wrap: use differences."""
        begin, end = self.gone.away
        begun = np.searchsorted(begin, time, side="right")
        ended = np.searchsorted(end, time, side="right")
        gone = np.concatenate([[0], np.cumsum(idle.outside(begin))])[begun]
        returned = np.concatenate([[0], np.cumsum(idle.outside(end))])[ended]
        missing: Ns = returned + (begun - ended) * idle.outside(time) - gone
        return missing
