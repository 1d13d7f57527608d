"""A round of the collector: what was read from many streams, as the changes that one transaction makes."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankscope.ingest.decode import Batch, Decoded, Process, decode, rollups
from rankscope.ingest.events import BadEvent, EventReader, Row
from rankscope.ingest.layout import Kind
from rankscope.ingest.reading import Reading
from rankscope.ingest.registry import Additions, Registry
from rankscope.ingest.segments import joined
from rankscope.ingest.stream import Take
from rankscope.ingest.strings import Strings
from rankscope.ingest.writer import Changes

# Begun and not ended, a process and kind; beyond, the oldest stay in the store as they are.
MAX_OPEN: Final = 65_536

Ints = npt.NDArray[np.int64]


def build(
    takes: Sequence[tuple[Reading, Take]],
    changed: Sequence[Reading],
    registry: Registry,
    strings: Strings,
    types: Mapping[str, Mapping[str, str]],
) -> Changes:
    """The changes that this round makes.

    Args:
        takes: records, by reading; each reading has its process.
        changed: all readings whose state changed.
    """
    events = EventReader(types)
    tables: list[tuple[str, pa.Table]] = []
    gone: dict[str, list[tuple[int, int]]] = {"open_span": [], "collective": []}
    steps: dict[int, int] = {}
    if takes:
        batch = _batch(takes, registry, strings)
        decoded = decode(batch)
        tables += [*decoded.tables.items(), *decoded.open_tables.items()]
        paired = _rollup_places(takes)
        if paired is not None:
            tables.append(("collective_rollup", rollups(batch, *paired)))
        for number, (reading, take) in enumerate(takes):
            _read_events(events, reading, take, registry)
            reading.last_ns = max(reading.last_ns, int(decoded.last_ns[number]))
            steps[reading.source_id] = int(decoded.last_step[number])
            if decoded.bad_times[number]:
                reading.stream.lost += int(decoded.bad_times[number])
                reading.stream.complain(f"{int(decoded.bad_times[number])} records with impossible times")
        gone = _track_open(takes, decoded)
        tables += events.tables().items()
    counts = {reading.source_id: count(take) for reading, take in takes}
    now = time.time_ns()
    changes = Changes(
        additions=registry.additions,
        sources=[_source_row(reading) for reading in changed if not reading.is_known],
        tables=tables,
        gone=gone,
        updates=events.updates,
        exits=[
            _exit_row(reading, reading.process, now)
            for reading in changed
            if reading.complete and not reading.closed and reading.process is not None
        ],
        state=[
            {
                "source_id": reading.source_id,
                "next_slot": reading.stream.next_slot,
                "records": counts.get(reading.source_id, 0),
                "dropped": reading.stream.lost + reading.stream.writer_dropped,
                "writer_dropped": reading.stream.writer_dropped,
                "errors": reading.stream.errors,
                "last_error": reading.stream.last_error,
                "complete": reading.complete,
                "updated_ns": now,
                "last_ns": reading.last_ns,
                "step": step if (step := steps.get(reading.source_id, -1)) >= 0 else None,
            }
            for reading in changed
        ],
        runs={reading.process.run_id if reading.process else reading.name.run for reading in changed},
    )
    registry.additions = Additions()
    for reading in changed:
        reading.is_known = True  # a transaction that fails makes its collector forget all readings
    return changes


def _batch(takes: Sequence[tuple[Reading, Take]], registry: Registry, strings: Strings) -> Batch:
    lengths = [len(take.records) for _, take in takes]
    processes = [reading.process for reading, _ in takes if reading.process is not None]
    assert len(processes) == len(takes), "records come with a header, and a header names its process"
    slots = [np.arange(take.first_slot, take.next_slot, dtype=np.int64) for _, take in takes]
    batch = Batch(
        records=joined([take.records for _, take in takes]),
        owner=np.repeat(np.arange(len(takes), dtype=np.int32), lengths),
        slot=np.concatenate(slots),
        offset=np.concatenate([take.offset for _, take in takes]),
        processes=processes,
        names=[reading.stream.names for reading, _ in takes],
        strings=strings,
    )
    start = 0
    for (reading, _), length in zip(takes, lengths, strict=True):
        if reading.process is not None and reading.process.rank < 0:
            _place_launcher_spans(batch, reading, registry, slice(start, start + length))
        start += length
    return batch


def _place_launcher_spans(batch: Batch, reading: Reading, registry: Registry, part: slice) -> None:
    """A launcher outlives attempts: each of its spans says by restart_count which one it belongs to."""
    kinds = batch.records["kind"][part]
    places = np.flatnonzero((kinds == Kind.SPAN_BEGIN) | (kinds == Kind.SPAN_END)) + part.start
    names = reading.stream.names
    for place in places.tolist():
        local = int(batch.records["attr"][place])
        text = batch.strings.text(int(names[local])) if local < len(names) else ""
        if "restart_count" not in text:
            continue
        try:
            count = json.loads(text)["restart_count"]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**31:
            batch.moved[place] = _attempt(reading, registry, count)


def _attempt(reading: Reading, registry: Registry, restart_count: int) -> int:
    assert reading.process is not None and reading.identity is not None
    identity = reading.identity
    if restart_count == identity.restart_count:
        return reading.process.attempt
    return registry.attempt(identity.run_id, identity.launch_id, restart_count)


def _read_events(events: EventReader, reading: Reading, take: Take, registry: Registry) -> None:
    assert reading.process is not None
    for slot, text in take.events:
        try:
            events.add(reading.process, text, lambda count: _attempt(reading, registry, count))
        except BadEvent as error:
            reading.stream.lost += 1
            reading.stream.complain(f"{error}, in slot {slot}")


def _rollup_places(takes: Sequence[tuple[Reading, Take]]) -> tuple[Ints, Ints] | None:
    first: list[Ints] = []
    second: list[Ints] = []
    start = 0
    for _, take in takes:
        if take.rollups is not None:
            first.append(take.rollups[0] + start)
            second.append(take.rollups[1] + start)
        start += len(take.records)
    return (np.concatenate(first), np.concatenate(second)) if first else None


def _track_open(takes: Sequence[tuple[Reading, Take]], decoded: Decoded) -> dict[str, list[tuple[int, int]]]:
    """Remember what began, and say which rows of what had begun are out of date."""
    gone: dict[str, list[tuple[int, int]]] = {}
    for table, (owners, slots) in decoded.ended.items():
        gone[table] = []
        for owner, slot in zip(owners.tolist(), slots.tolist(), strict=True):
            reading = takes[owner][0]
            if slot in reading.open[table]:
                reading.open[table].discard(slot)
                gone[table].append((reading.source_id, slot))
    for table, (owners, slots) in decoded.opened.items():
        for owner, slot in zip(owners.tolist(), slots.tolist(), strict=True):
            takes[owner][0].open[table].add(slot)
        for owner in set(owners.tolist()):
            known = takes[owner][0].open[table]
            if len(known) > MAX_OPEN:
                takes[owner][0].open[table] = set(sorted(known)[-MAX_OPEN:])
    return gone


def count(take: Take) -> int:
    """Records that say something."""
    return int(np.count_nonzero(take.records["kind"]))


def _source_row(reading: Reading) -> Row:
    process = reading.process
    return {
        "source_id": reading.source_id,
        "run_id": process.run_id if process else reading.name.run,
        "attempt": process.attempt if process else None,
        "rank": process.rank if process else None,
        "incarnation": process.incarnation if process else None,
        "kind": "segment",
        "stream": reading.stream.name,
        "path": str(reading.stream.spool / reading.stream.name),
        "records": 0,
    }


def _exit_row(reading: Reading, process: Process, now: int) -> Row:
    """The end of a process that said nothing: between its last record and the moment it was missed."""
    return {
        "run_id": process.run_id,
        "attempt": process.attempt,
        "rank": process.rank,
        "incarnation": process.incarnation,
        "pid": reading.name.pid,
        "host": process.host,
        "time_ns": reading.last_ns or None,
        "observer": "collector",
        "attrs": json.dumps({"not_before_ns": reading.last_ns or None, "not_after_ns": now}),
        "source_id": process.source_id,
    }
