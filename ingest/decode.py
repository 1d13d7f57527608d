"""Records of many processes at once, from the bytes of their segments to rows of the facts.

Everything is done on whole columns: a batch holds records of one process after the other, and each record
knows by `owner` which of the batch's processes wrote it. Only records that say something by themselves become
rows: ends carry their begin, and begins are kept aside until their end is seen.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankscope.ingest.layout import NO_STEP, Flag, Kind
from rankscope.ingest.segments import TIME_LIMIT, Mask, Records
from rankscope.ingest.strings import UNKNOWN, Strings
from rankscope.ingest.vocabulary import SpanCategory

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Process:
    """What every row of one process carries."""

    run_id: str
    attempt: int
    rank: int
    incarnation: int
    host: str
    source_id: int


@dataclass
class Batch:
    """Records of several processes, one process after the other, each one's in the order of their slots."""

    records: Records  # kind 0 where nothing is to be read
    owner: Ints  # index into processes, per record; int32, as it is the one column that all others need
    slot: Ints  # per record
    offset: Ints  # per record: wall clock minus monotonic clock, ns
    processes: Sequence[Process]
    names: Sequence[Ints]  # per process: the number in `strings` of each of its own string ids
    strings: Strings
    moved: dict[int, int] = field(default_factory=dict)  # place of a record -> attempt, if not its process'


@dataclass
class Decoded:
    """Rows by table, and what became of begun spans and collectives."""

    tables: dict[str, pa.Table]
    open_tables: dict[str, pa.Table]  # 'open_span', 'collective': begun and not ended within the batch
    opened: dict[str, tuple[Ints, Ints]]  # by the same names: (owner, slot) of these rows
    ended: dict[str, tuple[Ints, Ints]]  # (owner, slot of the begin) of ends whose begin is not in the batch
    last_ns: Ints  # per process: its last record's wall time, 0 without one
    last_step: Ints  # per process; NO_STEP without one
    bad_times: Ints  # per process: records left out because their times cannot be


def decode(batch: Batch) -> Decoded:
    """Turn a batch into rows. Records of kinds STRING, EVENT and COLL_ROLLUP2 are left to their readers."""
    records, columns = batch.records, _Columns(batch)
    # Looked through many times: records lie 64 bytes apart, these close together.
    kind, t = np.ascontiguousarray(records["kind"]), np.ascontiguousarray(records["t"])
    bad = _impossible(records, kind, t)
    bad_times = np.bincount(batch.owner[bad], minlength=len(batch.processes)).astype(np.int64)
    if bad.any():
        kind = np.where(bad, 0, kind)

    ends = {
        "open_span": np.flatnonzero(kind == Kind.SPAN_END),
        "collective": np.flatnonzero(kind == Kind.COLL_END),
    }
    begins = {
        "open_span": np.flatnonzero(kind == Kind.SPAN_BEGIN),
        "collective": np.flatnonzero(kind == Kind.COLL_BEGIN),
    }
    begin_slots = {"open_span": records["b"], "collective": records["d"]}
    first_of = np.searchsorted(batch.owner, np.arange(len(batch.processes)))

    tables: dict[str, pa.Table] = {}
    if len(ends["open_span"]):
        tables["span"] = _spans(columns, ends["open_span"])
    if len(ends["collective"]):
        tables["collective"] = _collectives(columns, ends["collective"])
    for table, wanted, build in (
        ("scalar", Kind.SCALAR, _scalars),
        ("clock_pair", Kind.CLOCK, _clock_pairs),
    ):
        index = np.flatnonzero(kind == wanted)
        if len(index):
            tables[table] = build(columns, index)

    open_tables: dict[str, pa.Table] = {}
    opened: dict[str, tuple[Ints, Ints]] = {}
    ended: dict[str, tuple[Ints, Ints]] = {}
    for table, build in (("open_span", _open_spans), ("collective", _open_collectives)):
        end, begin = ends[table], begins[table]
        wanted_slot = begin_slots[table][end]
        owner = batch.owner[end]
        # Within a batch a process' slots lie side by side, so the begin of an end is found by arithmetic.
        place = wanted_slot - batch.slot[first_of[owner]] + first_of[owner]
        here = (wanted_slot >= batch.slot[first_of[owner]]) & (place < end)
        closed = np.zeros(len(records), dtype=bool)
        closed[place[here]] = True
        earlier = ~here & (wanted_slot >= 0)
        ended[table] = (owner[earlier], wanted_slot[earlier])
        still = begin[~closed[begin]]
        opened[table] = (batch.owner[still], batch.slot[still])
        if len(still):
            open_tables[table] = build(columns, still)

    timed = (kind >= Kind.SPAN_BEGIN) & (kind <= Kind.CLOCK)
    last_ns = np.zeros(len(batch.processes), dtype=np.int64)
    last_step = np.full(len(batch.processes), NO_STEP, dtype=np.int64)
    if len(records):
        present = np.flatnonzero(np.diff(first_of, append=len(records)))
        starts = first_of[present]
        last_ns[present] = np.maximum.reduceat(np.where(timed, t + batch.offset, 0), starts)
        last_step[present] = np.maximum.reduceat(np.where(timed, records["step"], NO_STEP), starts)
    return Decoded(tables, open_tables, opened, ended, last_ns, last_step, bad_times)


def rollups(batch: Batch, first: Ints, second: Ints) -> pa.Table:
    """Rows of collective_rollup from the places of their two halves."""
    columns, records = _Columns(batch), batch.records
    offset = batch.offset[first]
    return pa.table(
        columns.head(first)
        | {
            "step": columns.step(first),
            "pg": columns.text("pg", first),
            "count": records["a"][first],
            "bytes": records["b"][first],
            "total_ns": records["c"][first],
            "max_ns": records["d"][first],
            "first_enqueue_ns": records["a"][second] + offset,
            "last_enqueue_ns": records["t"][second] + offset,
            "last_end_ns": records["t"][first] + offset,
            "last_seq": records["b"][second],
        }
        | columns.tail(first)
    )


def _impossible(records: Records, kind: npt.NDArray[np.uint8], t: Ints) -> Mask:
    """Records whose times no clock can have shown, and that would overflow."""
    # As unsigned numbers, negative ones are beyond the limit too.
    bad: Mask = (t.view(np.uint64) > TIME_LIMIT) & (kind >= Kind.SPAN_BEGIN) & (kind <= Kind.CLOCK)
    for end, begin in ((Kind.SPAN_END, "a"), (Kind.COLL_END, "c")):
        places = np.flatnonzero(kind == end)
        bad[places] |= records[begin][places].view(np.uint64) > TIME_LIMIT
    return bad


class _Columns:
    """Columns that several tables share, for the records at given places of a batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.records = batch.records
        # All processes' string numbers in one array, so that one gather serves the whole batch.
        self._names = np.concatenate([*batch.names, np.array([UNKNOWN], dtype=np.int64)])
        self._sizes = np.array([len(names) for names in batch.names], dtype=np.int64)
        self._starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._sizes)[:-1]])
        processes = batch.processes
        self._runs = pa.array([process.run_id for process in processes], pa.string())
        self._ranks = np.array([process.rank for process in processes], dtype=np.int32)
        self._incarnations = np.array([process.incarnation for process in processes], dtype=np.int32)
        self._sources = np.array([process.source_id for process in processes], dtype=np.int64)
        self._attempts = np.array([process.attempt for process in processes], dtype=np.int32)

    def head(self, index: Ints) -> dict[str, object]:
        owner = self.batch.owner[index]
        attempt = self._attempts[owner]
        if self.batch.moved:
            places = np.array(list(self.batch.moved), dtype=np.int64)
            attempts = np.array(list(self.batch.moved.values()), dtype=np.int32)
            _, here, there = np.intersect1d(index, places, assume_unique=True, return_indices=True)
            attempt[here] = attempts[there]
        return {
            "run_id": pa.DictionaryArray.from_arrays(pa.array(owner), self._runs),
            "attempt": attempt,
            "rank": self._ranks[owner],
            "incarnation": self._incarnations[owner],
        }

    def tail(self, index: Ints) -> dict[str, object]:
        return {"source_id": self._sources[self.batch.owner[index]]}

    def numbers(self, field: str, index: Ints) -> Ints:
        """Numbers of strings in the batch's `strings`; UNKNOWN for ids that nothing explains."""
        owner = self.batch.owner[index]
        local = self.records[field][index].astype(np.int64)
        place = self._starts[owner] + local
        beyond = local >= self._sizes[owner]
        if beyond.any():
            place[beyond] = len(self._names) - 1
        found: Ints = self._names[place]
        return found

    def text(self, field: str, index: Ints) -> pa.Array:
        return self.batch.strings.column(self.numbers(field, index))

    def attrs(self, index: Ints) -> pa.Array:
        return self.batch.strings.json_column(self.numbers("attr", index))

    def wall(self, field: str, index: Ints) -> Ints:
        """Times since the epoch."""
        times: Ints = self.records[field][index] + self.batch.offset[index]
        return times

    def step(self, index: Ints) -> pa.Array:
        step = self.records["step"][index].astype(np.int64)
        return pa.array(step, mask=step < 0)

    def flag(self, flag: Flag, index: Ints) -> Mask:
        found: Mask = (self.records["flags"][index] & flag) != 0
        return found


def _constant(value: str | None, length: int) -> pa.Array:
    if value is None:
        return pa.nulls(length, pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, dtype=np.int8)), pa.array([value]))


def _choice(mask: Mask, if_true: str, if_false: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(mask.astype(np.int8)), pa.array([if_false, if_true]))


def _spans(columns: _Columns, index: Ints) -> pa.Table:
    category = columns.numbers("pg", index)
    is_step = category == columns.batch.strings.number(SpanCategory.STEP)
    committed = columns.flag(Flag.COMMITTED, index)
    known = is_step & (committed | columns.flag(Flag.NOT_COMMITTED, index))
    return pa.table(
        columns.head(index)
        | {
            "category": columns.batch.strings.column(category),
            "name": columns.text("name", index),
            "step": columns.step(index),
            "committed": pa.array(committed, mask=~known),
            "begin_ns": columns.wall("a", index),
            "end_ns": columns.wall("t", index),
            "status": _choice(columns.flag(Flag.ERROR, index), "error", "ok"),
            "thread": columns.records["tag"][index].astype(np.int32),
            "attrs": columns.attrs(index),
        }
        | columns.tail(index)
    )


def _open_spans(columns: _Columns, index: Ints) -> pa.Table:
    return pa.table(
        columns.head(index)
        | {
            "category": columns.text("pg", index),
            "name": columns.text("name", index),
            "step": columns.step(index),
            "begin_ns": columns.wall("t", index),
            "thread": columns.records["tag"][index].astype(np.int32),
            "attrs": columns.attrs(index),
            "slot": columns.batch.slot[index],
        }
        | columns.tail(index)
    )


def _collective(columns: _Columns, index: Ints, own: dict[str, object]) -> pa.Table:
    dtype, sizes, site = columns.batch.strings.split_columns(columns.numbers("attr", index), 3)
    return pa.table(
        columns.head(index)
        | {
            "pg": columns.text("pg", index),
            "seq": columns.records["a"][index],
            "op": columns.text("name", index),
            "dtype": dtype,
            "sizes": sizes,
            "bytes": columns.records["b"][index],
            "site": site,
            "step": columns.step(index),
            "is_async": columns.flag(Flag.ASYNC, index),
            "is_p2p": columns.flag(Flag.P2P, index),
        }
        | own
        | columns.tail(index)
    )


def _collectives(columns: _Columns, index: Ints) -> pa.Table:
    slot = columns.records["d"][index]
    return _collective(
        columns,
        index,
        {
            "enqueue_ns": columns.wall("c", index),
            "end_ns": columns.wall("t", index),
            "state": _choice(columns.flag(Flag.ERROR, index), "error", "completed"),
            "attrs": _constant(None, len(index)),
            "slot": np.where(slot >= 0, slot, columns.batch.slot[index]),
        },
    )


def _open_collectives(columns: _Columns, index: Ints) -> pa.Table:
    peer = columns.records["c"][index].tolist()
    attrs = pa.array([json.dumps({"peer": rank}) if rank >= 0 else None for rank in peer], pa.string())
    return _collective(
        columns,
        index,
        {
            "enqueue_ns": columns.wall("t", index),
            "end_ns": pa.nulls(len(index), pa.int64()),
            "state": _constant("started", len(index)),
            "attrs": attrs,
            "slot": columns.batch.slot[index],
        },
    )


def _scalars(columns: _Columns, index: Ints) -> pa.Table:
    return pa.table(
        columns.head(index)
        | {
            "step": columns.step(index),
            "name": columns.text("name", index),
            "value": np.ascontiguousarray(columns.records["a"][index]).view("<f8"),
            "time_ns": columns.wall("t", index),
        }
        | columns.tail(index)
    )


def _clock_pairs(columns: _Columns, index: Ints) -> pa.Table:
    hosts = pa.array([process.host for process in columns.batch.processes], pa.string())
    owner = pa.array(columns.batch.owner[index])
    return pa.table(
        columns.head(index)
        | {
            "host": pa.DictionaryArray.from_arrays(owner, hosts),
            "wall_ns": columns.records["a"][index],
            "mono_ns": columns.records["t"][index],
        }
        | columns.tail(index)
    )
