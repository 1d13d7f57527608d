"""DataLoader: the time the trainer waits for each item, its workers' start included."""

import functools
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.startup import startup
from rankscope.ingest.hooks.steps import steps
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import SpanCategory

_guard = Guard("dataloader")
_ERROR = int(Flag.ERROR)
_BY_HAND = Recorder.data.__code__  # whoever calls this records the wait already
_MAX_FRAMES = 4


def attach(module: ModuleType) -> None:
    """Watch DataLoader and the iterators of torch.utils.data.dataloader."""
    module.DataLoader.__iter__ = _watched(module.DataLoader.__iter__, "start", comes=False)
    iterator = module._BaseDataLoaderIter
    iterator.__next__ = _watched(iterator.__next__, "", comes=True)


def _watched(original: Callable[..., Any], name: str, *, comes: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(self: Any) -> Any:
        recorder = None if _guard.off else rank_recorder()
        if recorder is None:
            return original(self)
        began_ns = time.time_ns()
        token = None
        with _guard:
            startup.reads(recorder)
            if not _recorded_by_hand():
                token = recorder.begin(SpanCategory.DATA_WAIT, name, step=max(recorder.step_number, 0))
        flags = _ERROR
        try:
            result = original(self)
            flags = 0
        except StopIteration:
            flags = 0
            raise
        finally:
            with _guard:
                if token is not None:
                    recorder.end(token, flags)
        if comes:
            with _guard:
                steps.data()
                startup.got_batch(recorder, began_ns)
        return result

    return watched


def _recorded_by_hand() -> bool:
    frame = sys._getframe(2).f_back
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return False
        if frame.f_code is _BY_HAND:
            return True
        frame = frame.f_back
    return False
