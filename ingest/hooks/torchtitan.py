"""TorchTitan: the spans and scalars of its structured logger, heard by a logging handler of ours.

Checkpoints, optimizers and collectives are seen by the other hooks already, so of its spans only those are
taken that say more: step with its number, wait for a batch, making the model, evaluation, forward-backward.
"""

import logging
import threading
from types import ModuleType
from typing import Any, Final

from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import InitPhase, SpanCategory

LOGGER: Final = "torchtitan.structured_logger"
SPANS: Final[dict[str, tuple[SpanCategory, str]]] = {
    "step": (SpanCategory.STEP, ""),
    "fetching_batch": (SpanCategory.DATA_WAIT, "fetching_batch"),
    "model_parallelism_init": (SpanCategory.INIT, InitPhase.MODEL),
    "eval": (SpanCategory.EVAL, ""),
    "fwd_bwd": (SpanCategory.USER, "fwd_bwd"),
}

_guard = Guard("torchtitan")


def attach(module: ModuleType) -> None:
    """Listen to the logger of torchtitan.observability.structured_logger.structured_logging."""
    logger = logging.getLogger(LOGGER)
    if not any(isinstance(handler, Listener) for handler in logger.handlers):
        logger.addHandler(Listener())


class Listener(logging.Handler):
    """Turns `<span>_start` and `<span>_end` records into spans, `metric_value` into scalars."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._open: dict[
            tuple[int, Any, str], list[Any]
        ] = {}  # (thread, task, span) -> tokens, last in first out
        self._failed: set[tuple[int, Any, str]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: a mistake here switches the hook off."""
        if _guard.off:
            return
        with _guard:
            recorder = rank_recorder()
            if recorder is not None:
                self._take(recorder, record)

    def _take(self, recorder: Recorder, record: logging.LogRecord) -> None:
        name = str(getattr(record, "log_type_name", ""))
        if name == "metric_value":
            step = getattr(record, "step", None)
            recorder.scalar(str(record.__dict__["event_name"]), float(record.__dict__["value"]), step=step)
            return
        span, _, edge = name.rpartition("_")
        if span not in SPANS:
            return
        key = (threading.get_ident(), getattr(record, "task_name", None), span)
        if edge == "start":
            self._begin(recorder, key, getattr(record, "step", None))
        elif edge == "error":
            self._failed.add(key)
        elif edge == "end" and self._open.get(key):
            self._end(recorder, key)

    def _begin(self, recorder: Recorder, key: tuple[int, Any, str], step: int | None) -> None:
        category, name = SPANS[key[2]]
        if category is SpanCategory.STEP and step is not None:
            recorder.explicit_steps = True
            recorder.step_number = step
        token = recorder.begin(category, name, step=None if category is SpanCategory.INIT else step)
        self._open.setdefault(key, []).append(token)

    def _end(self, recorder: Recorder, key: tuple[int, Any, str]) -> None:
        failed = key in self._failed
        self._failed.discard(key)
        flags = Flag.ERROR if failed else Flag(0)
        if key[2] == "step":
            flags |= Flag.NOT_COMMITTED if failed else Flag.COMMITTED
        recorder.end(self._open[key].pop(), flags)
        if key[2] == "step" and not failed:
            recorder.step_number += 1
