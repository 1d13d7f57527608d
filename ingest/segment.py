"""Writing a stream of records so that each survives the death of its writer.

    writer = SegmentWriter(folder, "host-17-1700000000", identity)
    name = writer.intern("all_reduce")
    slot = writer.record(Kind.SCALAR, t, name=name, a=bits)

A record is one `struct.pack_into` on a mapped file: no system call, no lock, no growth. The next file
is made ready by a side thread before it is needed. A writer never raises: what it cannot write, it counts.
See layout.py for the bytes.
"""

import itertools
import json
import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import Any, Final

from rankscope.ingest.layout import (
    CHUNK,
    CHUNK_BYTES,
    CLOSED_OFFSET,
    DROPPED_OFFSET,
    HEADER,
    MAGIC,
    NO_STEP,
    PAGE,
    RECORD,
    RECORD_SIZE,
    SLOTS,
    Kind,
)

MAX_STRINGS: Final = 65_536
TOO_MANY: Final = "(too many different texts)"
MAX_BLOB: Final = 65_535 * CHUNK_BYTES
_READY_AT: Final = SLOTS // 2  # when half of a file is written, the next is made


class Segment:
    """One mapped file of a stream, full size on disk from the start: a full disk is met here."""

    def __init__(
        self, path: Path, index: int, identity: dict[str, Any], strings: list[str], dropped: int
    ) -> None:
        """Raises OSError when the file cannot be made whole."""
        described = json.dumps({"identity": identity, "strings": strings}).encode()
        self.header_size = -(-(HEADER.size + len(described)) // PAGE) * PAGE
        self.index = index
        size = self.header_size + SLOTS * RECORD_SIZE
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(fd, 0, size)
            self.map = mmap.mmap(fd, size)
        except (OSError, ValueError):
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
        self.strings = len(strings)
        head = HEADER.pack(
            MAGIC, RECORD_SIZE, 0, self.header_size, index, SLOTS, index * SLOTS,
            time.time_ns(), time.monotonic_ns(), dropped, os.getpid(), len(described),
        )  # fmt: skip
        self.map[HEADER.size : HEADER.size + len(described)] = described
        self.map[8 : HEADER.size] = head[8:]
        self.map[0:8] = MAGIC  # last: a reader takes the header as whole from here on


class SegmentWriter:
    """The one writer of a stream; its methods may be called from any thread and from signal handlers."""

    def __init__(self, folder: Path, stem: str, identity: dict[str, Any]) -> None:
        """Raises OSError when the first file cannot be made."""
        self.folder = folder
        self.stem = stem
        self.identity = identity
        self.dropped = 0
        self._slots = itertools.count()
        self._blobs = itertools.count()
        self._ids: dict[str, int] = {"": 0}
        self._strings: list[str] = [""]
        self._lock = threading.RLock()  # for rare work only: new strings, new files
        self._closed = False
        folder.mkdir(parents=True, exist_ok=True)
        self._segments: dict[int, Segment] = {0: self._make(0)}
        self._current = self._segments[0]
        self._base = 0
        self._pack = RECORD.pack_into
        self._preparing = threading.Event()

    def record(
        self, kind: int, t: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, name: int = 0, pg: int = 0,
        step: int = NO_STEP, attr: int = 0, tag: int = 0, flags: int = 0,
    ) -> int:  # fmt: skip
        """Publish one record; returns its slot, -1 when it was dropped. See layout.Kind for the fields."""
        slot = next(self._slots)
        segment = self._current
        place = slot - segment.index * SLOTS
        if place == _READY_AT:
            self._preparing.set()
        if not 0 <= place < SLOTS:
            found = self._segment_of(slot)
            if found is None:
                return -1
            segment, place = found, slot % SLOTS
        try:
            self._pack(
                segment.map, segment.header_size + place * RECORD_SIZE,
                t, a, b, c, d, name, pg, step, attr, tag, kind, flags, (slot + 1) & 0xFFFFFFFF,
            )  # fmt: skip
        except (struct.error, ValueError):
            # A value out of range, or a map that was closed meanwhile: publish an empty record, so that
            # readers need not wait for this slot.
            self._drop()
            self._fill(segment, place, slot)
            return -1
        return slot

    def intern(self, text: str) -> int:
        """The id of a text; it is written to the stream at first sight."""
        found = self._ids.get(text)
        if found is not None:
            return found
        with self._lock:
            found = self._ids.get(text)
            if found is not None:
                return found
            if len(self._strings) >= MAX_STRINGS:
                return self._ids.get(TOO_MANY, 0)
            if len(self._strings) == MAX_STRINGS - 1:
                text = TOO_MANY
            number = len(self._strings)
            self._strings.append(text)
            self._chunks(Kind.STRING, number, text.encode(errors="replace"))
            self._ids[text] = number  # last: whoever finds the id may use it
            return number

    def event(self, described: dict[str, Any]) -> None:
        """Write a rare record as JSON."""
        try:
            text = json.dumps(described, default=str).encode()
        except (TypeError, ValueError):
            self._drop()
            return
        self._chunks(Kind.EVENT, next(self._blobs) & 0xFFFFFFFF, text)

    def prepare_next(self) -> None:
        """Make the next file if it will be needed soon. For a side thread: this is the slow part."""
        if not self._preparing.is_set() or self._closed:
            return
        with self._lock:
            index = self._current.index + 1
            if index not in self._segments:
                try:
                    self._segments[index] = self._make(index)
                except OSError:
                    return  # tried again when it is needed
            self._preparing.clear()

    def close(self) -> None:
        """Say that nothing more will come."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for segment in self._segments.values():
                segment.map[CLOSED_OFFSET : CLOSED_OFFSET + 1] = b"\x01"

    def abandon(self) -> None:
        """In a forked child: let go of the parent's files without a word in them."""
        self._closed = True
        self._slots = itertools.count(1 << 62)
        self._segments = {}

    def _chunks(self, kind: Kind, number: int, data: bytes) -> None:
        if len(data) > MAX_BLOB:
            self._drop()
            return
        pieces = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)] or [b""]
        for index, piece in enumerate(pieces):
            slot = next(self._slots)
            segment = self._segment_of(slot)
            if segment is None:
                return
            CHUNK.pack_into(
                segment.map, segment.header_size + slot % SLOTS * RECORD_SIZE,
                number, index, len(pieces), piece, len(piece), kind, 0, (slot + 1) & 0xFFFFFFFF,
            )  # fmt: skip

    def _segment_of(self, slot: int) -> Segment | None:
        """The file that holds `slot`, made if need be; None when recording has ended."""
        index = slot // SLOTS
        found = self._segments.get(index)
        if found is None and not self._closed:
            with self._lock:
                found = self._segments.get(index)
                if found is None:
                    try:
                        found = self._segments[index] = self._make(index)
                    except OSError:
                        self._closed = True  # a full disk ends the recording, not the training
        if found is None:
            self._drop()
            return None
        if found.index > self._current.index:
            with self._lock:
                self._current = found
                # Late threads may still hold slots of the file before; older ones are whole.
                self._segments = {k: s for k, s in self._segments.items() if k >= index - 1}
        return found

    def _make(self, index: int) -> Segment:
        path = self.folder / f"{self.stem}.{index}.seg"
        return Segment(path, index, self.identity, list(self._strings), self.dropped)

    def _fill(self, segment: Segment, place: int, slot: int) -> None:
        try:
            RECORD.pack_into(
                segment.map, segment.header_size + place * RECORD_SIZE,
                0, 0, 0, 0, 0, 0, 0, NO_STEP, 0, 0, 0, 0, (slot + 1) & 0xFFFFFFFF,
            )  # fmt: skip
        except (struct.error, ValueError):
            return

    def _drop(self) -> None:
        self.dropped += 1
        try:
            struct.pack_into("<Q", self._current.map, DROPPED_OFFSET, self.dropped)
        except (struct.error, ValueError):
            return
