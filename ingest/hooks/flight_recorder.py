"""PyTorch's Flight Recorder: its status looked at now and then, its entries only when a group stands still.

The status of all groups costs 0.08 ms; entries cost tens of milliseconds, so they are fetched once a stall.
On gloo the entries say less: neither start nor end.
"""

import json
import os
import threading
import time
from types import ModuleType
from typing import Any, Final

from rankscope.ingest.hooks.collectives import flush_ring
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import FailureKind, SignalKind

PERIOD_S: Final = 5.0
STALL_S: Final = 60.0  # longer than checkpoints and evaluations usually keep a group waiting
MAX_ENTRIES: Final = 16

_guard = Guard("flight_recorder")


def attach(module: ModuleType) -> None:
    """Look at the recorder from a thread of its own once torch.distributed.distributed_c10d is there."""
    import torch

    native = torch._C._distributed_c10d
    if hasattr(native, "_dump_fr_trace_json"):
        watch = StallWatch(native, float(os.environ.get("RANKSCOPE_STALL_S", STALL_S)))
        threading.Thread(target=watch.run, name="rankscope-flight", daemon=True).start()


class StallWatch:
    """Knows since when each group has had collectives that are not complete."""

    def __init__(self, native: Any, stall_s: float) -> None:
        self._native = native
        self._stall_s = stall_s
        self._progress: dict[str, tuple[int, float]] = {}  # group -> (last completed, since, monotonic s)
        self._told: dict[str, int] = {}  # group -> position that a stall was told of

    def run(self) -> None:
        """Look until the process ends or this hook fails."""
        while not _guard.off:
            time.sleep(min(PERIOD_S, self._stall_s / 2))
            recorder = rank_recorder()
            if recorder is not None:
                with _guard:
                    self.look(recorder, time.monotonic())

    def look(self, recorder: Recorder, now_s: float) -> None:
        """Look once; tell of groups that have stood still for long enough."""
        trace = json.loads(self._native._dump_fr_trace_json(includeCollectives=False, onlyActive=True))
        for group, status in (trace.get("pg_status") or {}).items():
            enqueued = int(status.get("last_enqueued_collective", -1))
            completed = int(status.get("last_completed_collective", -1))
            known = self._progress.get(group)
            if known is None or known[0] != completed or enqueued <= completed:
                self._progress[group] = (completed, now_s)
            elif now_s - known[1] >= self._stall_s and self._told.get(group) != completed:
                self._told[group] = completed
                self._tell(recorder, group, completed, enqueued, now_s - known[1])

    def _tell(self, recorder: Recorder, group: str, completed: int, enqueued: int, for_s: float) -> None:
        trace = json.loads(self._native._dump_fr_trace_json(includeCollectives=True, onlyActive=True))
        entries = [
            entry
            for entry in trace.get("entries") or ()
            if str(entry.get("pg_id")) == group and not entry.get("retired")
        ]
        recorder.signal(
            SignalKind.FLIGHT_RECORDER, FailureKind.HANG,
            f"group {group} has completed nothing since collective {completed} for {for_s:.0f} s;"
            f" {enqueued - completed} wait",
            observer="rank", pg_id=group, last_completed=completed, last_enqueued=enqueued,
            step=recorder.step_number, entries=entries[:MAX_ENTRIES],
        )  # fmt: skip
        flush_ring(recorder)
