"""A whole start in virtual time: form the ring, gather over it, loop over pairs; and what holds it up.

outcome = simulate(Scenario(98_304, Ring.TCPSTORE, AllGather.BIDIRECTIONAL), published_costs())
outcome.total_s, outcome.bottleneck.phase
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rankscope.emulation.counts import Counts
from rankscope.emulation.model.costs import Costs
from rankscope.emulation.model.formation import Formed, Phase, form
from rankscope.emulation.model.gather import Gatherer, gather_counts, ring_plan, rounds_of
from rankscope.emulation.model.scenario import AllGather, Scenario

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bottleneck:
    """What a start waits for most: a phase, who is busy in it, how it grows, and its share of the total."""

    phase: str
    endpoint: str
    growth: str
    share: float
    seconds: float


@dataclass
class Outcome:
    """One start. `phases` in order, with the time at which each rank was through each."""

    scenario: Scenario
    costs: Costs
    begins_s: Times
    phases: list[Phase]
    counts: Counts
    notes: list[str] = field(default_factory=list)

    @property
    def total_s(self) -> float:
        """From the first rank's begin to the last rank's end."""
        return float(self.phases[-1].ends_s.max() - self.begins_s.min())

    def front_s(self) -> list[tuple[str, float]]:
        """(phase, seconds by which the last rank moved on in it), which add up to the total."""
        at = float(self.begins_s.min())
        found = []
        for phase in self.phases:
            end = float(phase.ends_s.max())
            found.append((phase.name, max(0.0, end - at)))
            at = max(at, end)
        return found

    @property
    def bottleneck(self) -> Bottleneck:
        """The largest kind of phase: all AllGathers count as one, and so do the steps at one endpoint."""
        sums: dict[tuple[str, str], float] = {}
        for phase, (_, seconds) in zip(self.phases, self.front_s(), strict=True):
            key = _kind(phase)
            sums[key] = sums.get(key, 0.0) + seconds
        (kind, endpoint), seconds = max(sums.items(), key=lambda item: item[1])
        growth = next(p.growth for p in self.phases if _kind(p) == (kind, endpoint))
        return Bottleneck(kind, endpoint, growth, seconds / self.total_s if self.total_s else 0.0, seconds)

    def as_dict(self) -> dict[str, Any]:
        """The keys of `rankscope emulate init --json`."""
        worst = self.bottleneck
        return {
            "ranks": self.scenario.ranks,
            "ring": self.scenario.ring.value,
            "allgather": self.scenario.allgather.value,
            "total_s": self.total_s,
            "phases": [{"name": name, "s": seconds} for name, seconds in self.front_s()],
            "bottleneck": {
                "phase": worst.phase,
                "endpoint": worst.endpoint,
                "growth": worst.growth,
                "share": worst.share,
            },
            "messages": self.counts.messages,
            "store_ops": self.counts.store_ops,
            "counts": self.counts.as_dict(),
            "rounds": rounds_of(self.scenario.ranks, self.scenario.allgather),
            "sizes": self.scenario.sizes.value,
            "nccl": self.scenario.generation,
            "roots": self.scenario.root_count,
            "calibration": {"name": self.costs.name, **self.costs.as_dict()},
            "notes": self.notes,
        }


def simulate(
    scenario: Scenario, costs: Costs, progress: Callable[[float], None] = lambda share: None
) -> Outcome:
    """Start `scenario.ranks` ranks in virtual time; `progress` hears the share that is done."""
    n = scenario.ranks
    begins = np.zeros(n)
    for rank, seconds in scenario.late.items():
        begins[rank] += seconds
    formed = _formed(_Formation(scenario, costs), begins.tobytes())
    outcome = Outcome(
        scenario, costs, begins, list(formed.phases), replace(formed.counts), list(formed.notes)
    )
    if scenario.late:
        worst = max(scenario.late, key=lambda rank: scenario.late[rank])
        outcome.phases.insert(0, Phase("begin", begins, f"rank {worst}: it begins late", "O(1)"))
    progress(0.1)
    _gather(outcome, progress)
    ready = outcome.phases[-1].ends_s
    if scenario.loops:
        for name, pair_s in (
            ("ring_building", costs.ring_pair_s),
            ("transport_setup", costs.transport_pair_s),
        ):
            ready = ready + pair_s * n * n
            outcome.phases.append(Phase(name, ready, "every rank: a loop over all pairs of ranks", "O(N²)"))
    if costs.fixed_s:
        ready = ready + costs.fixed_s
        outcome.phases.append(Phase("fixed", ready, "every rank: kernels, memory, host topology", "O(1)"))
    progress(1.0)
    return outcome


class _Formation:
    """A scenario and costs as far as forming the ring depends on them: equal ones are formed once."""

    def __init__(self, scenario: Scenario, costs: Costs) -> None:
        self.scenario, self.costs = scenario, costs
        s = scenario
        numbers = tuple(v for v in astuple(replace(costs, sources={})) if not isinstance(v, dict))
        self._key = (s.ranks, s.ring, s.generation, s.root_count, s.ranks_a_host, s.backlog, numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Formation) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=16)
def _formed(formation: _Formation, begins: bytes) -> Formed:
    return form(formation.scenario, formation.costs, np.frombuffer(begins))


def _gather(outcome: Outcome, progress: Callable[[float], None]) -> None:
    scenario = outcome.scenario
    n, method = scenario.ranks, scenario.allgather
    is_ring = method in (AllGather.RING, AllGather.BIDIRECTIONAL)
    phases = ring_plan(n, method, scenario.sizes).phases if is_ring else rounds_of(n, method)
    total = max(1, phases * len(scenario.gathers))
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        progress(0.1 + 0.9 * min(1.0, done / total))

    gatherer = Gatherer(scenario, outcome.costs, advance)
    endpoint, growth = _gather_endpoint(scenario, phases)
    for index, (what, payload) in enumerate(scenario.gathers):
        ends = gatherer.run(outcome.phases[-1].ends_s, payload, index)
        outcome.phases.append(Phase(f"allgather_{index + 1} ({what})", ends, endpoint, growth))
        outcome.counts.add(gather_counts(n, method, scenario.sizes))
    if gatherer.extrapolated:
        outcome.notes.append(
            f"{gatherer.extrapolated} of {len(scenario.gathers)} AllGathers go on at the pace of those "
            "computed phase by phase"
        )


def _gather_endpoint(scenario: Scenario, phases: int) -> tuple[str, str]:
    method = scenario.allgather
    if method in (AllGather.RING, AllGather.BIDIRECTIONAL):
        return f"the ring: {phases:,} phases, each waiting for a neighbour, an AllGather", "O(N)"
    if method is AllGather.TREE:
        return "rank 0: everything passes through it", "O(N log N)"
    return f"every host's network: {phases} rounds, all data leaves every rank", "O(N)"


def _kind(phase: Phase) -> tuple[str, str]:
    if phase.name.startswith("allgather_"):
        return "allgather", phase.endpoint
    if phase.name in ("stagger", "root"):
        return "root", "root"
    if phase.name in ("create_store", "set_key", "get_key"):
        return "store", phase.endpoint
    return phase.name, phase.endpoint
