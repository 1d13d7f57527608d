"""The records of one process, read from its segment files in order, each exactly once.

A reader consumes up to the first record that is not published, and up to the first text that is not whole. It
waits for these, unless nothing more can come: then they are counted as dropped and stepped over.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rankscope.ingest.layout import SLOTS, Kind
from rankscope.ingest.segments import (
    MISSING,
    RECORD_DTYPE,
    Damaged,
    Mask,
    NotYet,
    Records,
    Segment,
    joined,
    read_segment,
    read_state,
)
from rankscope.ingest.spool import segment_path
from rankscope.ingest.strings import UNKNOWN, Strings
from rankscope.ingest.texts import gather_texts, pair_rollups

# How long, and for how many records of the same process, one is waited for.
PATIENCE_S: Final = 10.0
PATIENCE_RECORDS: Final = 4096
_WINDOWS: Final = (64, 1024, SLOTS)  # records read at a time while all of them are published
# Ids of strings come in order; one far ahead of the others is damage, and would cost memory.
_MAX_ID_JUMP: Final = 65_536
_KNOWN_KINDS = np.zeros(256, dtype=bool)
_KNOWN_KINDS[[0, *Kind]] = True  # 0: what a writer had to leave out, and counted itself

_PLAIN_KINDS = _KNOWN_KINDS.copy()
_PLAIN_KINDS[[Kind.COLL_ROLLUP, Kind.COLL_ROLLUP2, Kind.STRING, Kind.EVENT]] = False

Ints = npt.NDArray[np.int64]


@dataclass
class Take:
    """What one read of a stream gave: records side by side from `first_slot` on."""

    first_slot: int
    records: Records
    offset: Ints  # wall minus monotonic clock, per record
    events: list[tuple[int, str]] = field(default_factory=list)  # (slot, JSON)
    rollups: tuple[Ints, Ints] | None = None  # places of the two halves in records

    @property
    def next_slot(self) -> int:
        return self.first_slot + len(self.records)


class Stream:
    """Reads one process' records from `next_slot` on."""

    def __init__(self, spool: Path, name: str, strings: Strings, next_slot: int = 0) -> None:
        self.spool = spool
        self.name = name  # '<run>/<host>-<pid>-<start>'
        self.next_slot = next_slot
        self.segments: set[int] = set()  # indices of the files that are there, as far as known
        self.names: Ints = np.zeros(0, dtype=np.int64)  # own string id -> number in `strings`
        self.segment: Segment | None = None  # the one that was read last
        self.lost = 0  # records that could not be had
        self.writer_dropped = 0  # records that the writer itself could not keep
        self.errors = 0
        self.last_error: str | None = None
        self.news: list[str] = []  # errors that nobody was told of yet
        self._strings = strings
        self._awaited: tuple[int, float] | None = None  # a slot, and since when it is waited for
        self._was_awaited: tuple[int, float] | None = None  # the same, at the read before

    @property
    def identity(self) -> dict[str, Any] | None:
        """What the process says about itself, once a header could be read."""
        return self.segment.identity if self.segment else None

    def path(self, index: int) -> Path:
        """Where segment `index` lies."""
        return segment_path(self.spool, self.name, index)

    def ready(self) -> bool:
        """Whether it may be worth reading now. Costs one small read of an idle stream."""
        segment = self.segment
        if segment is None or self._awaited is not None:
            return True
        if self.next_slot >= segment.end_slot:
            return any(index * SLOTS >= segment.end_slot for index in self.segments)
        try:
            return segment.is_published(self.next_slot) or self._goes_on_after(segment)
        except OSError:
            return True

    def look_for_more(self) -> None:
        """Find files that came after the last one known."""
        index = max(self.segments, default=-1) + 1
        while self.path(index).exists():
            self.segments.add(index)
            index += 1

    def is_closed(self) -> bool:
        """Whether the writer said that nothing more will come. Learns what it dropped, too."""
        newest = max(self.segments, default=0)
        for index in (newest, newest - 1):  # the newest may have been made ready only
            try:
                closed, dropped = read_state(self.path(index))
            except (OSError, NotYet):
                continue
            self.writer_dropped = max(self.writer_dropped, dropped)
            return closed
        return False

    def read(self, limit: int, finished: bool) -> Take | None:
        """The next records, not many more than `limit`; None when there are none now.

        Args:
            finished: nothing more will come, so that what is missing now is lost.
        """
        segment = self._first_segment(finished)
        if segment is None:
            return None
        self._was_awaited, self._awaited = self._awaited, None
        slot = self.next_slot
        pieces: list[Records] = []
        offsets: list[Ints] = []
        while segment is not None and slot - self.next_slot < limit:
            records = self._consume(segment, slot, finished)
            pieces.append(records)
            offsets.append(np.full(len(records), segment.offset_ns, dtype=np.int64))
            slot += len(records)
            # One file at a time spares a copy; a short rest of one goes together with the next.
            if slot < segment.end_slot or slot - self.next_slot >= SLOTS // 2:
                break
            segment = self._following_segment(slot)
        exhausted = segment is None or slot < segment.end_slot
        records = joined(pieces)
        take = Take(self.next_slot, records, np.concatenate(offsets))
        if not len(take.records):
            return None
        self._assemble(take, lossy=finished and exhausted, full=not exhausted)
        self.next_slot = take.next_slot
        return take if len(take.records) else None

    def is_read(self) -> bool:
        """Whether all that is there was read."""
        if self._awaited is not None:
            return False
        if self.segment is not None:
            return not self._goes_on_after(self.segment)
        return not any(index * SLOTS >= self.next_slot for index in self.segments)

    # --- segments ----------------------------------------------------------------------------------------

    def _first_segment(self, finished: bool) -> Segment | None:
        """The segment that holds next_slot; one that is gone or damaged is stepped over."""
        while True:
            index = self.next_slot // SLOTS
            if self.segment is not None and self.segment.base_slot == index * SLOTS:
                return self.segment
            later = min((other for other in self.segments if other > index), default=None)
            try:
                self._enter(read_segment(self.path(index), index))
                return self.segment
            except NotYet:
                if later is None and (self.segment is not None or not finished):
                    return None  # made ready, and perhaps never needed
                problem = "has no header"
            except FileNotFoundError:
                if later is None:
                    return None
                problem = "is gone"
            except Damaged as error:
                problem = str(error)
            except OSError as error:
                problem = f"cannot be read ({error.strerror})"
            self.complain(f"segment {index} {problem}: its records are lost")
            self.segments.discard(index)
            self.lost += (index + 1) * SLOTS - self.next_slot if later is not None else 0
            self.next_slot = (index + 1) * SLOTS

    def _following_segment(self, slot: int) -> Segment | None:
        """The segment that begins with `slot`, if it is there and sound."""
        try:
            self._enter(read_segment(self.path(slot // SLOTS), slot // SLOTS))
        except (OSError, NotYet, Damaged):
            return None  # the next read will see why
        return self.segment

    def _goes_on_after(self, segment: Segment) -> bool:
        """Whether records were published in a later file. The next one is made long before it is needed."""
        for index in sorted(self.segments):
            if index * SLOTS < segment.end_slot:
                continue
            try:
                later = read_segment(self.path(index), index)
                if later.read(later.base_slot, _WINDOWS[0])[1].any():
                    return True
            except (OSError, NotYet):
                continue
            except Damaged:
                return True  # somebody wrote there
        return False

    def _enter(self, segment: Segment) -> None:
        self.segment = segment
        self.segments.add(segment.base_slot // SLOTS)
        for number, text in enumerate(segment.strings):
            self._name(number, text)
        if self.next_slot > segment.base_slot:
            # Read before, in an earlier life of this reader: its strings are still needed.
            records, _ = segment.read(segment.base_slot, self.next_slot - segment.base_slot)
            for read_before in gather_texts(records)[0]:
                if read_before.kind == Kind.STRING:
                    self._name(read_before.id, read_before.text)

    def _consume(self, segment: Segment, slot: int, finished: bool) -> Records:
        """Records from `slot` on that are to be read now; kind MISSING where there is none."""
        index = segment.base_slot // SLOTS
        has_later = self._goes_on_after(segment)
        thorough = finished or has_later or self._was_awaited is not None
        for window in (SLOTS,) if thorough else _WINDOWS:
            wanted = min(window, segment.end_slot - slot)
            try:
                records, published = segment.read(slot, wanted, finished=finished)
            except OSError as error:
                self.complain(f"segment {index} cannot be read any more ({error.strerror})")
                self.segments.discard(index)
                self.segment = None
                return np.zeros(0, RECORD_DTYPE)
            if len(records) < wanted:  # a file that was cut short
                records, published = _padded(records, published, wanted)
            if not published.all():
                break
        missing = np.flatnonzero(~published)
        if not len(missing):
            return records
        hole = int(missing[0])
        behind = int(published[hole:].sum())
        if finished:
            last = np.flatnonzero(published)
            end = len(records) if has_later else (int(last[-1]) + 1 if len(last) else 0)
        elif (behind or has_later) and self._is_overdue(slot + hole, behind >= PATIENCE_RECORDS or has_later):
            after = np.flatnonzero(published[hole:])
            end = hole + int(after[0]) if len(after) else len(records)
        else:
            return records[:hole]
        return records[:end]

    def _is_overdue(self, slot: int, much_followed: bool) -> bool:
        """Whether `slot` was waited for long enough; if not, it goes on being waited for."""
        now = time.monotonic()
        since = self._was_awaited[1] if self._was_awaited and self._was_awaited[0] == slot else now
        if much_followed and now - since > PATIENCE_S:
            return True
        self._awaited = (slot, since)
        return False

    # --- records -----------------------------------------------------------------------------------------

    def _check_kinds(self, take: Take, misfits: list[int]) -> None:
        """Count and blank what says nothing."""
        kinds = take.records["kind"]
        missing = np.flatnonzero(kinds == MISSING)
        strange = np.flatnonzero(~_KNOWN_KINDS[kinds] & (kinds != MISSING))
        for places, what in (
            (missing, "never finished"),
            (strange, "of an unknown kind"),
            (np.array(misfits, dtype=np.int64), "of texts that fit nowhere"),
        ):
            if len(places):
                self.lost += len(places)
                first = take.first_slot + int(places[0])
                self.complain(f"{len(places)} records {what}, the first in slot {first}")
        kinds[missing] = kinds[strange] = 0

    def _assemble(self, take: Take, *, lossy: bool, full: bool) -> None:
        """Put texts and roll-ups together, and cut `take` before the first that is not whole.

        Args:
            lossy: nothing more will come: what is not whole now never will be.
            full: there was more to read than `take` holds.
        """
        if _PLAIN_KINDS[take.records["kind"]].all():
            return  # by far the most: each record stands for itself
        whole, partial, misfits = gather_texts(take.records)
        first, second, alone = pair_rollups(take.records)
        # (first place, chunks) of what is not whole
        waiting = sorted(
            [(text.first, len(text.parts)) for text in partial] + [(at, 1) for at in alone.tolist()]
        )
        cut = len(take.records)
        while waiting:
            cut, chunks = waiting[0]
            at_start = cut == 0 and full  # no room to go on: it is longer than anything a writer makes
            followed = len(take.records) - cut >= PATIENCE_RECORDS
            if not (lossy or at_start or self._is_overdue(take.first_slot + cut, followed)):
                break
            self.lost += chunks
            self.complain(f"a text in slot {take.first_slot + cut} was never finished")
            waiting.pop(0)
            cut = len(take.records)
        # What straddles the cut is read again, whole, with what follows.
        low = np.minimum(first, second)
        high = np.maximum(first, second)
        while True:
            straddling = [text.first for text in whole if text.first < cut <= text.last]
            straddling += low[(low < cut) & (high >= cut)].tolist()
            if not straddling:
                break
            cut = min(straddling)
        take.records, take.offset = take.records[:cut], take.offset[:cut]
        self._check_kinds(take, [place for place in misfits if place < cut])
        kept = high < cut
        take.rollups = (first[kept], second[kept]) if kept.any() else None
        for text in whole:
            if text.last < cut:
                if text.kind == Kind.STRING:
                    self._name(text.id, text.text)
                else:
                    take.events.append((take.first_slot + text.first, text.text))

    def _name(self, number: int, text: str) -> None:
        if number >= len(self.names):
            if number > len(self.names) + _MAX_ID_JUMP:
                self.complain(f"a string with the impossible id {number}")
                return
            more = np.full(max(number + 1, 2 * len(self.names)) - len(self.names), UNKNOWN, dtype=np.int64)
            self.names = np.concatenate([self.names, more])
        if self.names[number] == UNKNOWN:
            self.names[number] = self._strings.number(text)

    def complain(self, problem: str) -> None:
        """Count an error, and keep it as the last one and as news."""
        self.errors += 1
        self.last_error = problem
        self.news.append(problem)


def _padded(records: Records, published: Mask, length: int) -> tuple[Records, Mask]:
    more = length - len(records)
    blank = np.zeros(more, RECORD_DTYPE)
    blank["kind"] = MISSING
    return (
        np.concatenate([records, blank]),
        np.concatenate([published, np.zeros(more, dtype=bool)]),
    )
