"""Timing on a GPU, against a stand-in for torch.cuda: no GPU here. The stand-in fails when one would wait."""

import pytest

from rankscope.ingest.hooks import cuda as hook
from rankscope.ingest.hooks.cuda import DeviceTimer


class FakeCuda:
    """A device whose clock, in ms, moves when the test says so."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.delay_ms = 0.0  # of what is on the stream, when an event is recorded
        self.capturing = False

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def Event(self, enable_timing: bool = False) -> "FakeEvent":
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self.at_ms = float("nan")

    def record(self) -> None:
        self.at_ms = self._cuda.now_ms + self._cuda.delay_ms

    def query(self) -> bool:
        return self._cuda.now_ms >= self.at_ms

    def elapsed_time(self, other: "FakeEvent") -> float:
        assert self.query()
        assert other.query(), "this would wait for the device"
        return other.at_ms - self.at_ms

    def synchronize(self) -> None:
        raise AssertionError("this waits for the device")


class FakeCall:
    op = "all_reduce"

    def __init__(self) -> None:
        self.ended = 0

    def end(self) -> None:
        self.ended += 1


class FakeRecorder:
    def __init__(self) -> None:
        self.scalars: list[tuple[str, float]] = []

    def scalar(self, name: str, value: float) -> None:
        self.scalars.append((name, value))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> FakeRecorder:
    found = FakeRecorder()
    monkeypatch.setattr(hook, "rank_recorder", lambda: found)
    monkeypatch.setattr(hook.DeviceTimer, "_run", lambda self: None)  # the test looks itself
    return found


def test_a_collective_ends_when_the_device_has_passed_it(recorder: FakeRecorder) -> None:
    cuda, call = FakeCuda(), FakeCall()
    timer = DeviceTimer(cuda)
    first = timer.before()
    cuda.delay_ms = 25.0
    timer.after(call, first)
    timer.look()
    assert (call.ended, recorder.scalars) == (0, [])
    cuda.now_ms = 25.0
    timer.look()
    timer.look()
    assert (call.ended, recorder.scalars) == (1, [("device_s all_reduce", 0.025)])


def test_one_stream_that_waits_does_not_hold_up_another(recorder: FakeRecorder) -> None:
    cuda, slow, quick = FakeCuda(), FakeCall(), FakeCall()
    timer = DeviceTimer(cuda)
    for call, delay_ms in ((slow, 100.0), (quick, 1.0)):
        cuda.delay_ms = 0.0
        first = timer.before()
        cuda.delay_ms = delay_ms
        timer.after(call, first)
    cuda.now_ms = 2.0
    timer.look()
    assert (slow.ended, quick.ended) == (0, 1)


def test_nothing_is_recorded_into_a_graph_that_is_captured(recorder: FakeRecorder) -> None:
    cuda = FakeCuda()
    cuda.capturing = True
    assert DeviceTimer(cuda).before() is None


def test_what_waits_is_bounded(recorder: FakeRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "MAX_WAITING", 2)
    cuda = FakeCuda()
    cuda.delay_ms = 1e9
    timer = DeviceTimer(cuda)
    firsts = [timer.before() for _ in range(2)]
    for first in firsts:
        timer.after(FakeCall(), first)
    assert timer.before() is None
