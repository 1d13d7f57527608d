"""Lightning: steps with its own numbers, and evaluation, by a Callback.

Added to every Trainer by itself; or by hand, where rankscope.init() is called without hooks:

    trainer = Trainer(..., callbacks=[make_callback(rec, "lightning.pytorch")])
"""

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks import begin
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import SpanCategory

_guard = Guard("lightning")


def attach(module: ModuleType) -> None:
    """Watch the Trainer class of lightning.pytorch.trainer.trainer, or of pytorch_lightning's."""
    trainer = module.Trainer
    trainer.__init__ = _watched_init(trainer.__init__, module.__name__.partition(".trainer")[0])


def make_callback(recorder: Recorder, package: str) -> Any:
    """A Callback of `package` ('lightning.pytorch' or 'pytorch_lightning') that records to `recorder`."""
    base: Any = importlib.import_module(package).Callback

    class RankscopeCallback(base):
        """A step is one optimizer step, however many batches are accumulated for it."""

        def __init__(self) -> None:
            self._step: Any = None
            self._eval: Any = None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            with _guard:
                recorder.explicit_steps = True
                recorder.step_number = int(trainer.global_step)

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            with _guard:
                if self._step is None:
                    recorder.step_number = int(trainer.global_step)
                    self._step = recorder.begin(SpanCategory.STEP, step=recorder.step_number)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            with _guard:
                if self._step is not None and int(trainer.global_step) > recorder.step_number:
                    token, self._step = self._step, None
                    recorder.end(token, Flag.COMMITTED)
                    recorder.step_number = int(trainer.global_step)

        def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
            with _guard:
                self._eval = recorder.begin(SpanCategory.EVAL, "validation")

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            with _guard:
                token, self._eval = self._eval, None
                if token is not None:
                    recorder.end(token)

    return RankscopeCallback()


def _watched_init(original: Callable[..., None], package: str) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not _guard.off:
            with _guard:
                begin.as_rank()
                recorder = rank_recorder()
                known = [type(c).__name__ for c in self.callbacks]
                if recorder is not None and "RankscopeCallback" not in known:
                    self.callbacks.insert(0, make_callback(recorder, package))

    return init
