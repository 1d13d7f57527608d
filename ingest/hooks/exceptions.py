"""How this process ends, as far as it can tell itself: exceptions nobody caught, and an orderly exit."""

import atexit
import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks.collectives import flush_ring
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.launcher.failures import kind_of
from rankscope.ingest.vocabulary import SignalKind

_guard = Guard("exceptions")
_MAX_TRACE = 4000
_failed = False


def attach(module: ModuleType) -> None:
    """Hear of exceptions before the interpreter, or whoever else listens, does."""
    sys.excepthook = _watched_hook(sys.excepthook)
    threading.excepthook = _watched_thread_hook(threading.excepthook)
    atexit.register(_leaving)


def record(error: BaseException, **attrs: Any) -> None:
    """An exception that ends this process or one of its threads."""
    recorder = rank_recorder()
    if recorder is None or not isinstance(error, Exception):
        return  # Ctrl-C and sys.exit are no failures
    text = f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))[-_MAX_TRACE:]
    recorder.signal(
        SignalKind.EXCEPTION, kind_of(text), text, observer="rank", traceback=trace,
        exception=f"{type(error).__module__}.{type(error).__qualname__}", step=recorder.step_number, **attrs,
    )  # fmt: skip
    flush_ring(recorder)


def _watched_hook(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        global _failed
        if not _guard.off:
            with _guard:
                _failed = True
                record(error)
        original(kind, error, trace)

    return hook


def _watched_thread_hook(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def hook(args: Any) -> None:
        if not _guard.off and args.exc_value is not None:
            with _guard:
                record(args.exc_value, thread=getattr(args.thread, "name", None))
        original(args)

    return hook


def _leaving() -> None:
    """The interpreter ends: with an exception, or with a status that only the launcher will see."""
    with _guard:
        recorder = rank_recorder()
        if recorder is not None:
            recorder.event(
                "process_exit", rank=recorder.identity.rank, pid=os.getpid(), time_ns=time.time_ns(),
                exit_code=1 if _failed else None, observer="self",
            )  # fmt: skip
