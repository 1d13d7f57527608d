"""Finding the neighbour in virtual time: when each rank is through each phase of it, by method.

Every function returns the phases in order, each with the time at which every rank was through it.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from rankscope.emulation.counts import Counts
from rankscope.emulation.model.costs import Costs
from rankscope.emulation.model.scenario import GENERATIONS, Ring, Scenario
from rankscope.emulation.model.server import ROOT_ATTEMPTS, Server, root_backoff, store_backoff

Times = npt.NDArray[np.float64]

ROOT_IN_BYTES: Final = 176
ROOT_OUT_BYTES: Final = 128


@dataclass
class Phase:
    """One phase of a start: `ends_s[rank]` is when a rank was through, on the start's own clock."""

    name: str
    ends_s: Times
    endpoint: str  # who is busy in it
    growth: str  # how it grows with ranks, "O(N)"


@dataclass
class Formed:
    """The ring as formed, and what it took."""

    phases: list[Phase]
    counts: Counts
    notes: list[str] = field(default_factory=list)
    store_bytes: int = 0  # out of the store


def form(scenario: Scenario, costs: Costs, begins: Times) -> Formed:
    """Form the ring of `scenario` by its method, ranks beginning at `begins`."""
    if scenario.ring is Ring.TCPSTORE:
        return _store_ring(scenario, costs, begins)
    return _root_ring(scenario, costs, begins)


def parts(ranks: int, roots: int) -> npt.NDArray[np.int64]:
    """First rank of each root's part, and the number of ranks behind the last (NCCL's firstRankFromRoot)."""
    index = np.arange(roots + 1)
    return np.asarray(index * (ranks // roots) + np.minimum(index, ranks % roots), dtype=np.int64)


def _root_ring(scenario: Scenario, costs: Costs, begins: Times) -> Formed:
    """Report to a root, hear from it who is next, connect. The root is one thread."""
    n, roots = scenario.ranks, scenario.root_count
    generation = GENERATIONS[scenario.generation]
    counts = Counts(store_connections=n, store_sets=roots, store_gets=n * roots, connects=n, accepts=n)
    formed = Formed([], counts, store_bytes=ROOT_OUT_BYTES * n * roots)
    known = _root_ids(scenario, costs, begins)
    growth = "O(N·R)" if roots > 1 else "O(N)"
    formed.phases.append(Phase("root_ids", known, f"store: {n * roots:,} key reads", growth))

    ready = known
    edges = parts(n, roots)
    if scenario.ring is Ring.STAGGERED or (roots > 1 and generation.reply_when_known):
        ready = known.copy()
        for first, last in pairwise(edges):
            if last - first > generation.stagger_from:
                ready[first:last] += np.arange(last - first) * generation.stagger_per_rank_s
        name = "root (rank 0), spared by waiting" if roots == 1 else f"{roots} roots, spared by waiting"
        formed.phases.append(Phase("stagger", ready, name, "O(N)" if roots == 1 else "O(N/R)"))

    heard = np.empty(n)
    refused = gave_up = attempts = 0
    for first, last in pairwise(edges):
        # A root also serves its part's neighbour: the first rank of the next part, unless it serves all.
        part = _RootPart(int(first), int(last), n, scenario, costs, generation.reply_when_known)
        heard[first:last] = part.run(ready)
        counts.root_in += part.received
        counts.root_out += int(last - first)
        refused += part.server.refusals.refused
        gave_up += part.server.refusals.gave_up
        attempts = max(attempts, part.server.refusals.most_attempts)
    if refused:
        formed.notes.append(
            f"the root's backlog of {scenario.backlog:,} was full: {refused:,} connections tried again, "
            f"up to {attempts} times each"
        )
    if gave_up:
        formed.notes.append(f"{gave_up:,} ranks gave up after {ROOT_ATTEMPTS} attempts: this start fails")
    endpoint = (
        f"root (rank 0): {n:,} connections in, {n:,} out, one thread"
        if roots == 1
        else f"{roots:,} roots: {counts.root_in:,} messages in, one thread each"
    )
    formed.phases.append(Phase("root", heard, endpoint, "O(N)" if roots == 1 else "O(N/R)"))
    formed.phases += _connect(heard, begins, scenario, costs)
    return formed


def _root_ids(scenario: Scenario, costs: Costs, begins: Times) -> Times:
    """Every rank reads the address of every root from the store, in one request each."""
    n, roots = scenario.ranks, scenario.root_count
    service = costs.store_op_s + max(
        roots * costs.store_key_s, roots * ROOT_OUT_BYTES / costs.bytes_per_s if roots > 1 else 0.0
    )
    order = np.argsort(begins, kind="stable")
    arrivals = begins[order] + costs.store_trip_s
    before = np.arange(n) * service
    done = np.maximum.accumulate(arrivals - before) + before + service
    known = np.empty(n)
    known[order] = done + costs.store_trip_s
    return known


class _RootPart:
    """One root and the ranks that it serves, [first, last)."""

    def __init__(
        self, first: int, last: int, ranks: int, scenario: Scenario, costs: Costs, reply_when_known: bool
    ) -> None:
        self.first, self.last, self.ranks = first, last, ranks
        self.costs = costs
        self.reply_when_known = reply_when_known
        self.server = Server(backlog=scenario.backlog, backoff=root_backoff, attempts=ROOT_ATTEMPTS)
        # With several roots the first rank of the next part reports here too, so that the parts join.
        joins = last - first < ranks
        self.members = last - first + (1 if joins else 0)
        self.joins = joins
        self.came = np.zeros(self.members, dtype=bool)
        self.heard = np.full(last - first, np.nan)
        self.received = 0

    def run(self, ready: Times) -> Times:
        """When each rank of the part has its neighbour's address."""
        for member in range(self.members):
            rank = (self.first + member) % self.ranks
            self.server.at(float(ready[rank]) + self.costs.connect_s, member, 0)
        self.server.run(self._report)
        if not self.reply_when_known:
            self._reply_all()
        # A rank whose neighbour gave up never hears: it is as late as the last one that did.
        worst = float(np.nanmax(self.heard)) if not np.all(np.isnan(self.heard)) else 0.0
        return np.where(np.isnan(self.heard), worst, self.heard)

    def _report(self, now: float, member: int, stage: int, attempt: int) -> None:
        done = self.server.admit(now, member, stage, attempt, self.costs.accept_s)
        if done is None:
            return
        self.received += 1
        self.came[member] = True
        if self.reply_when_known:
            for asker in (member - 1 if member or self.joins else self.members - 1, member):
                if 0 <= asker < len(self.heard) and np.isnan(self.heard[asker]) and self._both_known(asker):
                    self._reply(asker, done)

    def _both_known(self, asker: int) -> bool:
        follower = asker + 1 if self.joins else (asker + 1) % self.members
        return bool(self.came[asker] and self.came[follower])

    def _reply(self, asker: int, now: float) -> None:
        self.heard[asker] = self.server.take(now, self.costs.reply_s) + self.costs.hop_s

    def _reply_all(self) -> None:
        for asker in range(len(self.heard)):
            if self._both_known(asker):
                self._reply(asker, 0.0)  # after everything that was taken before


_ACCEPT, _VALIDATE, _SET, _WAIT, _GET = range(5)


def _store_ring(scenario: Scenario, costs: Costs, begins: Times) -> Formed:
    """Connect to the store, publish the own address, wait for and read the next one's: no root."""
    n = scenario.ranks
    server = Server(backlog=scenario.backlog, backoff=store_backoff, attempts=None)
    connected, published, found = np.empty(n), np.empty(n), np.empty(n)
    is_set = np.zeros(n, dtype=bool)
    parked: dict[int, float] = {}  # rank -> when its wait was served, its key not being there yet
    trip, op = costs.store_trip_s, costs.store_op_s

    def handle(now: float, rank: int, stage: int, attempt: int) -> None:
        if stage == _ACCEPT:
            done = server.admit(now, rank, stage, attempt, costs.store_accept_s)
            if done is not None:
                server.at(done + 2 * trip, rank, _VALIDATE)
        elif stage == _VALIDATE:  # validate and ping go together, ping is answered
            connected[rank] = server.take(now, 2 * op) + trip
            server.at(float(connected[rank]) + trip, rank, _SET)
        elif stage == _SET:  # set and wait go together, wait is answered when its key is there
            done = server.take(now, op)
            published[rank] = done
            is_set[rank] = True
            waiting = parked.pop((rank - 1) % n, None)
            if waiting is not None:
                server.at(max(waiting, done) + 2 * trip, (rank - 1) % n, _GET)
            server.at(done, rank, _WAIT)
        elif stage == _WAIT:
            done = server.take(now, op)
            if is_set[(rank + 1) % n]:
                server.at(done + 2 * trip, rank, _GET)
            else:
                parked[rank] = done
        else:
            found[rank] = server.take(now, op) + trip

    for rank in range(n):
        server.at(float(begins[rank]) + costs.connect_s, rank, _ACCEPT)
    server.run(handle)
    counts = Counts(store_connections=n, store_sets=n, store_gets=n, connects=n, accepts=n)
    endpoint = f"store: {n:,} connections, {5 * n:,} requests, one thread"
    formed = Formed(
        [
            Phase("create_store", connected, endpoint, "O(N)"),
            Phase("set_key", np.maximum(published, connected), endpoint, "O(N)"),
            Phase("get_key", found, endpoint, "O(N)"),
            *_connect(found, begins, scenario, costs),
        ],
        counts,
        store_bytes=40 * n,
    )
    if server.refusals.refused:
        formed.notes.append(
            f"the store's backlog of {scenario.backlog:,} was full: {server.refusals.refused:,} connections "
            f"tried again, up to {server.refusals.most_attempts} times each"
        )
    return formed


def _connect(found: Times, begins: Times, scenario: Scenario, costs: Costs) -> list[Phase]:
    """Connect to the next rank, accept the previous one; on a crowded host its processors are the bound."""
    crowd_s = scenario.ranks_a_host * costs.join_cpu_s / costs.cores if costs.cores else 0.0
    connected = np.maximum(found + costs.connect_s, begins.max() + crowd_s)
    accepted = np.maximum(connected, np.roll(connected, 1))
    each = "every rank: its two neighbours"
    growth = "O(N)" if crowd_s else "O(1)"
    return [Phase("connect_next", connected, each, growth), Phase("accept_previous", accepted, each, growth)]
