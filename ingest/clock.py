"""A pulse once a second: a pair of clocks as sign of life, and the next segment file made in time."""

import threading
import time
from collections.abc import Callable

from rankscope.ingest.layout import Kind
from rankscope.ingest.segment import SegmentWriter

PERIOD_S = 1.0


class Pulse:
    """A daemon thread beside the trainer; its work is off the training thread."""

    def __init__(self, writer: SegmentWriter, step: Callable[[], int]) -> None:
        self._writer = writer
        self._step = step
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="rankscope-pulse", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, with a last pair of clocks."""
        self._stop.set()

    def _beat(self) -> None:
        while True:
            self._writer.prepare_next()
            self._writer.record(Kind.CLOCK, time.monotonic_ns(), a=time.time_ns(), step=self._step())
            if self._stop.wait(PERIOD_S):
                return
