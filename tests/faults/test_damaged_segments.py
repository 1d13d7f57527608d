"""Segments that are cut short, damaged, deleted or hostile: one clear line, and the rest is kept."""

import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import MONO_NS, HandWriter, collect, living

from rankscope.ingest import stream
from rankscope.ingest.collector import Collector
from rankscope.ingest.layout import CHUNK, HEADER, MAGIC, PAGE, RECORD, RECORD_SIZE, SLOTS, Kind
from rankscope.ingest.processes import start_ns
from rankscope.ingest.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.duckdb") as opened:
        yield opened


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "s.spool"


def steps(store: Store, rank: int = 0) -> list[int]:
    found = store.rows("SELECT step FROM scalar WHERE rank = $rank ORDER BY step", {"rank": rank})
    return [row["step"] for row in found]


def source(store: Store, rank: int = 0) -> dict[str, object]:
    return store.rows("SELECT * FROM source WHERE rank = $rank", {"rank": rank})[0]


def test_garbage_for_a_header_loses_that_file_alone(store: Store, spool: Path) -> None:
    for rank in range(2):
        writer = HandWriter(spool, rank=rank)
        for step in range(SLOTS + 10):
            writer.scalar(1.0, step=step)
    bad = HandWriter(spool, rank=0)
    bad.path(0).write_bytes(os.urandom(3 * PAGE))
    said = collect(store, spool)
    assert len(said) == 1
    assert bad.stream in said[0]
    assert "segment 0" in said[0]
    assert steps(store, 1) == list(range(SLOTS + 10))
    # What the second file of the damaged stream holds is kept; its first record is the string's successor.
    assert steps(store, 0) == steps(store, 1)[-len(steps(store, 0)) :]
    assert source(store, 0)["errors"] == 1
    assert source(store, 0)["dropped"] == SLOTS
    assert source(store, 1)["errors"] == 0


def test_only_file_without_a_sound_header_is_a_source_with_an_error(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    writer.scalar(1.0, step=0)
    writer.path(0).write_bytes(b"not a segment" * 1000)
    said = collect(store, spool)
    assert len(said) == 1
    row = store.rows("SELECT run_id, rank, errors, complete, last_error FROM source")[0]
    assert (row["run_id"], row["rank"], row["errors"], row["complete"]) == ("run", None, 1, True)
    assert "does not begin as a segment" in row["last_error"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (1, 32),  # record size
        (3, PAGE - 64),  # header size
        (3, 1 << 31),
        (4, 7),  # index
        (5, 1000),  # slots
        (6, 12),  # base slot
        (7, -5),  # wall clock
        (7, (1 << 63) - 1),
        (8, -1),  # monotonic clock
        (11, 1 << 31),  # size of the JSON
    ],
)
def test_header_with_impossible_numbers(store: Store, spool: Path, field: int, value: int) -> None:
    writer = HandWriter(spool)
    writer.scalar(1.0, step=0)
    fields = list(HEADER.unpack(writer.path(0).read_bytes()[: HEADER.size]))
    fields[field] = value
    writer.poke(0, 0, HEADER.pack(*fields))
    other = HandWriter(spool, rank=1)
    other.scalar(1.0, step=0)
    assert len(collect(store, spool)) == 1
    assert steps(store, 1) == [0]
    assert steps(store, 0) == []


@pytest.mark.parametrize(
    "described", [b"", b"{", b"[]", b"null", b'{"identity": 3, "strings": []}', b"[" * 4000]
)
def test_header_with_a_description_that_is_none(store: Store, spool: Path, described: bytes) -> None:
    writer = HandWriter(spool)
    writer.scalar(1.0, step=0)
    fields = list(HEADER.unpack(writer.path(0).read_bytes()[: HEADER.size]))
    fields[11] = len(described)
    fields[3] = 2 * PAGE
    writer.poke(0, 0, HEADER.pack(*fields) + described)
    assert len(collect(store, spool)) == 1


def test_identity_of_strange_values_does_not_stop_the_others(store: Store, spool: Path) -> None:
    strange = HandWriter(
        spool, rank=3, world_size="many", local_rank=1 << 80, incarnation=None, replica_group=[], mesh="x",
        launch_id="\ud800", command={"a": 1}, role="", restart_count=-1 << 40,
    )  # fmt: skip
    strange.scalar(2.0, step=5)
    HandWriter(spool, rank=0).scalar(1.0, step=0)
    assert collect(store, spool) == []
    assert steps(store, 3) == [5]
    assert steps(store, 0) == [0]


def test_truncated_file_keeps_what_is_before_the_cut(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    slots = [writer.scalar(1.0, step=step) for step in range(100)]
    os.truncate(writer.path(0), writer.at(slots[40]) + 10)
    collect(store, spool)
    assert steps(store) == list(range(40))
    assert source(store)["complete"] is True


def test_truncated_file_in_the_middle_of_a_stream(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    slots = [writer.scalar(1.0, step=step) for step in range(SLOTS + 50)]
    os.truncate(writer.path(0), writer.at(slots[40]))
    said = collect(store, spool)
    assert len(said) == 1
    kept = steps(store)
    assert kept[:40] == list(range(40))
    assert kept[40] == SLOTS - 1  # slot of step n is n + 1: the string came first
    assert kept[-1] == SLOTS + 49
    assert source(store)["dropped"] == SLOTS - 41


def test_deleted_file_in_the_middle_of_a_stream(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    for step in range(2 * SLOTS + 50):
        writer.scalar(1.0, step=step)
    writer.path(1).unlink()
    said = collect(store, spool)
    assert len(said) == 1
    assert "segment 1 is gone" in said[0]
    assert source(store)["dropped"] == SLOTS
    assert len(steps(store)) == SLOTS + 50


def test_files_deleted_while_nobody_collected(store: Store, spool: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        began = start_ns(process.pid)
        assert began is not None
        writer = HandWriter(spool, pid=process.pid, start_ns=began)
        writer.scalar(1.0, step=0)
        collect(store, spool)
        assert source(store)["complete"] is False
        writer.path(0).unlink()
        process.kill()
    collect(store, spool)
    assert source(store)["complete"] is True
    assert steps(store) == [0]
    exits = store.rows("SELECT rank, pid, observer, exit_code FROM process_exit")
    assert exits == [{"rank": 0, "pid": writer.pid, "observer": "collector", "exit_code": None}]


def test_damaged_record_is_stepped_over_when_its_process_is_gone(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    slots = [writer.scalar(1.0, step=step) for step in range(20)]
    writer.poke(0, writer.at(slots[7]), os.urandom(60) + b"\0\0\0\0")
    said = collect(store, spool)
    assert len(said) == 1
    assert steps(store) == [step for step in range(20) if step != 7]
    assert source(store)["dropped"] == 1


def test_unpublished_record_of_a_living_process_is_waited_for(store: Store, spool: Path) -> None:
    writer = living(spool)
    writer.scalar(1.0, step=0)
    hole = writer.skip()
    writer.scalar(1.0, step=2)
    with Collector(store, spool) as collector:
        collector.catch_up()
        assert steps(store) == [0]
        bits = struct.unpack("<q", struct.pack("<d", 1.0))[0]
        writer.put(RECORD.pack(MONO_NS, bits, 0, 0, 0, 1, 0, 1, 0, 0, Kind.SCALAR, 0, 0), slot=hole)
        collector.catch_up()
    assert steps(store) == [0, 1, 2]
    assert source(store)["dropped"] == 0


def test_unpublished_record_is_given_up_when_its_process_went_on_for_long(
    store: Store, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(stream.time, "monotonic", lambda: clock[0])
    writer = living(spool)
    writer.scalar(1.0, step=0)
    writer.skip()
    for step in range(2, stream.PATIENCE_RECORDS + 10):
        writer.scalar(1.0, step=step)
    with Collector(store, spool, say=lambda _: None) as collector:
        collector.catch_up()
        clock[0] += stream.PATIENCE_S / 2
        collector.catch_up()
        assert steps(store) == [0]
        clock[0] += stream.PATIENCE_S
        collector.catch_up()
        collector.catch_up()
    assert steps(store) == [0, *range(2, stream.PATIENCE_RECORDS + 10)]
    assert source(store)["dropped"] == 1


def test_next_file_made_ready_does_not_end_the_wait(
    store: Store, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(stream.time, "monotonic", lambda: clock[0])
    writer = living(spool)
    writer.scalar(1.0, step=0)
    writer.make(1)
    with Collector(store, spool) as collector:
        for _ in range(4):
            collector.catch_up()
            clock[0] += stream.PATIENCE_S
        writer.scalar(1.0, step=1)
        collector.catch_up()
    assert steps(store) == [0, 1]
    assert source(store)["dropped"] == 0


def test_dead_process_with_its_next_file_made_ready_is_complete(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    writer.scalar(1.0, step=0)
    writer.make(1)
    assert collect(store, spool) == []
    assert source(store)["complete"] is True
    assert source(store)["dropped"] == 0
    assert list(spool.rglob("*.seg")) == []


def test_hostile_records(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    writer.scalar(1.0, step=0)
    far = (1 << 63) - 1
    writer.put(RECORD.pack(far, far, far, far, far, 1, 1, 1, 1, 1, Kind.SPAN_END, 255, 0))
    writer.put(RECORD.pack(5, -far, far, far, far, 1, 1, 1, 1, 1, Kind.SPAN_END, 255, 0))
    writer.put(RECORD.pack(-5, 0, 0, 0, 0, 1, 1, 1, 1, 1, Kind.COLL_BEGIN, 255, 0))
    writer.put(RECORD.pack(5, 0, 0, 0, 0, 1, 1, 1, 1, 1, 77, 255, 0))  # unknown kind
    writer.put(RECORD.pack(5, 0, 0, 5, far, 0xFFFFFFFF, 0xFFFFFFF0, -7, 0xFFFFFFFF, 1, Kind.COLL_END, 0, 0))
    writer.put(RECORD.pack(5, 5, 1, 0, 0, 0, 0, 0, 0, 0, Kind.SPAN_END, 0, 0))  # b is no begin
    writer.put(CHUNK.pack(0xFFFFFFFF, 0, 1, b"x", 1, Kind.STRING, 0, 0))
    writer.put(CHUNK.pack(9, 5, 2, b"x", 1, Kind.EVENT, 0, 0))  # index beyond count
    writer.put(CHUNK.pack(9, 0, 1, b"x", 200, Kind.EVENT, 0, 0))  # longer than a chunk
    writer.put(RECORD.pack(5, 0, 0, 0, 0, 0, 0, 0, 4, 0, Kind.COLL_ROLLUP, 0, 0))  # no other half
    writer.scalar(float("nan"), step=1)
    writer.scalar(float("-inf"), step=2)
    said = collect(store, spool)
    assert steps(store) == [0, 1, 2]
    assert source(store)["complete"] is True
    assert source(store)["errors"] == len(said)
    assert 1 <= len(said) <= 6
    unknown = store.rows("SELECT op, pg, step, dtype FROM collective WHERE end_ns IS NOT NULL")
    assert unknown == [{"op": "?", "pg": "?", "step": None, "dtype": "?"}]


@pytest.mark.parametrize(
    "text",
    [
        b"{", b"[1]", b"null", b'"x"', b"\xff\xfe\x00", b"[" * 3000,
        b'{"type": "nope"}', b'{"type": ["signal"]}', b"{}",
        b'{"type": "signal", "time_ns": "soon"}', b'{"type": "signal", "time_ns": 1e400}',
        b'{"type": "signal", "rank": 3000000000}', b'{"type": "process_group", "ranks": [1, "a"]}',
        b'{"type": "process_exit", "restart_count": "x"}', b'{"type": "signal", "time_ns": true}',
    ],
)  # fmt: skip
def test_event_that_is_no_row(store: Store, spool: Path, text: bytes) -> None:
    writer = HandWriter(spool)
    writer.blob(Kind.EVENT, 0, text)
    writer.scalar(1.0, step=0)
    said = collect(store, spool)
    assert len(said) == 1
    assert "an event" in said[0]
    assert steps(store) == [0]
    assert source(store)["errors"] == 1


def test_event_with_hostile_attributes_is_kept(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    hostile = {
        "type": "signal",
        "kind": "exit",
        "message": "\ud800'; DROP TABLE run; --\x00",
        "run_id": "other",
    }
    writer.event(**hostile, source_id=5, nan=float("nan"), deep=[[[[1]]]], attrs={"a": "</script>"})
    assert collect(store, spool) == []
    row = store.rows("SELECT run_id, kind, message, attrs->>'a' AS a, attrs->>'deep' AS deep FROM signal")[0]
    assert row["run_id"] == "run"
    assert "DROP TABLE" in row["message"]
    assert (row["a"], row["deep"]) == ("</script>", "[[[[1]]]]")


def test_text_cut_off_by_death_is_counted(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    writer.scalar(1.0, step=0)
    writer.blob(Kind.EVENT, 0, b'{"type": "signal", "message": "' + b"x" * 200 + b'"}', slice(0, 3))
    said = collect(store, spool)
    assert len(said) == 1
    assert steps(store) == [0]
    assert source(store)["dropped"] == 3


def test_text_half_written_by_a_living_process_is_waited_for(store: Store, spool: Path) -> None:
    writer = living(spool)
    text = b'{"type": "signal", "message": "' + b"x" * 200 + b'"}'
    writer.blob(Kind.EVENT, 0, text, slice(0, 2))
    writer.scalar(1.0, step=0)
    with Collector(store, spool) as collector:
        collector.catch_up()
        assert store.rows("FROM signal") == []
        assert steps(store) == []  # behind the text, which is read again with it
        writer.blob(Kind.EVENT, 0, text, slice(2, None))
        collector.catch_up()
    assert store.rows("SELECT length(message) AS n FROM signal") == [{"n": 200}]
    assert steps(store) == [0]


def test_text_over_the_border_of_two_files(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    while writer.slot < SLOTS - 2:
        writer.scalar(1.0, step=writer.slot)
    writer.event(type="signal", kind="exit", message="m" * 400)
    writer.scalar(1.0, step=0, name="a name first seen after the border")
    assert collect(store, spool) == []
    assert store.rows("SELECT length(message) AS n FROM signal") == [{"n": 400}]
    assert store.rows("SELECT count(*) AS n FROM scalar WHERE name LIKE 'a name%'") == [{"n": 1}]


def test_records_that_the_writer_dropped_are_counted(store: Store, spool: Path) -> None:
    writer = HandWriter(spool)
    writer.scalar(1.0, step=0)
    writer.drop(7)
    hostile = HandWriter(spool, rank=1)
    hostile.scalar(1.0, step=0)
    hostile.drop((1 << 64) - 1)
    assert collect(store, spool) == []
    assert (source(store)["dropped"], source(store)["errors"]) == (7, 0)
    assert source(store, 1)["dropped"] == 1 << 62


def test_other_files_in_the_spool_are_left_alone(store: Store, spool: Path) -> None:
    HandWriter(spool).scalar(1.0, step=0)
    strangers = [
        spool / "README",
        spool / "run" / "notes.txt",
        spool / "run" / "x.seg",
        spool / "run" / "a-1-2.x.seg",
    ]
    for path in strangers:
        path.write_text("hello")
    (spool / "run" / f"a-1-2.{10**12}.seg").mkdir()
    assert collect(store, spool) == []
    assert all(path.exists() for path in strangers)


def test_magic_constant_is_what_files_begin_with(spool: Path) -> None:
    writer = HandWriter(spool)
    writer.make(0)
    assert writer.path(0).read_bytes()[:8] == MAGIC
    assert writer.path(0).stat().st_size == PAGE + SLOTS * RECORD_SIZE
