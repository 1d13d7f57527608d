"""An AllGather in virtual time: dependent phases, messages, bytes, and when each rank has everything."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from rankscope.emulation.counts import Counts
from rankscope.emulation.model.costs import Costs
from rankscope.emulation.model.rounds import Noise, NoisyRing, Wait, closed_form
from rankscope.emulation.model.scenario import AllGather, Scenario, Sizes

Times = npt.NDArray[np.float64]
Progress = Callable[[int], None]

# Noisy phases × ranks that are computed one by one; AllGathers beyond go on at the pace of those before.
EXACT_WORK: Final = 2.2e10


@dataclass(frozen=True)
class Plan:
    """An AllGather as phases: `pattern` repeated `rounds` times, then `last`."""

    rounds: int
    pattern: tuple[Wait, ...]
    last: tuple[Wait, ...]

    @property
    def phases(self) -> int:
        """Dependent phases, one after the other."""
        return self.rounds * len(self.pattern) + len(self.last)


def ring_plan(ranks: int, method: AllGather, sizes: Sizes) -> Plan:
    """The phases of a ring AllGather, one way or both."""
    one_way = (Wait.LEFT,) if sizes is Sizes.ALONG else (Wait.LEFT, Wait.LEFT)
    if method is AllGather.RING:
        return Plan(ranks - 1, one_way, ())
    both = {
        Sizes.FIRST: (Wait.LEFT, Wait.RIGHT, Wait.BOTH),
        Sizes.OVERLAPPED: (Wait.BOTH, Wait.BOTH),
        Sizes.ALONG: (Wait.BOTH,),
    }[sizes]
    # ⌊N/2⌋ rounds; with an even N the last one needs one direction only.
    return Plan((ranks - 1) // 2, both, one_way if ranks % 2 == 0 else ())


def rounds_of(ranks: int, method: AllGather) -> int:
    """Rounds of a method, as people count them."""
    if method is AllGather.RING:
        return ranks - 1
    if method is AllGather.BIDIRECTIONAL:
        return ranks // 2
    log = math.ceil(math.log2(ranks))
    if method is AllGather.BRUCK:
        return log
    if method is AllGather.TREE:
        return 2 * log
    return log if 1 << log == ranks else log - 1 + 2


def gather_counts(ranks: int, method: AllGather, sizes: Sizes) -> Counts:
    """Messages of one AllGather, by protocol."""
    if method in (AllGather.RING, AllGather.BIDIRECTIONAL):
        hops = ranks * (ranks - 1)
    elif method is AllGather.BRUCK:
        hops = ranks * rounds_of(ranks, method)
    elif method is AllGather.TREE:
        hops = 2 * (ranks - 1)
    else:
        folded = 1 << (ranks.bit_length() - 1)
        hops = folded * (folded.bit_length() - 1) + 2 * (ranks - folded)
    return Counts(hops=hops, size_messages=0 if sizes is Sizes.ALONG else hops)


class Gatherer:
    """Runs the AllGathers of one scenario, one after the other."""

    def __init__(self, scenario: Scenario, costs: Costs, progress: Progress = lambda done: None) -> None:
        self.scenario, self.costs = scenario, costs
        self.extrapolated = 0  # AllGathers that were not computed phase by phase
        self._progress = progress
        self._work = 0.0
        self._pace: dict[float, float] = {}  # delay of a phase -> seconds a phase with noise, as computed

    def run(self, ready: Times, payload_bytes: int, index: int) -> Times:
        """When each rank has everything, `ready` being when it began."""
        if self.scenario.allgather in (AllGather.RING, AllGather.BIDIRECTIONAL):
            return self._ring(ready, payload_bytes, index)
        return self._logarithmic(ready, payload_bytes, index)

    def phase_s(self, payload_bytes: float, sharing: int = 1) -> float:
        """One phase: latency and bytes, or the processors of a crowded host."""
        scenario, costs = self.scenario, self.costs
        cpu_s = costs.both_cpu_s if scenario.allgather is AllGather.BIDIRECTIONAL else costs.hop_cpu_s
        alone = costs.hop_s + payload_bytes * sharing / costs.bytes_per_s
        if not costs.cores:
            return alone
        return max(alone, scenario.ranks_a_host * cpu_s / costs.cores)

    def _ring(self, ready: Times, payload_bytes: int, index: int) -> Times:
        scenario = self.scenario
        plan = ring_plan(scenario.ranks, scenario.allgather, scenario.sizes)
        delay_s = self.phase_s(payload_bytes)
        if not scenario.jitter_s:
            done = [(wait, plan.rounds) for wait in plan.pattern] + [(wait, 1) for wait in plan.last]
            self._progress(plan.phases)
            return closed_form(ready, done, delay_s)
        work = float(plan.phases) * scenario.ranks
        if self._pace and self._work + work > EXACT_WORK:
            known, pace_s = next(iter(self._pace.items()))
            self.extrapolated += 1
            self._progress(plan.phases)
            reach = [(Wait.BOTH, scenario.ranks)]
            return closed_form(ready, reach, 0.0) + plan.phases * (pace_s + delay_s - known)
        self._work += work
        ring = NoisyRing(ready, Noise(scenario.jitter_s, scenario.ranks, scenario.seed + index), delay_s)
        ring.run(plan.pattern, plan.rounds, self._progress)
        if plan.last:
            ring.run(plan.last, 1, self._progress)
        ended = ring.times_s()
        self._pace[delay_s] = float(ended.mean() - ready.max()) / plan.phases
        return ended

    def _logarithmic(self, ready: Times, payload_bytes: int, index: int) -> Times:
        scenario = self.scenario
        rng = np.random.default_rng((scenario.seed, index))
        extra = 1 if scenario.sizes is Sizes.ALONG else 2  # a size message before each chunk
        sharing = scenario.ranks_a_host

        def message(chunks: int, count: int, busy: int = sharing) -> Times:
            noise = rng.exponential(scenario.jitter_s, (extra, count)).sum(0) if scenario.jitter_s else 0.0
            fixed = (extra - 1) * self.phase_s(4) + self.phase_s(chunks * payload_bytes, sharing=busy)
            return np.full(count, fixed) + noise

        if scenario.allgather is AllGather.BRUCK:
            ended = _bruck(ready, message)
        elif scenario.allgather is AllGather.DOUBLING:
            ended = _doubling(ready, message)
        else:
            ended = _tree(ready, message)
        self._progress(rounds_of(scenario.ranks, scenario.allgather))
        return ended


Message = Callable[..., Times]


def _bruck(t: Times, message: Message) -> Times:
    """Round k: receive from the rank 2^k further on what it has so far."""
    n, distance = len(t), 1
    while distance < n:
        t = np.maximum(t, np.roll(t, -distance)) + message(min(distance, n - distance), n)
        distance *= 2
    return t


def _doubling(t: Times, message: Message) -> Times:
    """Exchange with the rank whose number differs in bit k; ranks beyond a power of two fold in and out."""
    n = len(t)
    folded = 1 << (n.bit_length() - 1)
    t = t.copy()
    rest = n - folded
    if rest:
        t[:rest] = np.maximum(t[:rest], t[folded:]) + message(1, rest)
    core, ranks, distance = t[:folded], np.arange(folded), 1
    while distance < folded:
        chunks = min(n, distance * (2 if rest else 1))
        core = np.maximum(core, core[ranks ^ distance]) + message(chunks, folded)
        distance *= 2
    t[:folded] = core
    if rest:
        t[folded:] = np.maximum(t[folded:], t[:rest]) + message(n, rest)
    return t


def _tree(t: Times, message: Message) -> Times:
    """A binomial tree to rank 0 and back."""
    n = len(t)
    t = t.copy()
    distance = 1
    while distance < n:
        receivers = np.arange(0, n - distance, 2 * distance)
        senders = receivers + distance
        t[receivers] = np.maximum(t[receivers], t[senders]) + message(distance, len(receivers), busy=1)
        distance *= 2
    while distance > 1:
        distance //= 2
        senders = np.arange(0, n - distance, 2 * distance)
        t[senders + distance] = np.maximum(t[senders + distance], t[senders]) + message(
            n, len(senders), busy=1
        )
        t[senders] = t[senders] + message(n, len(senders), busy=1)
    return t
