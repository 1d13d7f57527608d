"""Writing a stream of records so that each survives the death of its writer.

    writer = SegmentWriter(folder, "host-17-1700000000", identity)
    name = writer.intern("all_reduce")
    slot = writer.pen.record(Kind.SCALAR, t, name=name, a=bits)

Here is what is rare: files, texts, the end. Records themselves are made by a pen (see pen.py), which writes
into a mapped file. The next file is made by a side thread before it is needed. A writer never raises: what
it cannot write, it counts. See layout.py for the bytes.
"""

import json
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rankscope.ingest.layout import (
    CHUNK,
    CHUNK_BYTES,
    DROPPED_OFFSET,
    MARKER_OFFSET,
    RECORD_SIZE,
    SLOTS,
    Kind,
)
from rankscope.ingest.mapped import MappedFile
from rankscope.ingest.pen import Pen
from rankscope.ingest.pens import make_pen
from rankscope.ingest.ring import Ring

MAX_STRINGS: Final = 65_536
MAX_TEXT: Final = 16_384  # characters of an interned text
TOO_MANY: Final = "(too many different texts)"
MAX_BLOB: Final = 65_535 * CHUNK_BYTES
_READY_AT: Final = SLOTS // 2  # when half of a file is written, the next is made


class SegmentWriter:
    """The one writer of a stream; its methods may be called from any thread and from signal handlers."""

    def __init__(
        self,
        folder: Path,
        stem: str,
        identity: dict[str, Any],
        *,
        wake: Callable[[], object] = bool,
        fast: bool = True,
    ) -> None:
        """Raises OSError when the first file cannot be made.

        Args:
            wake: called, on any thread, when it is time for `prepare_next`.
            fast: use the pen in C, if there is one.
        """
        self.folder, self.stem, self.identity = folder, stem, identity
        self._ids: dict[str, int] = {"": 0}
        self._strings: list[str] = [""]
        # For rare work only: new texts; new files. The second one is taken within the first, never the other
        # way. Both can be taken again by a signal handler that interrupts who holds them.
        self._naming, self._filing = threading.RLock(), threading.RLock()
        self._blobs = 0
        self._closed = False
        self._full = False
        self._wake, self._fast = wake, fast
        self.pen = self._new_pen()
        self.record = self.pen.record
        self._slots = iter(self.pen)
        folder.mkdir(parents=True, exist_ok=True)
        self.ring: Ring | None = None
        self._current = self._make(0)
        self._current.seal(self._strings)
        self._segments: dict[int, MappedFile] = {0: self._current}
        self._point(self._current)

    # --- records -----------------------------------------------------------------------------------------

    @property
    def dropped(self) -> int:
        """Records that could not be written."""
        return self.pen.dropped

    def intern(self, text: str) -> int:
        """The id of a text; it is written to the stream at first sight."""
        found = self._ids.get(text)
        if found is not None:
            return found
        text = str(text)[:MAX_TEXT]
        with self._naming:
            found = self._ids.get(text)
            if found is not None:
                return found
            if len(self._strings) >= MAX_STRINGS - 1:
                text = TOO_MANY
                if text in self._ids:
                    return self._ids[text]
            self._strings.append(text)
            number = len(self._strings) - 1
            while self._strings[number] != text:  # a signal handler interned another one meanwhile
                number -= 1
            self._chunks(Kind.STRING, number, text.encode(errors="replace"))
            self._ids[text] = number  # last: whoever finds the id may use it
            return number

    def event(self, described: dict[str, Any]) -> None:
        """Write a rare record as JSON."""
        try:
            text = json.dumps(described, default=str).encode()
        except Exception:
            self.pen.drop()
            return
        self._blobs += 1
        self._chunks(Kind.EVENT, self._blobs & 0xFFFFFFFF, text)

    def claim(self) -> int:
        """A slot that the caller will publish."""
        return next(self._slots)

    def publish(self, slot: int, body: bytes) -> bool:
        """Write a whole record into a slot that was claimed; False when there is no place for it."""
        place = self._place(slot)
        if place is None:
            self.pen.drop()
            return False
        mapped, at = place
        mapped[at : at + MARKER_OFFSET] = body[:MARKER_OFFSET]
        mapped[at + MARKER_OFFSET : at + RECORD_SIZE] = body[MARKER_OFFSET:]
        return True

    def _chunks(self, kind: Kind, number: int, data: bytes) -> None:
        if len(data) > MAX_BLOB:
            self.pen.drop()
            return
        pieces = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)] or [b""]
        for index, piece in enumerate(pieces):
            slot = self.claim()
            marker = (slot + 1) & 0xFFFFFFFF
            if not self.publish(
                slot, CHUNK.pack(number, index, len(pieces), piece, len(piece), kind, 0, marker)
            ):
                return

    # --- files -------------------------------------------------------------------------------------------

    def add_ring(self) -> None:
        """Let collectives go to a ring once `pen.full_until` is reached. Raises OSError."""
        self.ring = Ring(self.folder, self.stem, self.identity, self._new_pen())
        self.pen.ring = self.ring.pen

    def prepare_next(self) -> None:
        """Make the next file if it will be needed soon. For a side thread: this is the slow part."""
        self._tell_dropped()
        index = self._current.index + 1
        if self._closed or self._full or index in self._segments or not self._half_done():
            return
        with self._filing:
            if index not in self._segments and not self._closed:
                try:
                    self._segments[index] = self._make(index)
                except OSError:
                    return  # tried again when it is needed

    def _half_done(self) -> bool:
        """Whether the record in the middle of the current file is published."""
        at = self._current.at(self._current.index * SLOTS + _READY_AT)
        return self._current.map[at + RECORD_SIZE - 4 : at + RECORD_SIZE] != bytes(4)

    def _new_pen(self) -> Pen:
        return make_pen(self._ids, self.intern, self._place, self._wake, fast=self._fast)

    def _make(self, index: int) -> MappedFile:
        path = self.folder / f"{self.stem}.{index}.seg"
        return MappedFile(path, index, self.identity, self._strings)

    def _point(self, segment: MappedFile) -> None:
        first = segment.index * SLOTS
        self.pen.point(segment.map, segment.header_size, first, SLOTS, first + _READY_AT)

    def _place(self, slot: int) -> tuple[Any, int] | None:
        """Where a slot lies, in a file that is made if need be; None when recording has ended."""
        index = slot // SLOTS
        found = self._segments.get(index)
        if found is None or not found.is_sealed:
            found = self._begin_file(index)
        return (found.map, found.at(slot)) if found is not None else None

    def _begin_file(self, index: int) -> MappedFile | None:
        """Go on to a file: from now on it holds the newest records."""
        with self._filing:
            found = self._segments.get(index)
            if found is not None and found.is_sealed:
                return found  # another thread did
            if self._closed or self._full or index < self._current.index:
                return None
            try:
                if found is None:
                    found = self._make(index)
                if not found.seal(self._strings):  # more texts since it was made than it has room for
                    found.delete()
                    found = self._make(index)
                    found.seal(self._strings)
            except OSError:
                self._full = True  # a full disk ends the recording, not the training
                return None
            self._segments[index] = self._current = found
            # Late threads may still hold slots of the file before; older ones are whole.
            self._segments = {k: s for k, s in self._segments.items() if k >= index - 1}
            self._point(found)
            return found

    def _tell_dropped(self) -> None:
        """In the headers of all files, as a reader looks into the newest one."""
        for segment in list(self._segments.values()):
            struct.pack_into("<Q", segment.map, DROPPED_OFFSET, self.pen.dropped)

    # --- the end -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Say that nothing more will come."""
        with self._filing:
            if self._closed:
                return
            self._closed = True
            self.pen.stop()
            self._tell_dropped()
            for segment in self._segments.values():
                segment.close()
            if self.ring is not None:
                self.ring.delete()

    def abandon(self) -> None:
        """In a forked child: let go of the parent's files without a word in them."""
        self._closed = True
        self.pen.stop()
        self._segments = {}
        self.ring = None
