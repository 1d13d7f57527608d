"""Very many virtual ranks a worker: their store requests travel in batches, their connections are shared.

Every rank still publishes its own address, looks up its neighbour's, calls it and is called, each with a
message of its own; only sockets are shared, one pair of workers one connection, so that 100,000 ranks fit
into a few hundred open files.
"""

import struct
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any, Final

from rankscope.emulation.bootstrap.address import unpack
from rankscope.emulation.bootstrap.channel import Channel
from rankscope.emulation.bootstrap.errors import BootstrapError, Reason
from rankscope.emulation.bootstrap.handshake import Door, dial
from rankscope.emulation.bootstrap.loop import Loop, Signal, Task

_HELLO, _WELCOME = 1, 2
_FRAME: Final = struct.Struct("<iii")  # kind, from, to
_BATCH: Final = 2_000
_READ_BYTES: Final = 1 << 16


class BatchLookup:
    """The store for a worker's ranks: what they ask for in one turn of the loop is one request."""

    def __init__(self, loop: Loop, store: Any, timeout_s: float) -> None:
        self._loop, self._store = loop, store
        store.set_timeout(timedelta(seconds=timeout_s))
        self._sets: dict[str, bytes] = {}
        self._gets: list[str] = []
        self._found: dict[str, bytes] = {}
        self._flush: Task[None] | None = None
        self.requests = 0  # on the wire, shared by all

    async def set(self, key: str, value: bytes) -> None:
        self._sets[key] = value
        await self._loop.until(self._later().finished)

    async def get(self, key: str, deadline: float) -> bytes:
        self._gets.append(key)
        await self._loop.until(self._later().finished)
        if key not in self._found:
            raise TimeoutError
        return self._found.pop(key)

    def _later(self) -> Task[None]:
        if self._flush is None or self._flush.done:
            self._flush = self._loop.spawn(self._send())
        return self._flush

    async def _send(self) -> None:
        await self._loop.pause(0)  # let every rank say what it wants
        sets, self._sets = list(self._sets.items()), {}
        gets, self._gets = self._gets, []
        for some in _batches(sets):
            self._store.multi_set([k for k, _ in some], [v for _, v in some])
            self.requests += 1
        for keys in _batches(gets):
            try:
                values = self._store.multi_get(keys)
            except RuntimeError:
                # A key is not there: find out which ones are.
                keys = [key for key in keys if self._store.check([key])]
                values = self._store.multi_get(keys) if keys else []
            self.requests += 1
            self._found.update(zip(keys, map(bytes, values), strict=True))


def _batches(items: list[Any]) -> list[list[Any]]:
    return [items[i : i + _BATCH] for i in range(0, len(items), _BATCH)]


class Switchboard:
    """A worker's shared connections: calls of its ranks go out, calls to its ranks come in."""

    def __init__(self, loop: Loop, host: str, world: int, mine: range) -> None:
        self._loop, self._world, self._mine = loop, world, mine
        self.door = Door.open(loop, host)
        self.host = host
        self.called: dict[int, int] = {}  # my rank -> who called it
        self.answered: dict[int, int] = {}  # my rank -> who answered it
        self._signals: dict[tuple[int, int], Signal] = {}
        self._lines: dict[tuple[str, int], Line] = {}
        self._tasks: list[Task[Any]] = [loop.spawn(self._answer_door())]
        self._incoming: list[Line] = []

    def signal(self, kind: int, rank: int) -> Signal:
        return self._signals.setdefault((kind, rank), Signal())

    async def call(self, where: tuple[str, int], rank: int, wanted: int, deadline: float) -> None:
        """Call rank `wanted` for `rank`, and hear its answer."""
        line = self._lines.get(where)
        if line is None:
            line = self._lines[where] = Line(self._loop)
            self._tasks.append(self._loop.spawn(self._connect(line, where, deadline)))
        line.send(_FRAME.pack(_HELLO, rank, wanted))
        await self._loop.until(self.signal(_WELCOME, rank), deadline)

    async def be_called(self, rank: int, deadline: float) -> int:
        """Who called `rank`."""
        await self._loop.until(self.signal(_HELLO, rank), deadline)
        return self.called[rank]

    def close(self) -> None:
        """End what still listens."""
        for task in self._tasks:
            self._loop.cancel(task)
        for line in (*self._lines.values(), *self._incoming):
            line.close()
        self.door.close()

    @property
    def connections(self) -> int:
        """Sockets that all of the worker's ranks share."""
        return len(self._lines) + len(self._incoming)

    async def _answer_door(self) -> None:
        while True:
            try:
                sock, _ = self.door.sock.accept()
            except BlockingIOError:
                await self._loop.wait([self.door.sock], float("inf"))
                continue
            self._loop.watch(sock)
            line = Line(self._loop)
            self._incoming.append(line)
            self._tasks.append(self._loop.spawn(line.carry(Channel(sock, -1), self._hear)))

    async def _connect(self, line: "Line", where: tuple[str, int], deadline: float) -> None:
        channel = None
        while channel is None:
            channel = await dial(self._loop, where, -1, deadline)
            if channel is None:
                await self._loop.pause(0.05)
        await line.carry(channel, self._hear)

    def _hear(self, line: "Line", kind: int, caller: int, called: int) -> None:
        if kind == _HELLO and called in self._mine:
            self.called[called] = caller
            self._loop.set(self.signal(_HELLO, called))
            line.send(_FRAME.pack(_WELCOME, called, caller))
        elif kind == _WELCOME and called in self._mine:
            self.answered[called] = caller
            self._loop.set(self.signal(_WELCOME, called))


class Line:
    """One shared connection: what its ranks send in one turn goes out together."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._channel: Channel | None = None
        self._out = bytearray()

    def send(self, frame: bytes) -> None:
        self._out += frame
        if self._channel is not None and len(self._out) >= _READ_BYTES:
            self._push()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    async def carry(self, channel: Channel, hear: Callable[["Line", int, int, int], None]) -> None:
        """Carry frames both ways until the other worker hangs up."""
        self._channel = channel
        rest = b""
        while True:
            self._push()
            try:
                data = channel.sock.recv(_READ_BYTES)
            except BlockingIOError:
                await self._loop.pause(0)
                if not self._out:
                    await self._wait(channel)
                continue
            except ConnectionResetError:
                return
            if not data:
                return
            rest += data
            whole = len(rest) - len(rest) % _FRAME.size
            for frame in _FRAME.iter_unpack(rest[:whole]):
                hear(self, *frame)
            rest = rest[whole:]

    async def _wait(self, channel: Channel) -> None:
        # Ranks of this worker may have something to send at any time, so look again soon.
        try:
            await self._loop.wait([channel.sock], monotonic() + 0.002)
        except TimeoutError:
            return

    def _push(self) -> None:
        if self._channel is None or not self._out:
            return
        try:
            sent = self._channel.sock.send(self._out)
        except BlockingIOError:
            return
        del self._out[:sent]


def address_in(rank: int, wanted: int, data: bytes) -> tuple[str, int]:
    """Where the worker of rank `wanted` listens; its lane must be the rank's own."""
    try:
        host, port, lane = unpack(data)
    except ValueError as error:
        what = f"rank {wanted} published what is no address: {error}"
        raise BootstrapError(rank, "get_key", Reason.LIED, wanted, what) from error
    if lane != wanted:
        what = f"rank {wanted} published the address of rank {lane}"
        raise BootstrapError(rank, "get_key", Reason.LIED, wanted, what)
    return host, port
