"""Optimizers: their updates, the steps that these end, and the step number that a loaded state tells."""

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks import begin
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.startup import startup
from rankscope.ingest.hooks.steps import steps
from rankscope.ingest.vocabulary import SpanCategory

_guard = Guard("optimizer")
_updating: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # optimizer -> open span


def attach(module: ModuleType) -> None:
    """Watch the Optimizer class of torch.optim.optimizer."""
    module.register_optimizer_step_pre_hook(_before)
    module.register_optimizer_step_post_hook(_after)
    optimizer_class = module.Optimizer
    optimizer_class.__init__ = _watched_init(optimizer_class.__init__)
    optimizer_class.load_state_dict = _watched_load(optimizer_class.load_state_dict)


def _before(optimizer: Any, args: Any, kwargs: Any) -> None:
    if _guard.off or _compiling():
        return
    with _guard:
        recorder = rank_recorder()
        if recorder is not None:
            steps.updating(recorder, optimizer)
            _updating[optimizer] = recorder.begin(SpanCategory.OPTIMIZER)


def _after(optimizer: Any, args: Any, kwargs: Any) -> None:
    if _guard.off or _compiling():
        return
    with _guard:
        recorder = rank_recorder()
        token = _updating.pop(optimizer, None)
        if recorder is not None and token is not None:
            recorder.end(token)
            steps.updated(recorder, optimizer)


def _watched_init(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not _guard.off:
            with _guard:
                begin.as_rank()
                recorder = rank_recorder()
                if recorder is not None:
                    startup.built(recorder)
                    steps.made()

    return init


def _watched_load(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not _guard.off:
            with _guard:
                recorder = rank_recorder()
                done = steps_done(self)
                if recorder is not None and done is not None:
                    steps.resumed(recorder, done)
        return result

    return load_state_dict


def steps_done(optimizer: Any) -> int | None:
    """How many steps an optimizer's state says it has done; None when it does not, or only on a device."""
    found = []
    for state in optimizer.state.values():
        step = state.get("step") if isinstance(state, dict) else None
        if step is None or getattr(getattr(step, "device", None), "type", "cpu") != "cpu":
            continue  # reading it from a GPU would wait for the GPU
        found.append(int(step))
    return max(found) if found else None


def _compiling() -> bool:
    import torch

    return bool(torch.compiler.is_compiling())
