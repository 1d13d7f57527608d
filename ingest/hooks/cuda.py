"""Collectives on a GPU: how long they took there, by CUDA events, without ever waiting for the device.

An event is recorded on the stream before and after a collective. A thread asks now and then whether the
second has passed (cudaEventQuery does not wait), and only then reads the time between them. The host's launch
time is never given as the collective's: its end is recorded when the device has passed it.
"""

import threading
import time
from collections import deque
from typing import Any, Final

from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder

PERIOD_S: Final = 0.01
MAX_WAITING: Final = 8192  # beyond it a collective ends when it is launched, and says nothing of the device

_guard = Guard("cuda")


class DeviceTimer:
    """Ends collectives once their device has passed them."""

    def __init__(self, cuda: Any) -> None:
        """`cuda` is torch.cuda, or what stands for it in a test."""
        self._cuda = cuda
        self._waiting: deque[tuple[Any, Any, Any]] = deque()  # (call, event before, event after)
        self._thread: threading.Thread | None = None

    def before(self) -> Any:
        """An event on the current stream, to be handed to `after`; None where none can be recorded."""
        if _guard.off or len(self._waiting) >= MAX_WAITING or self._cuda.is_current_stream_capturing():
            return None  # events in a captured graph would be part of it
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def after(self, call: Any, first: Any) -> None:
        """The collective was launched, and the current stream waits for it: end `call` when that is past."""
        last = self._cuda.Event(enable_timing=True)
        last.record()
        self._waiting.append((call, first, last))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rankscope-cuda", daemon=True)
            self._thread.start()

    def look(self) -> None:
        """End what the device has passed; streams differ, so one that waits does not hold up the others."""
        for _ in range(len(self._waiting)):
            call, first, last = self._waiting.popleft()
            if not last.query():
                self._waiting.append((call, first, last))
                continue
            call.end()
            recorder = rank_recorder()
            if recorder is not None:
                recorder.scalar(f"device_s {call.op}", first.elapsed_time(last) / 1e3)

    def _run(self) -> None:
        while not _guard.off:
            time.sleep(PERIOD_S)
            with _guard:
                self.look()
