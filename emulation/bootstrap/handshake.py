"""Connecting two neighbours so that both know whom they have: who calls says who it is, "
"who is called answers."""

import contextlib
import hashlib
import socket
import struct
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from rankscope.emulation.bootstrap.channel import Channel, PeerGone, Silence, exchange
from rankscope.emulation.bootstrap.loop import Loop

_MAGIC: Final = b"RSKRING1"
HELLO: Final = struct.Struct("<8s8siii")  # magic, communicator, from, to, world
WELCOME: Final = struct.Struct("<8s8sii")  # magic, communicator, rank, verdict
_GREETING_S: Final = 5.0  # for a caller's greeting, so that a stranger cannot hold the door
_FIRST_PAUSE_S: Final = 0.005


def digest(name: str) -> bytes:
    """Eight bytes that stand for a communicator's name."""
    return hashlib.blake2b(name.encode(), digest_size=8).digest()


class Liar(Exception):
    """Whoever answers is not the rank that was looked for."""


@dataclass
class Door:
    """A listening socket where one neighbour is expected, and who else came."""

    sock: socket.socket
    loop: Loop
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, loop: Loop, host: str, port: int = 0, backlog: int = 128) -> "Door":
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.bind((host, port))
        sock.listen(backlog)
        loop.watch(sock)
        return cls(sock, loop)

    @property
    def port(self) -> int:
        return int(self.sock.getsockname()[1])

    def close(self) -> None:
        self.sock.close()

    async def accept(self, comm: bytes, me: int, expected: int, world: int, deadline: float) -> Channel:
        """The connection of rank `expected`; others are sent away and remembered.

        Raises:
            TimeoutError: it did not come.
        """
        while True:
            try:
                sock, _ = self.sock.accept()
            except BlockingIOError:
                await self.loop.wait([self.sock], deadline)
                continue
            self.loop.watch(sock)
            channel = Channel(sock, expected)
            complaint = await self._greet(channel, comm, me, expected, world, deadline)
            if complaint is None:
                return channel
            self.complaints.append(complaint)
            channel.close()

    async def _greet(
        self, channel: Channel, comm: bytes, me: int, expected: int, world: int, deadline: float
    ) -> str | None:
        hello = bytearray(HELLO.size)
        limit = min(deadline, monotonic() + _GREETING_S)
        try:
            await exchange(self.loop, [], [(channel, memoryview(hello))], limit)
        except (PeerGone, Silence):
            return "a caller that did not say who it is"
        magic, theirs, caller, called, size = HELLO.unpack(hello)
        complaint = None
        if magic != _MAGIC:
            complaint = "a caller that speaks another protocol"
        elif theirs != comm:
            complaint = f"rank {caller} of another communicator"
        elif size != world:
            complaint = f"rank {caller}, which thinks that there are {size} ranks instead of {world}"
        elif caller != expected or called != me:
            complaint = f"a process that says it is rank {caller} and wants rank {called}"
        answer = WELCOME.pack(_MAGIC, comm, me, 0 if complaint is None else 1)
        with contextlib.suppress(PeerGone, Silence):
            await exchange(self.loop, [(channel, answer)], [], limit)
        return complaint


async def call(
    loop: Loop, where: tuple[str, int], comm: bytes, me: int, wanted: int, world: int, deadline: float
) -> Channel:
    """Connect to rank `wanted` at `where`, again while nobody listens.

    Raises:
        TimeoutError: nobody answered. Liar: somebody else did.
    """
    pause = _FIRST_PAUSE_S
    while True:
        channel = await dial(loop, where, wanted, deadline)
        if channel is not None:
            break
        if monotonic() + pause >= deadline:
            raise TimeoutError
        await loop.pause(pause)
        pause = min(0.5, 1.5 * pause)
    answer = bytearray(WELCOME.size)
    try:
        await exchange(loop, [(channel, HELLO.pack(_MAGIC, comm, me, wanted, world))], [], deadline)
        await exchange(loop, [], [(channel, memoryview(answer))], deadline)
    except Silence as error:
        channel.close()
        raise TimeoutError from error
    except PeerGone as error:
        channel.close()
        raise Liar("hung up without an answer") from error
    magic, theirs, rank, verdict = WELCOME.unpack(answer)
    if magic == _MAGIC and theirs == comm and rank == wanted and verdict == 0:
        return channel
    channel.close()
    if magic != _MAGIC or theirs != comm:
        raise Liar("is a process of something else")
    raise Liar(f"is rank {rank}" if rank != wanted else "refuses this rank as its neighbour")


async def dial(loop: Loop, where: tuple[str, int], wanted: int, deadline: float) -> Channel | None:
    """One attempt to connect; None when nobody listens there. TimeoutError at the deadline."""
    sock = socket.socket(socket.AF_INET6 if ":" in where[0] else socket.AF_INET, socket.SOCK_STREAM)
    loop.watch(sock)
    connected = True
    try:
        sock.connect(where)
    except BlockingIOError:
        loop.watch_writing(sock, True)
        try:
            connected = await _connected(loop, sock, deadline)
        except TimeoutError:
            sock.close()
            raise
        loop.watch_writing(sock, False)
    except OSError:
        connected = False
    if not connected:
        sock.close()
        return None
    return Channel(sock, wanted)


async def _connected(loop: Loop, sock: socket.socket, deadline: float) -> bool:
    """Whether the connection came about, once the kernel knows."""
    while True:
        await loop.wait([sock], deadline)
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return False
        try:
            sock.getpeername()
        except OSError:
            continue  # woken by the registration, not by the connection
        return True
