"""One segment file as its reader sees it: the header, checked, and the records that are published.

Files come from other people's processes: half-written, cut short, damaged, deleted, or hostile. They are
read, never mapped: a mapped file that somebody truncates kills its reader.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rankscope.ingest.layout import (
    CLOSED_OFFSET,
    DROPPED_OFFSET,
    HEADER,
    MAGIC,
    MARKER_OFFSET,
    PAGE,
    RECORD_SIZE,
    SLOTS,
)

RECORD_DTYPE: Final = np.dtype(
    [
        ("t", "<i8"), ("a", "<i8"), ("b", "<i8"), ("c", "<i8"), ("d", "<i8"),
        ("name", "<u4"), ("pg", "<u4"), ("step", "<i4"), ("attr", "<u4"),
        ("tag", "<u2"), ("kind", "u1"), ("flags", "u1"), ("marker", "<u4"),
    ]
)  # fmt: skip
CHUNK_DTYPE: Final = np.dtype(
    [
        ("id", "<u4"), ("index", "<u2"), ("count", "<u2"), ("payload", "V49"),
        ("length", "u1"), ("kind", "u1"), ("flags", "u1"), ("marker", "<u4"),
    ]
)  # fmt: skip
TIME_LIMIT: Final = 1 << 62  # ns; no clock shows more: such a time is damage, and would overflow
MISSING: Final = 255  # kind that a reader gives to a record that is not published
_MAX_HEADER: Final = 256 << 20
_BYTES: Final = np.dtype((np.void, RECORD_SIZE))

Records = npt.NDArray[np.void]
Mask = npt.NDArray[np.bool_]


class NotYet(Exception):
    """The file has no header yet: its writer is just making it."""


class Damaged(Exception):
    """The file is no segment, or not any more: its message says why."""


@dataclass(frozen=True)
class Segment:
    """A segment file whose header is sound."""

    path: Path
    header_size: int
    base_slot: int
    wall_ns: int
    mono_ns: int
    identity: dict[str, Any]
    strings: list[str]

    @property
    def offset_ns(self) -> int:
        """Wall clock minus monotonic clock of the writer."""
        return self.wall_ns - self.mono_ns

    @property
    def end_slot(self) -> int:
        """The first slot that is not in this file."""
        return self.base_slot + SLOTS

    def is_published(self, slot: int) -> bool:
        """Whether the record in `slot` is whole: one small read. Raises OSError."""
        at = self.header_size + (slot - self.base_slot) * RECORD_SIZE + MARKER_OFFSET
        return read_at(self.path, at, 4) == ((slot + 1) & 0xFFFFFFFF).to_bytes(4, "little")

    def read(self, slot: int, count: int, *, finished: bool = False) -> tuple[Records, Mask]:
        """Up to `count` records from `slot` on, and which of them are published. Raises OSError.

        Fewer come back when the file is shorter than it should be.

        Args:
            finished: nobody writes any more.
        """
        at = self.header_size + (slot - self.base_slot) * RECORD_SIZE
        size = min(count, self.end_slot - slot) * RECORD_SIZE
        # A record may be published between the copying of its body and of its marker. So the markers are
        # looked at first, and the bodies copied again afterwards: what was published by then is whole now.
        records = read_records(self.path, at, size)
        markers = np.arange(slot + 1, slot + 1 + len(records), dtype=np.uint64).astype("<u4")
        published: Mask = records["marker"] == markers
        if not finished:
            records = read_records(self.path, at, len(records) * RECORD_SIZE)
            published = published[: len(records)]
        if not published.all():
            records["kind"][~published] = MISSING
        return records, published


def read_segment(path: Path, index: int) -> Segment:
    """Read and check the header of segment `index` of a stream.

    Raises:
        OSError: there is no such file, or it cannot be read.
        NotYet: it is still being made.
        Damaged: it is no segment, or another one.
    """
    with path.open("rb") as file:
        head = file.read(HEADER.size)
        if len(head) < HEADER.size or head[: len(MAGIC)] == bytes(len(MAGIC)):
            raise NotYet
        magic, record_size, _, size, own_index, slots, base_slot, wall, mono, _, _, json_size = HEADER.unpack(
            head
        )
        if magic != MAGIC:
            raise Damaged("does not begin as a segment does")
        if (record_size, slots, own_index, base_slot) != (RECORD_SIZE, SLOTS, index, index * SLOTS):
            raise Damaged("has a header with impossible sizes")
        if not HEADER.size + json_size <= size <= _MAX_HEADER or size % PAGE:
            raise Damaged("has a header with impossible sizes")
        if not (0 < wall < TIME_LIMIT and 0 <= mono < TIME_LIMIT):
            raise Damaged("has a header with impossible times")
        text = file.read(json_size)
    try:
        described = json.loads(text)
        identity, strings = described["identity"], described["strings"]
        if not isinstance(identity, dict) or not isinstance(strings, list):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged("has a header that does not describe itself") from error
    return Segment(path, size, base_slot, wall, mono, identity, [sound(str(text)) for text in strings])


def read_state(path: Path) -> tuple[bool, int]:
    """Whether a file's writer said that nothing more will come, and how many records it says it dropped.

    Raises:
        OSError: the file cannot be read.
        NotYet: it has no header yet.
    """
    head = read_at(path, 0, HEADER.size)
    if len(head) < HEADER.size or not head.startswith(MAGIC):
        raise NotYet
    dropped = int.from_bytes(head[DROPPED_OFFSET : DROPPED_OFFSET + 8], "little")
    return head[CLOSED_OFFSET] == 1, min(dropped, TIME_LIMIT)  # a larger one is damage, and fits no column


def joined(pieces: Sequence[Records]) -> Records:
    """Several runs of records as one."""
    if len(pieces) == 1:
        return pieces[0]
    # As plain bytes: numpy would compare the fields of each piece.
    return np.concatenate([piece.view(_BYTES) for piece in pieces]).view(RECORD_DTYPE)


def read_at(path: Path, at: int, size: int) -> bytes:
    """`size` bytes of a file, fewer where it ends before. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, size, at)
    finally:
        os.close(handle)


def read_records(path: Path, at: int, size: int) -> Records:
    """The whole records among `size` bytes of a file. Raises OSError."""
    buffer = np.empty(size // RECORD_SIZE, RECORD_DTYPE)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.preadv(handle, [buffer.view(np.uint8).data], at) if size else 0
    finally:
        os.close(handle)
    return buffer[: found // RECORD_SIZE]


def sound(text: str) -> str:
    """`text` without what cannot be stored as UTF-8."""
    return text.encode("utf-8", "replace").decode()
