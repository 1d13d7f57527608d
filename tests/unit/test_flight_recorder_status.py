"""When a group stands still: told once, with the entries that wait, fetched only then."""

import json
from typing import Any

import pytest

from rankscope.ingest.hooks import flight_recorder as hook
from rankscope.ingest.hooks.flight_recorder import StallWatch


class FakeNative:
    """Stands for torch._C._distributed_c10d, with the shapes that torch 2.13 gives."""

    def __init__(self) -> None:
        self.enqueued, self.completed = 5, 5
        self.entries_fetched = 0

    def _dump_fr_trace_json(self, includeCollectives: bool, onlyActive: bool) -> bytes:
        status = {"last_enqueued_collective": str(self.enqueued), "last_started_collective": "-1"}
        status["last_completed_collective"] = str(self.completed)
        trace: dict[str, Any] = {"version": "2.10", "pg_status": {"0": status}}
        if includeCollectives:
            self.entries_fetched += 1
            trace["entries"] = [
                {"pg_id": 0, "collective_seq_id": seq, "retired": seq <= self.completed}
                for seq in range(1, self.enqueued + 1)
            ]
        return json.dumps(trace).encode()


class FakeRecorder:
    step_number = 7

    def __init__(self) -> None:
        self.signals: list[dict[str, Any]] = []

    def signal(self, kind: str, failure_kind: str, message: str, **attrs: Any) -> None:
        self.signals.append({"kind": kind, "message": message, **attrs})


@pytest.fixture
def recorder() -> Any:
    return FakeRecorder()


def test_a_stall_is_told_once_with_what_waits(recorder: Any) -> None:
    native = FakeNative()
    watch = StallWatch(native, stall_s=60)
    watch.look(recorder, 0)
    native.enqueued = 7
    for now_s in (10, 50, 65, 71, 200):
        watch.look(recorder, now_s)
    (signal,) = recorder.signals
    assert signal["kind"] == "flight_recorder"
    assert (signal["last_completed"], signal["last_enqueued"]) == (5, 7)
    assert [entry["collective_seq_id"] for entry in signal["entries"]] == [6, 7]
    assert native.entries_fetched == 1


def test_progress_and_idleness_are_no_stall(recorder: Any) -> None:
    native = FakeNative()
    watch = StallWatch(native, stall_s=60)
    for now_s in range(0, 1000, 50):
        native.enqueued += 1
        native.completed = native.enqueued - 1  # one is always under way, and each time another
        watch.look(recorder, now_s)
    native.completed = native.enqueued
    for now_s in range(1000, 2000, 50):
        watch.look(recorder, now_s)
    assert recorder.signals == []
    assert native.entries_fetched == 0


def test_a_second_stall_is_told_too(recorder: Any) -> None:
    native = FakeNative()
    watch = StallWatch(native, stall_s=60)
    watch.look(recorder, 0)
    native.enqueued = 6
    watch.look(recorder, 100)
    native.completed, native.enqueued = 6, 7
    watch.look(recorder, 110)
    watch.look(recorder, 200)
    assert [signal["last_completed"] for signal in recorder.signals] == [5, 6]


def test_the_hook_is_in_the_list() -> None:
    from rankscope.ingest.hooks import HOOKS

    assert "flight_recorder" in {entry.file for entry in HOOKS}
    assert callable(hook.attach)
