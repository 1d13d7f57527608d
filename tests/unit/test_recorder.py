"""The recorder's calls as a trainer makes them, with either pen, and what they leave in the stream."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pens import PENS
from plain_reader import PlainStream, the_stream

from rankscope.ingest import detail as detail_module
from rankscope.ingest.detail import Detail
from rankscope.ingest.identity import Identity
from rankscope.ingest.layout import NO_STEP, RING_SLOTS, SLOTS, Flag, Kind
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.ring import recover
from rankscope.ingest.segment import SegmentWriter


class Bench:
    """A recorder with its stream."""

    def __init__(self, spool: Path, fast: bool) -> None:
        self.spool, self.fast = spool, fast

    def recorder(self, mode: str = "all", rank: int = 1) -> Recorder:
        os.environ["RANKSCOPE_DETAIL"] = mode
        identity = Identity.of_this_process("run", rank=rank, world_size=4)
        self.writer = SegmentWriter(self.spool / "run", identity.stem, identity.as_json(), fast=self.fast)
        detail = Detail(rank, 4)
        if detail.needs_ring:
            self.writer.add_ring()
        return Recorder(self.writer, identity, detail=detail)

    def stream(self) -> PlainStream:
        return the_stream(self.spool)


@pytest.fixture(params=PENS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    before = os.environ.pop("RANKSCOPE_DETAIL", None)
    yield Bench(tmp_path, bool(request.param))
    os.environ.pop("RANKSCOPE_DETAIL", None)
    if before is not None:
        os.environ["RANKSCOPE_DETAIL"] = before


def ends(stream: PlainStream, category: str) -> list[tuple[int, int]]:
    """(step, flags) of the spans of a category that ended."""
    return [(r.step, r.flags) for r in stream.of(Kind.SPAN_END) if r.pg == category]


def test_steps(bench: Bench) -> None:
    recorder = bench.recorder()
    for _ in range(2):
        with recorder.step():
            pass
    with recorder.step() as step:
        step.discard()
    with pytest.raises(KeyError), recorder.step():
        raise KeyError
    with recorder.step(7):
        assert recorder.step_number == 7
    assert recorder.step_number == 8
    assert ends(bench.stream(), "step") == [
        (0, Flag.COMMITTED),
        (1, Flag.COMMITTED),
        (2, Flag.NOT_COMMITTED),
        (2, Flag.NOT_COMMITTED | Flag.ERROR),
        (7, Flag.COMMITTED),
    ]


def test_data_wait_belongs_to_the_step_about_to_begin(bench: Bench) -> None:
    recorder = bench.recorder()
    for item in recorder.data(iter("ab")):
        with recorder.step():
            assert item in "ab"
    # The last wait is for the end of the data.
    assert ends(bench.stream(), "data_wait") == [(0, 0), (1, 0), (2, 0)]

    def broken() -> Iterator[int]:
        yield 1
        raise RuntimeError("disk")

    with pytest.raises(RuntimeError):
        list(recorder.data(broken()))
    assert ends(bench.stream(), "data_wait")[-1] == (2, Flag.ERROR)


def test_span_is_context_manager_and_decorator(bench: Bench) -> None:
    recorder = bench.recorder()

    @recorder.span("eval", "validate", split="test")
    def validate(depth: int) -> int:
        return depth if depth == 0 else validate(depth - 1)

    assert validate(2) == 0
    with recorder.span("user", "outer"), pytest.raises(ValueError), recorder.span("user", "inner"):
        raise ValueError
    stream = bench.stream()
    assert ends(stream, "eval") == [(NO_STEP, 0)] * 3
    assert [(r.name, r.flags) for r in stream.of(Kind.SPAN_END) if r.pg == "user"] == [
        ("inner", Flag.ERROR),
        ("outer", 0),
    ]
    begun = {record.slot for record in stream.of(Kind.SPAN_BEGIN)}
    assert {record.b for record in stream.of(Kind.SPAN_END)} == begun


def test_scalars_and_signals(bench: Bench) -> None:
    recorder = bench.recorder()
    recorder.step_number = 5
    recorder.scalar("loss", 1.5)
    recorder.scalar("loss", math.nan, step=9)
    recorder.scalar("loss", "no number")  # type: ignore[arg-type]
    recorder.scalar(["no name"], 1.0)  # type: ignore[arg-type]
    recorder.signal("exception", "out_of_memory", "CUDA " * 2000, device=3)
    recorder.process_group("pg0", range(3), "gloo", "default")
    stream = bench.stream()
    first, second = stream.of(Kind.SCALAR)
    assert (first.name, first.value, first.step) == ("loss", 1.5, 5)
    assert math.isnan(second.value) and second.step == 9
    signal, group = stream.events
    assert (signal["failure_kind"], len(signal["message"]), signal["device"]) == ("out_of_memory", 4000, 3)
    assert signal["rank"] == 1
    assert (group["pg"], group["ranks"], group["backend"]) == ("pg0", [0, 1, 2], "gloo")
    assert recorder.dropped == 2


def test_collectives_and_their_rollups(bench: Bench) -> None:
    recorder = bench.recorder()
    with recorder.step(3):
        for seq in range(2):
            token = recorder.collective_begin("all_reduce", "0", seq, 100, "float32|4|x.py:1 in f")
            recorder.collective_end(token)
        recorder.collective_end(recorder.collective_begin("barrier", "1", 0))
        message = recorder.collective_begin("send", "0", 0, 8, flags=Flag.P2P, peer=2)
        recorder.collective_end(message)
        late = recorder.collective_begin("all_gather", "1", 1, 5, flags=Flag.ASYNC)
    stream = bench.stream()
    begins, done = stream.of(Kind.COLL_BEGIN), stream.of(Kind.COLL_END)
    assert [(r.name, r.pg, r.a, r.step) for r in begins] == [
        ("all_reduce", "0", 0, 3),
        ("all_reduce", "0", 1, 3),
        ("barrier", "1", 0, 3),
        ("send", "0", 0, 3),
        ("all_gather", "1", 1, 3),
    ]
    assert begins[3].c == 2
    assert [(r.d, r.c) for r in done] == [(r.slot, r.t) for r in begins[:4]]
    # Group 1 waits for what is still under way; messages are not summed up.
    (one,), (two,) = stream.of(Kind.COLL_ROLLUP), stream.of(Kind.COLL_ROLLUP2)
    assert (one.pg, one.step, one.a, one.b) == ("0", 3, 2, 200)
    assert (one.c, one.d) == (
        sum(r.t - r.c for r in done[:2]),
        max(r.t - r.c for r in done[:2]),
    )
    assert one.t == done[1].t
    assert (two.t, two.a, two.b, two.attr_id) == (begins[1].t, begins[0].t, 1, one.attr_id)

    recorder.collective_end(late, Flag.ERROR)
    with recorder.step(4):
        pass
    *_, last = bench.stream().of(Kind.COLL_ROLLUP)
    assert (last.pg, last.step, last.a, last.b) == ("1", 3, 2, 5)
    assert bench.stream().of(Kind.COLL_END)[-1].flags == Flag.ASYNC | Flag.ERROR


def test_rollups_of_an_unfinished_step_come_at_the_end(bench: Bench) -> None:
    recorder = bench.recorder()
    recorder.step_number = 0
    recorder.collective_end(recorder.collective_begin("barrier", "0", 0))
    assert bench.stream().of(Kind.COLL_ROLLUP) == []
    recorder.close()
    assert [record.step for record in bench.stream().of(Kind.COLL_ROLLUP)] == [0]


def run_steps(recorder: Recorder, count: int, each: int = 1) -> None:
    for _ in range(count):
        with recorder.step() as step:
            for number in range(each):
                token = recorder.collective_begin("all_reduce", "0", step.number * each + number, 4)
                recorder.collective_end(token)


def test_ring_keeps_what_the_stream_does_not(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_module, "FIRST_STEPS", 5)
    recorder = bench.recorder("ring")
    run_steps(recorder, 12)
    stream = bench.stream()
    assert [record.a for record in stream.of(Kind.COLL_END)] == list(range(5))
    assert [record.step for record in stream.of(Kind.COLL_ROLLUP)] == list(range(12))
    inside = recorder.collective_begin("all_reduce", "0", 12, 4)
    assert recorder.flush_ring() == 15
    assert recorder.flush_ring() == 0
    recorder.collective_end(inside)
    assert recorder.flush_ring() == 1
    stream = bench.stream()
    assert (stream.holes, stream.dropped) == ([], 0)
    done = stream.of(Kind.COLL_END)
    assert [record.a for record in done] == list(range(13))
    begun = {record.slot: record.a for record in stream.of(Kind.COLL_BEGIN)}
    assert [begun[record.d] for record in done] == list(range(13))


def test_sampled_ranks_need_no_ring(bench: Bench) -> None:
    recorder = bench.recorder("sampled", rank=0)
    run_steps(recorder, 30)
    assert len(bench.stream().of(Kind.COLL_END)) == 30
    assert recorder.flush_ring() == 0
    assert Detail(1024, 2000).needs_ring is False
    assert Detail(1025, 2000).needs_ring is True


def test_overruns_are_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_module, "FIRST_STEPS", 0)
    recorder = bench.recorder("ring")
    run_steps(recorder, 10, each=1000)
    copied = recorder.flush_ring()
    assert RING_SLOTS - 2 <= copied <= RING_SLOTS
    (ring,) = bench.spool.glob("run/*.ring")
    assert 20_000 - RING_SLOTS <= int.from_bytes(ring.read_bytes()[48:56], "little") <= 20_002 - RING_SLOTS
    done = bench.stream().of(Kind.COLL_END)
    assert [record.a for record in done] == list(range(10_000 - len(done), 10_000))


def test_ring_of_a_process_that_is_gone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_module, "FIRST_STEPS", 2)
    recorder = bench.recorder("ring")
    run_steps(recorder, 6)
    recorder.flush_ring()
    run_steps(recorder, 3)
    recorder.collective_begin("all_reduce", "0", 9, 4)
    bench.writer.pen.stop()  # as if it were dead
    (path,) = bench.spool.glob("run/*.ring")
    stem = path.with_suffix("")
    assert recover(stem) == 7
    assert recover(stem) == 0
    assert not path.exists()
    stream = bench.stream()
    assert [record.a for record in stream.of(Kind.COLL_BEGIN)] == list(range(10))
    begun = {record.slot: record.a for record in stream.of(Kind.COLL_BEGIN)}
    assert [begun[record.d] for record in stream.of(Kind.COLL_END)] == list(range(9))
    assert stream.holes == []


@pytest.mark.parametrize("room", [0, 4])
def test_ring_at_the_end_of_a_file(bench: Bench, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detail_module, "FIRST_STEPS", 0)
    recorder = bench.recorder("ring")
    name = bench.writer.intern("late")
    for _ in range(5):
        recorder.collective_end(recorder.collective_begin("all_reduce", "0", 1, 4))
    recorder.step_number = 3
    for seq in range(5):
        recorder.collective_end(recorder.collective_begin("barrier", "9", seq, 4))
    while next(iter(bench.writer.pen)) < SLOTS - room - 2:
        pass
    bench.writer.record(Kind.SCALAR, 1, name=name)
    bench.writer.pen.stop()
    (path,) = bench.spool.glob("run/*.ring")
    assert recover(path.with_suffix("")) == 10
    stream = bench.stream()
    assert [record.a for record in stream.of(Kind.COLL_END) if record.pg == "9"] == list(range(5))


@pytest.mark.parametrize("cut", [0, 30, 5000, -100])
def test_damaged_rings_do_no_harm(bench: Bench, cut: int) -> None:
    recorder = bench.recorder("ring")
    run_steps(recorder, 30)
    bench.writer.pen.stop()
    (path,) = bench.spool.glob("run/*.ring")
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:cut])
    assert recover(path.with_suffix("")) == 0
    assert not path.exists()


def test_an_orderly_end_takes_the_ring_away(bench: Bench) -> None:
    recorder = bench.recorder("ring")
    run_steps(recorder, 30)
    recorder.close()
    recorder.close()
    assert list(bench.spool.glob("run/*.ring")) == []
    assert bench.stream().closed


def test_nothing_after_close_and_before_nothing(bench: Bench) -> None:
    recorder = bench.recorder()
    inside = recorder.begin("eval")
    recorder.close()
    calls: list[Any] = [
        lambda: recorder.end(inside),
        lambda: recorder.collective_end(recorder.collective_begin("x", "y", 1)),
        lambda: recorder.scalar("loss", 1),
        lambda: recorder.signal("exit"),
        lambda: recorder.past_span("init", "model", 1, 2),
        lambda: list(recorder.data([1, 2])),
        recorder.flush_ring,
        recorder.close,
    ]
    before = bench.stream()
    for call in calls:
        call()
    with recorder.step(), recorder.span("eval"):
        pass
    assert bench.stream() == before


def test_odd_numbers_of_steps(bench: Bench) -> None:
    recorder = bench.recorder()
    for number in (2**31, -(2**31) - 1, 2**70, "seven", 1.5):
        with recorder.step(number):  # type: ignore[arg-type]
            pass
    recorder.past_span("init", "model", 5, 10, step=2**40)
    with recorder.step(2):
        pass
    assert ends(bench.stream(), "step")[-1] == (2, Flag.COMMITTED)
