"""Checkpoints: torch.save and torch.load of files, and torch.distributed.checkpoint.

An asynchronous save has two spans: the time it keeps the trainer, and, on the thread that writes, the time
until it is done. The step of a save is the one about to begin: what a resumed run will do first.
"""

import os
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks.guard import Guard, around
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.startup import startup
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import SpanCategory

_guard = Guard("checkpoint")


class _Thread(threading.local):
    busy = False  # a distributed save calls torch.save: that is part of it


_thread = _Thread()


def attach(module: ModuleType) -> None:
    """Watch the functions of torch.serialization or of torch.distributed.checkpoint's modules."""
    from rankscope.ingest.hooks.patching import put

    kind = module.__name__.rpartition(".")[2]
    wrapped: dict[str, Callable[..., Any]] = {}
    if kind == "serialization":
        wrapped["save"] = _watched(module.save, SpanCategory.CHECKPOINT_SAVE, "torch.save", "f", 1)
        wrapped["load"] = _watched(module.load, SpanCategory.CHECKPOINT_LOAD, "torch.load", "f", 0)
    elif kind == "state_dict_saver":
        for name in ("save", "save_state_dict", "async_save"):
            if hasattr(module, name):
                wrapped[name] = _watched(
                    getattr(module, name), SpanCategory.CHECKPOINT_SAVE, f"dcp.{name}", "checkpoint_id", None
                )
    else:
        for name in ("load", "load_state_dict"):
            if hasattr(module, name):
                wrapped[name] = _watched(
                    getattr(module, name), SpanCategory.CHECKPOINT_LOAD, f"dcp.{name}", "checkpoint_id", None
                )
    put(module, wrapped)


def _watched(
    original: Callable[..., Any], category: SpanCategory, name: str, target: str, target_at: int | None
) -> Callable[..., Any]:
    is_file = target_at is not None
    loads = category is SpanCategory.CHECKPOINT_LOAD

    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Recorder, Any, int] | None:
        recorder = rank_recorder()
        if recorder is None or _thread.busy:
            return None
        given = args[target_at] if target_at is not None and target_at < len(args) else kwargs.get(target)
        path = _path_of(given)
        if is_file and path is None:
            return None  # into memory: no checkpoint
        if loads:
            startup.uses_torch(recorder)
            startup.reads(recorder)
        attrs = {"path": path} if path else None
        token = recorder.begin(category, name, attrs=attrs)
        _thread.busy = True
        return recorder, token, time.time_ns()

    def leave(entered: tuple[Recorder, Any, int], result: Any, error: BaseException | None) -> None:
        recorder, token, began_ns = entered
        _thread.busy = False
        recorder.end(token, Flag.ERROR if error is not None else 0)
        if error is None and loads:
            startup.loaded(recorder, began_ns)
        if error is None and name == "dcp.async_save":
            _follow(recorder, result)

    return around(_guard, original, enter, leave)


def _follow(recorder: Recorder, response: Any) -> None:
    """Record how long an asynchronous save goes on after it has given the trainer back."""
    future = getattr(response, "upload_completion", response)
    token = recorder.begin(SpanCategory.CHECKPOINT_SAVE, "dcp.async_save upload", attrs={"async": True})

    def done(finished: Any) -> None:
        with _guard:
            failed = finished.exception() is not None
            recorder.end(token, Flag.ERROR if failed else 0)

    future.add_done_callback(done)


def _path_of(target: Any) -> str | None:
    if isinstance(target, (str, os.PathLike)):
        return os.fspath(target)
    name = getattr(target, "name", None)
    return name if isinstance(name, str) else None
