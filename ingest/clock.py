"""A pulse once a second: a pair of clocks as sign of life, and the next segment file made in time."""

import queue
import threading
import time
from typing import TYPE_CHECKING

from rankscope.ingest.layout import Kind

if TYPE_CHECKING:
    from rankscope.ingest.segment import SegmentWriter

PERIOD_S = 1.0


class Pulse:
    """A daemon thread beside the trainer; its work is off the training thread."""

    def __init__(self) -> None:
        # Its put() takes no lock that a signal handler could meet again.
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def start(self, writer: "SegmentWriter") -> None:
        """Begin to beat for `writer`."""
        thread = threading.Thread(target=self._beat, args=(writer,), name="rankscope-pulse", daemon=True)
        thread.start()

    def wake(self) -> None:
        """A file is half full: the next one is wanted."""
        self._calls.put(True)

    def stop(self) -> None:
        """End the thread."""
        self._calls.put(False)

    def _beat(self, writer: "SegmentWriter") -> None:
        due = 0.0
        while True:
            writer.prepare_next()
            now = time.monotonic()
            if now >= due:
                writer.record(Kind.CLOCK, time.monotonic_ns(), a=time.time_ns(), step=writer.pen.step)
                due = now + PERIOD_S
            try:
                if not self._calls.get(timeout=max(due - time.monotonic(), 0.0)):
                    return
            except queue.Empty:
                continue
