"""HuggingFace Trainer: steps with its own numbers, evaluation, and what it logs, by a TrainerCallback.

Added to every Trainer by itself; or by hand, where rankscope.init() is called without hooks:

    trainer = Trainer(..., callbacks=[make_callback(rec)])
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks import begin
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import SpanCategory

_guard = Guard("huggingface")


def attach(module: ModuleType) -> None:
    """Watch the Trainer class of transformers.trainer."""
    trainer = module.Trainer
    trainer.__init__ = _watched_init(trainer.__init__)
    trainer.evaluate = _watched_evaluate(trainer.evaluate)


def make_callback(recorder: Recorder) -> Any:
    """A TrainerCallback that records to `recorder`."""
    from transformers import TrainerCallback

    class RankscopeCallback(TrainerCallback):
        """Marks steps and keeps what is logged."""

        def __init__(self) -> None:
            self._step: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            with _guard:
                recorder.explicit_steps = True
                recorder.step_number = int(state.global_step)

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            with _guard:
                recorder.step_number = int(state.global_step)
                self._step = recorder.begin(SpanCategory.STEP, step=recorder.step_number)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            with _guard:
                token, self._step = self._step, None
                if token is not None:
                    recorder.end(token, Flag.COMMITTED)
                    recorder.step_number = int(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            with _guard:
                for name, value in (logs or {}).items():
                    if isinstance(value, (int, float)):
                        recorder.scalar(name, float(value), step=max(int(state.global_step) - 1, 0))

    return RankscopeCallback()


def _watched_init(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not _guard.off:
            with _guard:
                begin.as_rank()
                recorder = rank_recorder()
                known = [type(c).__name__ for c in self.callback_handler.callbacks]
                if recorder is not None and "RankscopeCallback" not in known:
                    self.add_callback(make_callback(recorder))

    return init


def _watched_evaluate(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def evaluate(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = None if _guard.off else rank_recorder()
        if recorder is None:
            return original(self, *args, **kwargs)
        with recorder.span(SpanCategory.EVAL, "evaluate"):
            return original(self, *args, **kwargs)

    return evaluate
