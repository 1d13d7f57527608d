"""A connection to a neighbour: what travels over it, several exchanges at once, and how an end is told."""

import contextlib
import socket
import struct
from collections.abc import Sequence
from typing import Final

from rankscope.emulation.bootstrap.loop import Loop

# Every message begins with the rank that its content comes from; below zero it is an abort instead.
ORIGIN: Final = struct.Struct("<i")
HEADER: Final = struct.Struct("<iI")  # origin, size of its chunk
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

    def abort_after(self, begun: bytes = b"") -> Aborted | None:
        """The abort whose first bytes are `begun`, or that waits on a connection that only we write to."""
        words = begun[: _ABORT.size]
        if len(words) >= ORIGIN.size and ORIGIN.unpack_from(words)[0] >= 0:
            return None
        try:
            words += self.sock.recv(_ABORT.size - len(words), socket.MSG_DONTWAIT)
        except OSError:
            return None
        return _parse(words)


def _parse(words: bytes) -> Aborted | None:
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
    receiving = [_Inbound(channel, view) for channel, view in into if len(view)]
    while True:
        sending = [rest for rest in map(_push, sending) if rest is not None]
        receiving = [inbound for inbound in receiving if not inbound.pull()]
        if not sending and not receiving:
            return
        for channel, _ in sending:
            loop.watch_writing(channel.sock, True)
        try:
            await loop.wait({c.sock for c, _ in (*into, *out)}, deadline)
        except TimeoutError:
            silent = [i.channel.peer for i in receiving] or [c.peer for c, _ in sending]
            raise Silence(silent) from None
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
        raise channel.abort_after() or PeerGone(channel.peer) from error
    if sent == len(data):
        channel.whole = True
        return None
    channel.whole = False
    return channel, data[sent:]


class _Inbound:
    """A message on its way in."""

    __slots__ = ("channel", "got", "view")

    def __init__(self, channel: Channel, view: memoryview) -> None:
        self.channel, self.view, self.got = channel, view, 0

    def pull(self) -> bool:
        """Take what is there; whether the message is complete."""
        try:
            got = self.channel.sock.recv_into(self.view[self.got :] if self.got else self.view)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._end() from error
        if got == 0:
            raise self._end()
        self.got += got
        return self.got == len(self.view)

    def _end(self) -> Exception:
        """The connection is over: was its last message an abort?"""
        return _parse(bytes(self.view[: self.got])) or PeerGone(self.channel.peer)


def _listen_to_readers(
    out: Sequence[tuple[Channel, Buffer]], into: Sequence[tuple[Channel, memoryview]]
) -> None:
    """A neighbour that only reads from us may have given up and say so.

    That it closed alone says nothing: it may be through, while we still wait for the other side.
    """
    heard = {id(channel) for channel, _ in into}
    for channel, _ in out:
        if id(channel) in heard:
            continue
        try:
            abort = _parse(channel.sock.recv(_ABORT.size, socket.MSG_PEEK))
        except OSError:  # nothing to read, or reset: the next send finds out
            continue
        if abort is not None:
            raise abort
