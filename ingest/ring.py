"""The last collectives of a process in full: a file of records that is written over, round and round.

    ring = Ring(folder, stem, identity, pen)     # the pen of the ring, not that of the stream
    ring.flush(claim, publish)                   # something failed: its records go into the stream

A process that died leaves its ring behind. `recover` puts what is in it behind the last record of the
stream, as the process itself would have done: from there it is read like everything else. Each record is
copied once, also when who copies is killed: see layout.py for how the ring's state says so.
"""

import contextlib
import glob
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rankscope.ingest.layout import (
    CHUNK,
    DROPPED_OFFSET,
    HEADER,
    MAGIC,
    MARKER_OFFSET,
    RECORD,
    RECORD_SIZE,
    RING_SLOTS,
    RING_STATE,
    SLOTS,
    Kind,
)
from rankscope.ingest.mapped import MappedFile

# Its place in the stream's record of a COLL_BEGIN, plus one, is kept in this field of the ring's.
_COPIED_TO: Final = 4
_MARKER: Final = 12
_KIND: Final = 10


class Ring:
    """The ring of this process."""

    def __init__(self, folder: Path, stem: str, identity: dict[str, Any], pen: Any) -> None:
        """Raises OSError when it cannot be made."""
        self._file = MappedFile(folder / f"{stem}.ring", 0, identity, [""], RING_SLOTS)
        self._file.seal([""])
        self.pen = pen
        pen.circle(self._file.map, self._file.header_size, RING_SLOTS)
        self._is_flushing = False

    def flush(self, claim: Callable[[], int], publish: Callable[[int, bytes], bool]) -> int:
        """Copy into the stream what was not copied yet; returns the number of records."""
        if self._is_flushing:
            return 0  # another thread, or the code that a signal interrupted, does it
        self._is_flushing = True
        try:
            # The slot claimed to learn how far the ring is stays empty.
            return _copy(self._file.map, self._file.header_size, next(self.pen), claim, publish)
        finally:
            self._is_flushing = False

    def delete(self) -> None:
        """An orderly end needs no last words."""
        self.pen.stop()
        self._file.delete()


def recover(stream: Path) -> int:
    """Put the ring of a process that is gone at the end of its stream, and delete the ring.

    Args:
        stream: path of the stream's files without index and ending. Nobody else may write to them.

    Returns:
        the number of records that came to the stream.

    Raises:
        OSError: the ring is there and cannot be read, or the stream not be written.
    """
    ring_path = Path(f"{stream}.ring")
    try:
        ring = bytearray(ring_path.read_bytes())
    except FileNotFoundError:
        return 0
    header_size = _ring_header_size(ring)
    copied = 0
    if header_size is not None:
        with contextlib.closing(_End(stream)) as end, ring_path.open("r+b") as file:

            def save(start: int, stop: int) -> None:
                os.pwrite(file.fileno(), ring[start:stop], start)

            _settle_intent(ring, header_size, end)
            markers = (
                RECORD.unpack_from(ring, header_size + place * RECORD_SIZE)[_MARKER]
                for place in range(RING_SLOTS)
            )
            copied = _copy(ring, header_size, max(markers), end.claim, end.publish, save)
    ring_path.unlink(missing_ok=True)
    return copied


def _copy(
    ring: Any,
    header_size: int,
    head: int,
    claim: Callable[[], int],
    publish: Callable[[int, bytes], bool],
    save: Callable[[int, int], None] = lambda start, stop: None,
) -> int:
    """Copy records up to slot `head` of the ring into a stream, each with its intent written down first."""
    state_at = header_size - RING_STATE.size
    done, _ = RING_STATE.unpack_from(ring, state_at)
    start = max(done, head - RING_SLOTS)
    if start > done:
        overrun = int.from_bytes(ring[DROPPED_OFFSET : DROPPED_OFFSET + 8], "little") + start - done
        ring[DROPPED_OFFSET : DROPPED_OFFSET + 8] = overrun.to_bytes(8, "little")
    copied = 0
    for slot in range(start, head):
        at = header_size + slot % RING_SLOTS * RECORD_SIZE
        body = bytes(ring[at : at + RECORD_SIZE])
        fields = list(RECORD.unpack(body))
        if fields[_MARKER] != (slot + 1) & 0xFFFFFFFF:
            continue  # never finished, or written over meanwhile
        target = claim()
        if fields[_KIND] == Kind.COLL_BEGIN:
            fields[_COPIED_TO] = target + 1
            ring[at : at + RECORD_SIZE - 4] = RECORD.pack(*fields)[:-4]
            save(at, at + RECORD_SIZE)
            fields[_COPIED_TO] = 0
        elif fields[_KIND] == Kind.COLL_END:
            fields[_COPIED_TO] = _copy_of(ring, header_size, fields[_COPIED_TO])
        fields[_MARKER] = (target + 1) & 0xFFFFFFFF
        RING_STATE.pack_into(ring, state_at, slot, target + 1)
        save(state_at, header_size)
        if not publish(target, RECORD.pack(*fields)):
            break
        RING_STATE.pack_into(ring, state_at, slot + 1, 0)
        save(state_at, header_size)
        copied += 1
    return copied


def _copy_of(ring: Any, header_size: int, slot: int) -> int:
    """Where in the stream the copy of the COLL_BEGIN in `slot` of the ring is; -1: it was written over."""
    if slot < 0:
        return -1
    fields = RECORD.unpack_from(ring, header_size + slot % RING_SLOTS * RECORD_SIZE)
    is_it = fields[_MARKER] == (slot + 1) & 0xFFFFFFFF and fields[_KIND] == Kind.COLL_BEGIN
    return fields[_COPIED_TO] - 1 if is_it else -1


def _ring_header_size(ring: bytearray) -> int | None:
    if len(ring) < HEADER.size:
        return None
    magic, record_size, _, size, _, slots, *_ = HEADER.unpack_from(ring)
    sound = magic == MAGIC and (record_size, slots) == (RECORD_SIZE, RING_SLOTS)
    return size if sound and len(ring) == size + RING_SLOTS * RECORD_SIZE else None


def _settle_intent(ring: bytearray, header_size: int, end: "_End") -> None:
    """Finish what was under way when its copier was killed: the record is in the stream, or it is not."""
    at = header_size - RING_STATE.size
    done, intent = RING_STATE.unpack_from(ring, at)
    if intent and end.is_published(intent - 1):
        RING_STATE.pack_into(ring, at, done + 1, 0)


class _End:
    """The end of a stream whose process is gone."""

    def __init__(self, stream: Path) -> None:
        self._stream = stream
        self._parts: dict[int, _Part] = {}
        for path in stream.parent.glob(f"{glob.escape(stream.name)}.*.seg"):
            part = _Part(path)
            if part.is_sealed:
                self._parts[part.index] = part
            else:
                part.file.close()  # made for later use
        self._last = max(self._parts, default=-1)
        self._next = (self._last + 1) * SLOTS
        if self._last >= 0:
            part = self._parts[self._last]
            while self._next > self._last * SLOTS and not part.is_published(self._next - 1):
                self._next -= 1

    def claim(self) -> int:
        self._next += 1
        return self._next - 1

    def publish(self, slot: int, body: bytes) -> bool:
        if self._last < 0:
            return False  # there is nothing to add to
        index = slot // SLOTS
        if index not in self._parts:
            self._parts[index] = self._parts[self._last].follower(self._stream)
            self._last = index
        part = self._parts[index]
        at = part.at(slot)
        os.pwrite(part.file.fileno(), body[:MARKER_OFFSET], at)
        os.pwrite(part.file.fileno(), body[MARKER_OFFSET:], at + MARKER_OFFSET)
        return True

    def is_published(self, slot: int) -> bool:
        """Whether a record is there, or was: files are deleted once they are read."""
        part = self._parts.get(slot // SLOTS)
        return slot // SLOTS < self._last if part is None else part.is_published(slot)

    def close(self) -> None:
        for part in self._parts.values():
            part.file.close()


class _Part:
    """A segment file of a stream."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("r+b")
        head = self.file.read(HEADER.size).ljust(HEADER.size, b"\0")
        magic, _, _, self.header_size, self.index, _, _, wall, mono, _, _, self._length = HEADER.unpack(head)
        self.is_sealed = magic == MAGIC
        self._clocks = (wall, mono)

    def at(self, slot: int) -> int:
        where: int = self.header_size + slot % SLOTS * RECORD_SIZE
        return where

    def is_published(self, slot: int) -> bool:
        found = os.pread(self.file.fileno(), RECORD_SIZE - MARKER_OFFSET, self.at(slot) + MARKER_OFFSET)
        return found == ((slot + 1) & 0xFFFFFFFF).to_bytes(4, "little")

    def follower(self, stream: Path) -> "_Part":
        """Make the next file, with all texts known by the end of this one."""
        data = os.pread(self.file.fileno(), self.header_size + SLOTS * RECORD_SIZE, 0)
        described = json.loads(data[HEADER.size : HEADER.size + self._length])
        texts = dict(enumerate(described["strings"]))
        chunks: dict[int, list[bytes]] = {}
        for number, _, count, payload, length, kind, _, _ in CHUNK.iter_unpack(data[self.header_size :]):
            if kind == Kind.STRING:
                parts = chunks.setdefault(number, [])
                parts.append(payload[:length])
                if len(parts) == count:
                    texts[number] = b"".join(parts).decode(errors="replace")
        path = stream.with_name(f"{stream.name}.{self.index + 1}.seg")
        path.unlink(missing_ok=True)
        strings = [texts.get(number, "?") for number in range(max(texts) + 1)]
        made = MappedFile(path, self.index + 1, described["identity"], strings)
        made.seal(strings, self._clocks)
        return _Part(path)
