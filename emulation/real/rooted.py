"""The root methods for real: report to a root, hear from it where the next rank listens."""

import struct
from time import monotonic
from typing import Final

from rankscope.emulation.bootstrap.address import ADDRESS_BYTES, pack, unpack
from rankscope.emulation.bootstrap.channel import Channel, PeerGone, Silence, exchange
from rankscope.emulation.bootstrap.errors import BootstrapError, Reason
from rankscope.emulation.bootstrap.form_ring import Phases, address_of, join_neighbours
from rankscope.emulation.bootstrap.handshake import Door, dial
from rankscope.emulation.bootstrap.lookup import Lookup
from rankscope.emulation.bootstrap.loop import Loop
from rankscope.emulation.bootstrap.ring import Ring
from rankscope.emulation.counts import Counts
from rankscope.emulation.model.formation import ROOT_IN_BYTES, ROOT_OUT_BYTES, parts
from rankscope.emulation.model.scenario import GENERATIONS
from rankscope.emulation.real.plan import RealPlan

# rank, world, address for the root's answer, address for the previous rank; the rest is padding
_REPORT: Final = struct.Struct(f"<ii{ADDRESS_BYTES}s{ADDRESS_BYTES}s{ROOT_IN_BYTES - 8 - 2 * ADDRESS_BYTES}x")
_BACKLOG: Final = 16_384


def root_key(name: str, root: int) -> str:
    """Where a root's address is published."""
    return f"bootstrapRoot-{name}-{root}"


def first_ranks(plan: RealPlan) -> list[int]:
    """The first rank of each root's part, and the number of ranks."""
    return [int(first) for first in parts(plan.ranks, plan.scenario.root_count)]


class Root:
    """One root: a thread's worth of accepting and answering, one connection after the other."""

    def __init__(self, loop: Loop, plan: RealPlan, index: int, host: str) -> None:
        edges = first_ranks(plan)
        self.loop, self.plan, self.index, self.host = loop, plan, index, host
        self.first, self.last = edges[index], edges[index + 1]
        joins = self.last - self.first < plan.ranks
        self.wanted = {r % plan.ranks for r in range(self.first, self.last + (1 if joins else 0))}
        self.door = Door.open(loop, host, backlog=_BACKLOG)
        self.counts = Counts()
        self._answers: dict[int, tuple[str, int]] = {}
        self._doors: dict[int, bytes] = {}
        self._told: set[int] = set()

    async def serve(self, lookup: Lookup, deadline: float) -> None:
        """Hear all, answer all."""
        await lookup.set(root_key(self.plan.name, self.index), pack(self.host, self.door.port))
        self.counts.store_sets += 1
        soon = GENERATIONS[self.plan.generation].reply_when_known
        try:
            while len(self._doors) < len(self.wanted):
                rank = await self._hear(deadline)
                if soon:
                    for asker in ((rank - 1) % self.plan.ranks, rank):
                        await self._answer(asker, deadline)
            for asker in range(self.first, self.last):
                await self._answer(asker, deadline)
        except TimeoutError as error:
            missing = sorted(self.wanted - self._doors.keys())
            what = f"{len(missing)} ranks are missing, among them {missing[:8]}"
            raise BootstrapError(
                self.first, "root", Reason.MISSING, missing[0] if missing else None, what
            ) from error
        finally:
            self.door.close()

    async def _hear(self, deadline: float) -> int:
        while True:
            try:
                sock, _ = self.door.sock.accept()
                break
            except BlockingIOError:
                await self.loop.wait([self.door.sock], deadline)
        self.loop.watch(sock)
        report = bytearray(_REPORT.size)
        channel = Channel(sock, -1)
        await exchange(self.loop, [], [(channel, memoryview(report))], deadline)
        channel.close()
        rank, _, answer, door = _REPORT.unpack(report)
        self._answers[rank] = unpack(answer)[:2]
        self._doors[rank] = door
        self.counts.root_in += 1
        return int(rank)

    async def _answer(self, asker: int, deadline: float) -> None:
        following = (asker + 1) % self.plan.ranks
        ours = self.first <= asker < self.last
        if not ours or asker in self._told or asker not in self._doors or following not in self._doors:
            return
        channel = await dial(self.loop, self._answers[asker], asker, deadline)
        if channel is None:
            raise BootstrapError(
                self.first, "root", Reason.UNREACHABLE, asker, f"rank {asker} does not answer"
            )
        answer = self._doors[following].ljust(ROOT_OUT_BYTES, b"\0")
        await exchange(self.loop, [(channel, answer)], [], deadline)
        channel.close()
        self._told.add(asker)
        self.counts.root_out += 1


async def join_rooted(
    loop: Loop, lookup: Lookup, plan: RealPlan, rank: int, host: str, deadline: float
) -> Ring:
    """One virtual rank's part: read the roots' addresses, report to its own, wait for the answer, connect."""
    edges = first_ranks(plan)
    roots = len(edges) - 1
    mine = next(i for i in range(roots) if edges[i] <= rank < edges[i + 1])

    async def neighbour(door: Door, counts: Counts, timed: Phases) -> tuple[str, int]:
        addresses = []
        for root in range(roots):
            addresses.append(await lookup.get(root_key(plan.name, root), deadline))
            counts.store_gets += 1
        timed.done("root_ids")
        targets = [mine]
        if rank == edges[mine] and roots > 1:  # the part before ends with this rank's address
            targets.append((mine - 1) % roots)
        generation = GENERATIONS[plan.generation]
        if plan.ring == "root-staggered" and edges[mine + 1] - edges[mine] > generation.stagger_from:
            await loop.pause((rank - edges[mine]) * generation.stagger_per_rank_s)
            timed.done("stagger")
        reply = Door.open(loop, host)
        try:
            report = _REPORT.pack(rank, plan.ranks, pack(host, reply.port), pack(host, door.port))
            for target in targets:
                await _report(loop, unpack(addresses[target])[:2], report, rank, deadline)
            data = await _hear_root(loop, reply, rank, deadline)
        finally:
            reply.close()
        timed.done("root")
        return address_of(rank, (rank + 1) % plan.ranks, data)

    return await join_neighbours(loop, rank, plan.ranks, plan.name, host, deadline, neighbour)


async def _report(loop: Loop, where: tuple[str, int], report: bytes, rank: int, deadline: float) -> None:
    """Connect to the root and report, again with longer and longer pauses while it does not take us."""
    attempt = 1
    while (channel := await dial(loop, where, -1, deadline)) is None:
        if monotonic() >= deadline:
            raise BootstrapError(rank, "root", Reason.UNREACHABLE, None, "the root does not answer")
        await loop.pause(0.1 * attempt)
        attempt += 1
    try:
        await exchange(loop, [(channel, report)], [], deadline)
    except (PeerGone, Silence) as error:
        raise BootstrapError(rank, "root", Reason.GONE, None, "the root hung up") from error
    finally:
        channel.close()


async def _hear_root(loop: Loop, reply: Door, rank: int, deadline: float) -> bytes:
    while True:
        try:
            sock, _ = reply.sock.accept()
            break
        except BlockingIOError:
            try:
                await loop.wait([reply.sock], deadline)
            except TimeoutError as error:
                raise BootstrapError(
                    rank, "root", Reason.SILENT, None, "the root did not answer in time: it waits for others"
                ) from error
    loop.watch(sock)
    channel = Channel(sock, -1)
    answer = bytearray(ROOT_OUT_BYTES)
    try:
        await exchange(loop, [], [(channel, memoryview(answer))], deadline)
    except (PeerGone, Silence) as error:
        raise BootstrapError(rank, "root", Reason.GONE, None, "the root hung up") from error
    finally:
        channel.close()
    return bytes(answer[:ADDRESS_BYTES])
