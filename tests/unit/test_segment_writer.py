"""The writer of a stream, with either pen: what it wrote is there, in files that are whole."""

import json
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from pens import PENS
from plain_reader import read_stream, the_stream

from rankscope.ingest import mapped, segment
from rankscope.ingest.layout import NO_STEP, SLOTS, Flag, Kind
from rankscope.ingest.segment import MAX_TEXT, TOO_MANY, SegmentWriter

IDENTITY = {"run_id": "run", "rank": 3, "odd": 'quoted " \\ \n é \ud800'}


@pytest.fixture(params=PENS)
def fast(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def make(spool: Path, fast: bool, **options: Any) -> SegmentWriter:
    writer = SegmentWriter(spool / "run", "host-1-2", IDENTITY, fast=fast, **options)
    assert writer.pen.is_fast == fast
    return writer


def test_fields_come_back(tmp_path: Path, fast: bool) -> None:
    writer = make(tmp_path, fast)
    name, pg, attr = writer.intern("naïve"), writer.intern("group"), writer.intern("x" * 500)
    slot = writer.record(
        Kind.COLL_END, 2**62, a=-1, b=2**63 - 1, c=-(2**63), d=7, name=name, pg=pg, step=-5, attr=attr,
        tag=65535, flags=255,
    )  # fmt: skip
    stream = the_stream(tmp_path)
    assert stream.identity == IDENTITY
    (found,) = stream.records
    assert (found.slot, found.kind, found.t) == (slot, Kind.COLL_END, 2**62)
    assert (found.a, found.b, found.c, found.d) == (-1, 2**63 - 1, -(2**63), 7)
    assert (found.name, found.pg, found.attr) == ("naïve", "group", "x" * 500)
    assert (found.step, found.tag, found.flags) == (-5, 65535, 255)
    assert stream.holes == [] and stream.dropped == 0


@pytest.mark.parametrize(
    "wrong",
    [{"a": 2**63}, {"name": -1}, {"step": 2**31}, {"tag": 65536}, {"flags": 256}, {"a": "text"}, {"t": 1.5}],
)
def test_values_out_of_range_are_dropped_and_counted(
    tmp_path: Path, fast: bool, wrong: dict[str, Any]
) -> None:
    writer = make(tmp_path, fast)
    assert writer.record(**({"kind": Kind.SCALAR, "t": 1} | wrong)) == -1
    assert writer.record(Kind.SCALAR, 2, a=9) >= 0
    writer.close()
    stream = the_stream(tmp_path)
    assert [record.a for record in stream.records] == [9]
    assert (stream.dropped, writer.dropped, stream.holes) == (1, 1, [])


def test_files_follow_each_other(tmp_path: Path, fast: bool) -> None:
    writer = make(tmp_path, fast)
    count = 2 * SLOTS + 10
    for number in range(count):
        if number % 20_000 == 0:
            name = writer.intern(f"since {number}")
        writer.record(Kind.SCALAR, number, a=number, name=name)
    first = next(tmp_path.glob("run/*.0.seg"))
    stream = read_stream(first)
    assert [record.a for record in stream.records] == list(range(count))
    assert all(record.name == f"since {record.a // 20_000 * 20_000}" for record in stream.records)
    # Each file explains itself: the ones before are deleted once they are read.
    alone = read_stream(first.with_name(first.name.replace(".0.", ".2.")))
    assert {record.name for record in alone.records} == {"since 120000"}


def test_next_file_is_made_before_it_is_needed(tmp_path: Path, fast: bool) -> None:
    calls: list[int] = []
    writer = make(tmp_path, fast, wake=lambda: calls.append(1))
    for number in range(SLOTS // 2):
        writer.record(Kind.SCALAR, number)
    writer.prepare_next()
    assert (calls, len(list(tmp_path.glob("run/*.seg")))) == ([], 1)
    writer.record(Kind.SCALAR, 0)
    assert calls == [1]
    writer.prepare_next()
    prepared = next(tmp_path.glob("run/*.1.seg"))
    assert prepared.read_bytes()[:8] == bytes(8)  # not a segment before its time
    # What is interned between is in its header nevertheless.
    late = writer.intern("late")
    for number in range(SLOTS):
        writer.record(Kind.SCALAR, number, name=late)
    assert read_stream(prepared).records[-1].name == "late"
    assert len(list(tmp_path.glob("run/*.seg"))) == 2


def test_more_late_texts_than_the_header_has_room_for(tmp_path: Path, fast: bool) -> None:
    writer = make(tmp_path, fast)
    for number in range(SLOTS // 2 + 1):
        writer.record(Kind.SCALAR, number)
    writer.prepare_next()
    names = [writer.intern(f"{number} " + "long " * 200) for number in range(100)]
    for number in range(SLOTS):
        writer.record(Kind.SCALAR, number, name=names[number % 100])
    stream = read_stream(next(tmp_path.glob("run/*.1.seg")))
    assert stream.records[-1].name.startswith(f"{(SLOTS - 1) % 100} long")


def test_texts(tmp_path: Path, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "MAX_STRINGS", 8)
    writer = make(tmp_path, fast)
    assert writer.intern("") == 0
    assert writer.intern("one") == writer.intern("one")
    long = writer.intern("y" * (MAX_TEXT + 5))
    lone = writer.intern("\udc80")
    ids = [writer.intern(f"text {number}") for number in range(20)]
    strings = the_stream(tmp_path).strings
    assert strings[long] == "y" * MAX_TEXT
    assert strings[lone] == "?"
    assert [strings[number] for number in ids] == [f"text {n}" for n in range(3)] + [TOO_MANY] * 17


def test_events(tmp_path: Path, fast: bool) -> None:
    writer = make(tmp_path, fast)
    writer.event({"type": "signal", "message": "ü" * 300, "path": Path("x"), "nan": float("nan")})
    writer.event({"type": "empty"})
    circular: list[Any] = []
    circular.append(circular)
    writer.event({"type": "signal", "message": circular})
    writer.event({"type": "signal", "message": "x" * segment.MAX_BLOB})
    stream = the_stream(tmp_path)
    assert [event["type"] for event in stream.events] == ["signal", "empty"]
    assert stream.events[0]["message"] == "ü" * 300
    assert (stream.dropped, stream.holes) == (2, [])


def test_threads_share_a_stream(tmp_path: Path, fast: bool) -> None:
    writer = make(tmp_path, fast)
    each, threads = 18_000, 4

    def work(number: int) -> None:
        for count in range(each):
            writer.record(Kind.SCALAR, count, a=number, name=writer.intern(f"{number}/{count // 5000}"))

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    stream = the_stream(tmp_path)
    assert (stream.holes, stream.dropped) == ([], 0)
    for number in range(threads):
        own = [record for record in stream.records if record.a == number]
        assert [record.t for record in own] == list(range(each))
        assert all(record.name == f"{number}/{record.t // 5000}" for record in own)


def test_full_disk_ends_the_recording_and_nothing_else(
    tmp_path: Path, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = make(tmp_path, fast)

    def full(fd: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped, "_allocate", full)
    for number in range(SLOTS + 10):
        writer.record(Kind.SCALAR, number)
        if number % 1000 == 0:
            writer.prepare_next()
    writer.event({"type": "signal"})
    assert writer.record(Kind.SCALAR, 0) == -1
    writer.close()
    stream = the_stream(tmp_path)
    assert len(stream.records) == SLOTS
    assert stream.dropped == writer.dropped == 12
    assert [path.suffixes[-2] for path in tmp_path.glob("run/*")] == [".0"]


def test_no_first_file_is_an_oserror(tmp_path: Path, fast: bool) -> None:
    tmp_path.joinpath("run").write_text("in the way")
    with pytest.raises(OSError):
        make(tmp_path, fast)


def test_closed_and_abandoned_writers_are_silent(tmp_path: Path, fast: bool) -> None:
    writer = make(tmp_path, fast)
    writer.record(Kind.SCALAR, 1)
    writer.close()
    writer.close()
    assert writer.record(Kind.SCALAR, 2) == -1
    stream = the_stream(tmp_path)
    assert stream.closed and [record.t for record in stream.records] == [1]

    other = SegmentWriter(tmp_path / "two", "host-1-2", IDENTITY, fast=fast)
    (path,) = (tmp_path / "two").glob("*.seg")
    before = path.read_bytes()
    other.abandon()
    other.record(Kind.SCALAR, 2)
    other.event({"type": "signal"})
    other.intern("text")
    other.prepare_next()
    other.close()
    assert path.read_bytes() == before


def test_what_calls_the_pen_wrongly_is_told(tmp_path: Path, fast: bool) -> None:
    pen = make(tmp_path, fast).pen
    with pytest.raises(TypeError):
        pen.begin()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        pen.begin("a", nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        pen.record(1)  # type: ignore[call-arg]


def test_spans(tmp_path: Path, fast: bool) -> None:
    pen = make(tmp_path, fast).pen
    pen.step = 4
    token = pen.begin("forward", "layer", attrs={"depth": 2})
    pen.end(token, Flag.ERROR)
    pen.end(pen.begin("eval", step=9))
    pen.end(pen.begin("eval", step=2**40))
    begin, end, _, second, _, third = the_stream(tmp_path).of(Kind.SPAN_BEGIN, Kind.SPAN_END)
    assert (begin.pg, begin.name, begin.step, json.loads(begin.attr)) == ("forward", "layer", 4, {"depth": 2})
    assert (end.pg, end.name, end.step, end.attr, end.flags) == (
        "forward",
        "layer",
        4,
        begin.attr,
        Flag.ERROR,
    )
    assert (end.a, end.b) == (begin.t, begin.slot) and end.t >= begin.t
    assert (second.step, third.step) == (9, NO_STEP)


@pytest.mark.parametrize("wrong", [["list"], None, {"a": 1}])
def test_a_pen_never_raises_over_what_it_is_given(tmp_path: Path, fast: bool, wrong: Any) -> None:
    class Unspeakable:
        def __str__(self) -> str:
            raise RuntimeError

    pen = make(tmp_path, fast).pen
    pen.end(pen.begin("a", step=wrong if wrong is not None else "no"))
    pen.end(pen.begin("a", attrs={"a": Unspeakable()}))
    pen.end(wrong)
    pen.end((1, 2))  # type: ignore[arg-type]
    pen.collective_end(pen.collective_begin("op", "pg", wrong))
    pen.collective_end(wrong)
    assert pen.dropped >= 5
    pen.end(pen.begin("fine"))
    assert [record.pg for record in the_stream(tmp_path).of(Kind.SPAN_END)] == ["fine"]


def test_a_thread_has_its_tag(tmp_path: Path, fast: bool) -> None:
    pen = make(tmp_path, fast).pen
    pen.end(pen.begin("main"))
    for _ in range(2):
        thread = threading.Thread(target=lambda: pen.end(pen.begin("other")))
        thread.start()
        thread.join()
    tags = {(record.pg, record.tag == 0) for record in the_stream(tmp_path).records}
    assert tags == {("main", True), ("other", False)}


def test_scalar_bits(tmp_path: Path, fast: bool) -> None:
    writer = make(tmp_path, fast)
    writer.record(Kind.SCALAR, 1, a=struct.unpack("<q", struct.pack("<d", -1.25))[0])
    assert the_stream(tmp_path).records[0].value == -1.25
