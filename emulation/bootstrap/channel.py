"""A connection to a neighbour: what travels over it, several exchanges at once, and how an end is told."""

import contextlib
import socket
import struct
from collections.abc import Sequence
from typing import Final

from rankscope.emulation.bootstrap.loop import Loop

HEADER: Final = struct.Struct("<iI")  # origin rank, size; origin below zero: an abort
_ABORT: Final = struct.Struct("<iIi")  # -reason, culprit, seen by
Buffer = bytes | memoryview


class PeerGone(Exception):
    """The neighbour's connection is closed."""

    def __init__(self, peer: int) -> None:
        super().__init__(f"rank {peer} closed its connection")
        self.peer = peer


class Aborted(Exception):
    """The neighbour passed on that a rank is to blame."""

    def __init__(self, reason: int, culprit: int, seen_by: int) -> None:
        super().__init__(f"rank {culprit}: {reason}")
        self.reason, self.culprit, self.seen_by = reason, culprit, seen_by


class Silence(Exception):
    """Nothing came from these neighbours until the deadline."""

    def __init__(self, peers: Sequence[int]) -> None:
        super().__init__(f"silent: {peers}")
        self.peers = tuple(peers)


class Channel:
    """One connected, watched socket and the rank at its other end."""

    __slots__ = ("peer", "sock", "whole")

    def __init__(self, sock: socket.socket, peer: int) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.peer = sock, peer
        self.whole = True  # no message was sent in part

    def close(self) -> None:
        self.sock.close()

    def abort(self, reason: int, culprit: int, seen_by: int) -> None:
        """Tell the neighbour who is to blame, as far as it still listens, and close."""
        if self.whole:
            with contextlib.suppress(OSError):
                self.sock.send(_ABORT.pack(-reason, culprit, seen_by))
        # Closed with unread data the kernel would reset, and the neighbour lose our message: end it politely.
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        self.sock.close()

    def last_words(self) -> Aborted | None:
        """The abort that the neighbour sent on a connection that only we write to, if any."""
        try:
            words = self.sock.recv(_ABORT.size, socket.MSG_DONTWAIT)
        except OSError:
            return None
        return parse_abort(words)


def parse_abort(words: bytes) -> Aborted | None:
    if len(words) < _ABORT.size:
        return None
    reason, culprit, seen_by = _ABORT.unpack_from(words)
    return Aborted(-reason, culprit, seen_by) if reason < 0 else None


async def exchange(
    loop: Loop,
    out: Sequence[tuple[Channel, Buffer]],
    into: Sequence[tuple[Channel, memoryview]],
    deadline: float,
) -> None:
    """Send and receive all of it, in whatever order the neighbours allow.

    Raises:
        PeerGone, Aborted, Silence: and from whom.
    """
    sending = [(channel, memoryview(data)) for channel, data in out if len(data)]
    receiving = [(channel, view) for channel, view in into if len(view)]
    while True:
        sending = [rest for rest in map(_push, sending) if rest is not None]
        receiving = [rest for rest in map(_pull, receiving) if rest is not None]
        if not sending and not receiving:
            return
        for channel, _ in sending:
            loop.watch_writing(channel.sock, True)
        try:
            await loop.wait({c.sock for c, _ in (*sending, *receiving, *out)}, deadline)
        except TimeoutError:
            raise Silence([c.peer for c, _ in (receiving or sending)]) from None
        for channel, _ in sending:
            loop.watch_writing(channel.sock, False)
        if receiving:
            _listen_to_readers(out, into)


def _push(item: tuple[Channel, memoryview]) -> tuple[Channel, memoryview] | None:
    channel, data = item
    try:
        sent = channel.sock.send(data)
    except BlockingIOError:
        return item
    except OSError as error:
        raise channel.last_words() or PeerGone(channel.peer) from error
    if sent == len(data):
        channel.whole = True
        return None
    channel.whole = False
    return channel, data[sent:]


def _pull(item: tuple[Channel, memoryview]) -> tuple[Channel, memoryview] | None:
    channel, view = item
    try:
        got = channel.sock.recv_into(view)
    except BlockingIOError:
        return item
    except OSError as error:
        raise PeerGone(channel.peer) from error
    if got == 0:
        raise PeerGone(channel.peer)
    return None if got == len(view) else (channel, view[got:])


def _listen_to_readers(
    out: Sequence[tuple[Channel, Buffer]], into: Sequence[tuple[Channel, memoryview]]
) -> None:
    """A neighbour that only reads from us may have given up: it says so, or closes."""
    heard = {id(channel) for channel, _ in into}
    for channel, _ in out:
        if id(channel) in heard:
            continue
        try:
            words = channel.sock.recv(_ABORT.size, socket.MSG_PEEK)
        except BlockingIOError:
            continue
        except OSError as error:
            raise PeerGone(channel.peer) from error
        abort = parse_abort(words)
        if abort is not None:
            raise abort
        if not words:
            raise PeerGone(channel.peer)
