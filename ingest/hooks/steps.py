"""Steps of a trainer that does not say where they begin and end: from data to the optimizer's update.

A step is opened by the first pass through the model with gradients after the last update; it began when
its data came. Where neither is seen, a step reaches from one update to the next. The first optimizer that
steps ends it, as long as it goes on stepping. If the trainer says it itself, with rec.step(), or a callback
of its framework does, nothing is added.
"""

import time
import weakref
from typing import Any

from rankscope.ingest.layout import NO_STEP, Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import SpanCategory

_COMMITTED = int(Flag.COMMITTED)


class Steps:
    """The open step, if there is one."""

    def __init__(self) -> None:
        self._token: Any = None
        self._data_ns = 0  # monotonic clock when data last came
        self._update_ns = 0  # monotonic clock after the last update
        self._armed = False  # an optimizer was made: there will be steps
        self._primary: weakref.ref[Any] | None = None  # the optimizer whose update ends a step
        self._other: weakref.ref[Any] | None = None  # another, that stepped after it
        self._passes = 0  # backward passes of the open step
        self._told_passes = 1

    def data(self) -> None:
        """Data came."""
        if self._token is None:
            self._data_ns = time.monotonic_ns()

    def model_pass(self, recorder: Recorder) -> None:
        """A pass through the model with gradients begins."""
        if self._token is None and self._armed and not recorder.explicit_steps:
            self._open(recorder, self._data_ns)

    def backward(self, recorder: Recorder) -> None:
        """A backward pass begins: several of them in a step accumulate gradients."""
        self.model_pass(recorder)
        self._passes += 1

    def made(self) -> None:
        """An optimizer was made."""
        self._armed = True

    def updating(self, recorder: Recorder, optimizer: Any) -> None:
        """An optimizer is about to step."""
        self._armed = True
        if self._primary is None or self._primary() is None:
            self._primary = weakref.ref(optimizer)
        if self._token is None and not recorder.explicit_steps:
            self._open(recorder, self._data_ns or self._update_ns)

    def updated(self, recorder: Recorder, optimizer: Any) -> None:
        """An optimizer has stepped."""
        if self._token is None or not self._ends_step(optimizer):
            return
        token, self._token = self._token, None
        if recorder.explicit_steps:
            return
        recorder.end(token, _COMMITTED)
        self._update_ns = time.monotonic_ns()
        if self._passes != self._told_passes and self._passes:
            self._told_passes = self._passes
            recorder.scalar("backward_passes_per_step", self._passes)
        recorder.step_number += 1
        self._passes = 0
        self._data_ns = 0

    def _ends_step(self, optimizer: Any) -> bool:
        """Whether `optimizer` is the one that counts; one that steps twice while that does not takes over."""
        if self._primary is not None and self._primary() is optimizer:
            self._other = None
            return True
        if self._other is not None and self._other() is optimizer:
            self._primary, self._other = self._other, None
            return True
        self._other = weakref.ref(optimizer)
        return False

    def resumed(self, recorder: Recorder, done: int) -> None:
        """The optimizer's state says how many steps it has done."""
        if not recorder.explicit_steps and self._token is None:
            recorder.step_number = done

    def _open(self, recorder: Recorder, begin_ns: int) -> None:
        if recorder.step_number == NO_STEP:
            recorder.step_number = 0
        token = recorder.begin(SpanCategory.STEP, step=recorder.step_number)
        self._token = (begin_ns, *token[1:]) if begin_ns else token


steps = Steps()
