"""Where records are made: the part of the recorder that runs on the training thread, in pure Python.

    pen = Pen(ids, intern, place, wake, main_thread)
    pen.point(mapped, header_size, first_slot, SLOTS)
    token = pen.begin("forward")
    pen.end(token)

No call makes a system call, takes a lock or raises. `_fast.c` has the same class in C, used when it was
built; both go through the same tests. What a call could not record is counted in `dropped`.
"""

import itertools
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from rankscope.ingest.layout import DROPPED_OFFSET, NO_STEP, RECORD, RECORD_SIZE, Flag, Kind

SpanToken: TypeAlias = tuple[int, int, int, int, int, int]
CollectiveToken: TypeAlias = tuple[int, int, int, int, int, int, int, int, int]
Place: TypeAlias = tuple[Any, int]  # a mapped file, and where in it a record lies

NO_SPAN: Final[SpanToken] = (0, -1, 0, 0, NO_STEP, 0)
NO_COLLECTIVE: Final[CollectiveToken] = (0, -1, 0, 0, 0, 0, 0, NO_STEP, 0)
EVERY_STEP: Final = 1 << 62  # for `full_until`
RING_TOKEN: Final = -2  # the slot in a token of what lies in slot s of the ring: RING_TOKEN - s
MAX_ROLLUPS: Final = 256  # steps × groups summed up at a time
_MAX_THREADS: Final = 4096
_SPAN_BEGIN, _SPAN_END = int(Kind.SPAN_BEGIN), int(Kind.SPAN_END)
_COLL_BEGIN, _COLL_END = int(Kind.COLL_BEGIN), int(Kind.COLL_END)
_ROLLUP, _ROLLUP2 = int(Kind.COLL_ROLLUP), int(Kind.COLL_ROLLUP2)
_SCALAR = int(Kind.SCALAR)
_P2P = int(Flag.P2P)
_pack = RECORD.pack_into
_pack_dropped = struct.Struct("<Q").pack_into
_as_bits, _as_integer = struct.Struct("<d").pack, struct.Struct("<q").unpack
_now = time.monotonic_ns
_ident = threading.get_ident


class Pen:
    """Writes the records of one stream, or, as a ring, over its own oldest ones."""

    is_fast = False

    def __init__(
        self,
        ids: dict[str, int],
        intern: Callable[[str], int],
        place: Callable[[int], Place | None],
        wake: Callable[[], object],
        main_thread: int | None,
        describe: Callable[[dict[str, Any]], str],
    ) -> None:
        """See SegmentWriter, which makes pens.

        Args:
            ids: ids of the texts that are interned.
            intern: the id of any other text.
            place: where a slot outside of the current file lies; None: nowhere, it is dropped.
            wake: called in the middle of a file, so that the next one is made.
            main_thread: its ident; records of other threads carry a number from 1.
            describe: attributes as JSON.
        """
        self._ids, self._intern, self._place, self._wake = ids, intern, place, wake
        self._describe = describe
        self.step = NO_STEP  # what records without a step of their own belong to
        self.step_category = -1  # id of the category whose end publishes roll-ups
        self.full_until = EVERY_STEP  # collectives of earlier steps are kept in full, others in the ring
        self.ring: Pen | None = None
        self.dropped = 0
        self._slots = itertools.count()
        # (mapped file, offset of its first record, its first slot, slots): one object, so that a thread
        # never sees half of a change to it.
        self._window: tuple[Any, int, int, int] | None = None
        self._wake_at = -1
        self._is_ring = False
        self._tags: dict[int, int] = {main_thread: 0} if main_thread is not None else {}
        self._new_tags = itertools.count(1)
        self._rollups: dict[tuple[int, int], list[int]] = {}
        self._pairs = itertools.count()

    def __iter__(self) -> "Pen":
        return self

    def __next__(self) -> int:
        """Claim a slot."""
        return next(self._slots)

    @property
    def on(self) -> bool:
        """Whether it records."""
        return self._window is not None

    def point(self, mapped: Any, offset: int, first: int, count: int, wake_at: int = -1) -> None:
        """Slots `first` … `first + count - 1` lie in `mapped` from `offset` on."""
        self._wake_at = wake_at
        self._window = (mapped, offset, first, count)

    def circle(self, mapped: Any, offset: int, count: int) -> None:
        """Be a ring of `count` records, a power of two."""
        self._is_ring = True
        self._window = (mapped, offset, 0, count)

    def stop(self) -> None:
        """Record nothing from now on, and let go of the file."""
        self._window = None
        self.ring = None

    def drop(self, count: int = 1) -> None:
        """Count records that are lost, also in the header of the file."""
        self.dropped += count
        window = self._window
        if window is not None and not self._is_ring:
            _pack_dropped(window[0], DROPPED_OFFSET, self.dropped)

    def record(
        self, kind: int, t: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, name: int = 0, pg: int = 0,
        step: int = NO_STEP, attr: int = 0, tag: int = 0, flags: int = 0,
    ) -> int:  # fmt: skip
        """Publish one record; returns its slot, -1 when it was dropped. See layout.Kind for the fields."""
        window = self._window
        if window is None:
            return -1
        slot = next(self._slots)
        mapped, at, first, count = window
        place = slot - first
        if self._is_ring:
            at += (place & (count - 1)) * RECORD_SIZE
        elif 0 <= place < count:
            at += place * RECORD_SIZE
            if slot == self._wake_at:
                self._wake()
        else:
            found = self._place(slot)
            if found is None:
                self.drop()
                return -1
            mapped, at = found
        try:
            _pack(mapped, at, t, a, b, c, d, name, pg, step, attr, tag, kind, flags, (slot + 1) & 0xFFFFFFFF)
        except (struct.error, TypeError):
            # A value out of range: publish an empty record, so that readers need not wait for this slot.
            self.drop()
            _pack(mapped, at, 0, 0, 0, 0, 0, 0, 0, NO_STEP, 0, 0, 0, 0, (slot + 1) & 0xFFFFFFFF)
            return -1
        return slot

    def begin(
        self, category: str, name: str = "", step: int | None = None, attrs: dict[str, Any] | None = None
    ) -> SpanToken:
        """Begin a span by hand; hand the token to `end`."""
        if self._window is None:
            return NO_SPAN
        try:
            name_id, category_id = self._ids.get(name), self._ids.get(category)
            if name_id is None:
                name_id = self._intern(name)
            if category_id is None:
                category_id = self._intern(category)
            attr_id = self._intern(self._describe(attrs)) if attrs else 0
            number = self.step if step is None else step if -(2**31) <= step < 2**31 else NO_STEP
            t = _now()
            slot = self.record(_SPAN_BEGIN, t, 0, 0, 0, 0, name_id, category_id, number, attr_id, self._tag())
        except Exception:
            self.drop()
            return NO_SPAN
        return t, slot, name_id, category_id, number, attr_id

    def end(self, token: SpanToken, flags: int = 0) -> None:
        """End a span that `begin` began."""
        if self._window is None:
            return
        try:
            t, slot, name, category, number, attr = token
            if not category:
                return  # it began when nothing was recorded
            self.record(_SPAN_END, _now(), t, slot, 0, 0, name, category, number, attr, self._tag(), flags)
            if category == self.step_category:
                self.publish(number)
        except Exception:
            self.drop()

    def scalar(self, name: str, value: float, step: int | None = None) -> None:
        """A number of a step: loss, tokens, MFU."""
        if self._window is None:
            return
        try:
            (bits,) = _as_integer(_as_bits(value))
            name_id = self._ids.get(name)
            if name_id is None:
                name_id = self._intern(name)
            number = self.step if step is None else step if -(2**31) <= step < 2**31 else NO_STEP
            self.record(_SCALAR, _now(), bits, 0, 0, 0, name_id, 0, number, 0, self._tag())
        except Exception:
            self.drop()

    def collective_begin(
        self,
        op: str,
        pg: str,
        seq: int,
        size_bytes: int = 0,
        signature: str = "",
        flags: int = 0,
        peer: int = -1,
    ) -> CollectiveToken:
        """Publish a collective before it starts; hand the token to `collective_end`.

        Args:
            seq: its position in the group `pg`, from 0; of a message, among those to or from `peer`.
            signature: 'dtype|sizes|site'.
            flags: of layout.Flag: ASYNC, P2P.
        """
        if self._window is None:
            return NO_COLLECTIVE
        try:
            ids = self._ids
            op_id, pg_id, attr_id = ids.get(op), ids.get(pg), ids.get(signature)
            if op_id is None:
                op_id = self._intern(op)
            if pg_id is None:
                pg_id = self._intern(pg)
            if attr_id is None:
                attr_id = self._intern(signature)
            number = self.step
            ring = self.ring if number >= self.full_until else None
            t = _now()
            slot = (self if ring is None else ring).record(
                _COLL_BEGIN, t, seq, size_bytes, peer, 0, op_id, pg_id, number, attr_id, self._tag(), flags
            )
            if not flags & _P2P:
                self._sum_begin(number, pg_id, t)
        except Exception:
            self.drop()
            return NO_COLLECTIVE
        if ring is not None:
            slot = RING_TOKEN - slot
        return t, slot, op_id, pg_id, seq, size_bytes, attr_id, number, flags

    def collective_end(self, token: CollectiveToken, flags: int = 0) -> None:
        """The collective completed (or failed: Flag.ERROR)."""
        if self._window is None:
            return
        try:
            t, slot, op, pg, seq, size_bytes, attr, number, begun_flags = token
            if not op:
                return
            pen, end = self, _now()
            if slot <= RING_TOKEN:
                slot = RING_TOKEN - slot
                if self.ring is None:
                    return
                pen = self.ring
            pen.record(
                _COLL_END, end, seq, size_bytes, t, slot, op, pg, number, attr, self._tag(),
                begun_flags | flags,
            )  # fmt: skip
            if not begun_flags & _P2P:
                self._sum_end(number, pg, t, end, size_bytes, seq)
        except Exception:
            self.drop()

    def publish(self, step: int = EVERY_STEP) -> None:
        """Write the roll-ups of the steps before `step`, and those of `step` that nothing more belongs to."""
        for key, total in list(self._rollups.items()):
            number, pg = key
            if (number == step and total[0]) or number > step:
                continue
            if self._rollups.pop(key, None) is None or not total[1]:
                continue  # another thread wrote it; or none of its collectives ended
            _, count, size_bytes, spent, longest, first, last, ended, seq = total
            pair = next(self._pairs) & 0xFFFFFFFF
            self.record(_ROLLUP, ended, count, size_bytes, spent, longest, 0, pg, number, pair)
            self.record(_ROLLUP2, last, first, seq, 0, 0, 0, pg, number, pair)

    def _sum_begin(self, step: int, pg: int, t: int) -> None:
        total = self._rollups.get((step, pg))
        if total is not None:
            total[0] += 1
            total[6] = t
        elif len(self._rollups) < MAX_ROLLUPS:
            self._rollups[step, pg] = [1, 0, 0, 0, 0, t, t, 0, 0]

    def _sum_end(self, step: int, pg: int, t: int, end: int, size_bytes: int, seq: int) -> None:
        total = self._rollups.get((step, pg))
        if total is None:  # its step's roll-up is written already, or there are too many
            return
        total[0] -= 1
        total[1] += 1
        total[2] += size_bytes
        total[3] += end - t
        total[4] = max(total[4], end - t)
        total[7] = max(total[7], end)
        total[8] = max(total[8], seq)

    def _tag(self) -> int:
        ident = _ident()
        tag = self._tags.get(ident)
        if tag is None:
            tag = next(self._new_tags) & 0xFFFF
            if len(self._tags) < _MAX_THREADS:
                self._tags[ident] = tag
        return tag
