"""Finding the neighbours through a store: no root, one set and one get a rank."""

from collections.abc import Awaitable, Callable
from time import monotonic, monotonic_ns
from typing import Any

from rankscope.emulation.bootstrap.address import own_host, pack, unpack
from rankscope.emulation.bootstrap.channel import Channel
from rankscope.emulation.bootstrap.errors import BootstrapError, Reason
from rankscope.emulation.bootstrap.handshake import Door, Liar, call, digest
from rankscope.emulation.bootstrap.lookup import Lookup, PollingLookup
from rankscope.emulation.bootstrap.loop import Loop, Task
from rankscope.emulation.bootstrap.ring import Ring
from rankscope.emulation.counts import Counts


def form_ring(
    store: Any,
    rank: int,
    world: int,
    *,
    timeout_s: float = 300.0,
    host: str | None = None,
    name: str = "default",
) -> Ring:
    """Connect this rank to its neighbours in a ring of `world` ranks.

    Args:
        store: any torch.distributed.Store that all ranks share.
        rank: this rank, from 0 to world - 1; world is at least 2.
        timeout_s: for all of it; late ranks are waited for until then.
        host: address at which the previous rank reaches this process; by default the one that leads to the
        store. name: of the communicator; several rings over one store need several names.

    Raises:
        BootstrapError: names the rank that is missing, does not answer or is not what it says.
        ValueError: rank or world make no sense.
    """
    check_rank(rank, world)
    loop = Loop()
    try:
        return loop.run(
            join(
                loop,
                PollingLookup(loop, store),
                rank,
                world,
                name,
                host or own_host(store),
                monotonic() + timeout_s,
            )
        )
    except BaseException:
        loop.close()
        raise


def check_rank(rank: int, world: int) -> None:
    if world < 2:
        raise ValueError(f"a ring has two ranks at least, not {world}")
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} is not one of 0 to {world - 1}")


def key_of(name: str, rank: int) -> str:
    """Where a rank's address is published."""
    return f"bootstrapAddr-{name}-{rank}"


async def join(
    loop: Loop, lookup: Lookup, rank: int, world: int, name: str, host: str, deadline: float
) -> Ring:
    """One rank's part of forming the ring; what form_ring and the emulation's virtual ranks run."""

    async def neighbour(door: Door, counts: Counts, timed: "Phases") -> tuple[str, int]:
        await publish(lookup, rank, name, pack(host, door.port), counts, timed)
        data = await find(lookup, rank, (rank + 1) % world, name, deadline, counts, timed)
        return address_of(rank, (rank + 1) % world, data)

    return await join_neighbours(loop, rank, world, name, host, deadline, neighbour)


class Phases:
    """Times of one rank's phases, one after the other (ns, CLOCK_MONOTONIC)."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, int, int]] = []
        self._begin = monotonic_ns()

    def done(self, name: str) -> None:
        now = monotonic_ns()
        self.spans.append((name, self._begin, now))
        self._begin = now


Neighbour = Callable[[Door, Counts, Phases], Awaitable[tuple[str, int]]]


async def join_neighbours(
    loop: Loop, rank: int, world: int, name: str, host: str, deadline: float, neighbour: Neighbour
) -> Ring:
    """Open a door, learn from `neighbour` where the next rank is, call it, let the previous one in."""
    counts, timed, comm = Counts(), Phases(), digest(name)
    door = Door.open(loop, host)
    following: Channel | None = None
    # From the start: the previous rank gets its answer even while we still look for the next one, so that it
    # is connected and hears from us whom we miss.
    previous_rank = (rank - 1) % world
    accepting = loop.spawn(door.accept(comm, rank, previous_rank, world, deadline))
    try:
        where = await neighbour(door, counts, timed)
        following = await _call_next(loop, where, comm, rank, world, deadline)
        counts.connects += 1
        timed.done("connect_next")
        previous = await _accept_previous(loop, accepting, door, rank, previous_rank, deadline)
        counts.accepts += 1
        timed.done("accept_previous")
        return Ring(rank, world, following, previous, loop, counts, timed.spans)
    except BootstrapError as error:
        loop.cancel(accepting)
        for channel in (following, accepting.result):
            if channel is not None:
                channel.abort(error.reason, -1 if error.culprit is None else error.culprit, rank)
        raise
    finally:
        door.close()


async def publish(
    lookup: Lookup, rank: int, name: str, address: bytes, counts: Counts, timed: Phases
) -> None:
    """Put this rank's address into the store."""
    try:
        await lookup.set(key_of(name, rank), address)
    except RuntimeError as error:
        raise BootstrapError(
            rank, "set_key", Reason.STORE, None, f"the store does not answer: {error}"
        ) from error
    counts.store_sets += 1
    timed.done("set_key")


async def find(
    lookup: Lookup, rank: int, wanted: int, name: str, deadline: float, counts: Counts, timed: Phases
) -> bytes:
    """Wait for the address of rank `wanted`."""
    try:
        data = await lookup.get(key_of(name, wanted), deadline)
    except TimeoutError as error:
        what = f"rank {wanted} is missing: it published no address in time"
        raise BootstrapError(rank, "get_key", Reason.MISSING, wanted, what) from error
    except RuntimeError as error:
        raise BootstrapError(
            rank, "get_key", Reason.STORE, None, f"the store does not answer: {error}"
        ) from error
    counts.store_gets += 1
    timed.done("get_key")
    return data


def address_of(rank: int, wanted: int, data: bytes) -> tuple[str, int]:
    try:
        return unpack(data)[:2]
    except ValueError as error:
        what = f"rank {wanted} published what is no address: {error}"
        raise BootstrapError(rank, "get_key", Reason.LIED, wanted, what) from error


async def _call_next(
    loop: Loop, where: tuple[str, int], comm: bytes, rank: int, world: int, deadline: float
) -> Channel:
    wanted = (rank + 1) % world
    try:
        return await call(loop, where, comm, rank, wanted, world, deadline)
    except TimeoutError as error:
        what = f"rank {wanted} does not answer at {where[0]}:{where[1]}, the address it published"
        raise BootstrapError(rank, "connect_next", Reason.UNREACHABLE, wanted, what) from error
    except Liar as error:
        what = f"rank {wanted} is not at {where[0]}:{where[1]}, the address it published: who answers {error}"
        raise BootstrapError(rank, "connect_next", Reason.LIED, wanted, what) from error


async def _accept_previous(
    loop: Loop, accepting: Task[Channel], door: Door, rank: int, expected: int, deadline: float
) -> Channel:
    await loop.until(accepting.finished)
    try:
        return accepting.value()
    except TimeoutError as error:
        came = f" (there came {'; '.join(door.complaints[:4])})" if door.complaints else ""
        reason = Reason.LIED if came else Reason.MISSING
        what = f"rank {expected} did not connect in time{came}"
        raise BootstrapError(rank, "accept_previous", reason, expected, what) from error
