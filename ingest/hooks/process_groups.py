"""init_process_group, new and split groups, and the TCPStore's connect, as phases of start-up."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks import begin
from rankscope.ingest.hooks.collectives import guard, thread
from rankscope.ingest.hooks.groups import Groups
from rankscope.ingest.hooks.guard import around
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.startup import startup
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import InitPhase, SpanCategory


def wrappers(module: ModuleType, groups: Groups) -> dict[str, Callable[..., Any]]:
    """Wrappers by name for what makes and destroys groups in distributed_c10d."""
    made: dict[str, Callable[..., Any]] = {}
    for name, described in (
        ("init_process_group", None),
        ("new_group", "group_desc"),
        ("split_group", "group_desc"),
        ("shrink_group", None),
        ("_new_group_with_tag", "group_desc"),
    ):
        original = getattr(module, name, None)
        if original is not None:
            made[name] = _making(module, groups, name, original, described)
    if hasattr(module, "destroy_process_group"):
        made["destroy_process_group"] = _destroying(groups, module.destroy_process_group)
    _watch_store(module)
    return made


def _making(
    module: ModuleType, groups: Groups, name: str, original: Callable[..., Any], described: str | None
) -> Callable[..., Any]:
    is_first = name == "init_process_group"

    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Recorder, Any, bool] | None:
        if is_first:
            begin.as_rank(kwargs.get("rank", -1), kwargs.get("world_size", -1))
        recorder = rank_recorder()
        if recorder is None or thread.busy:
            return None
        startup.uses_torch(recorder)
        attrs = {"pg": str(kwargs.get(described) or name) if described else name}
        token = recorder.begin(SpanCategory.INIT, InitPhase.PROCESS_GROUP, attrs=attrs)
        thread.busy = True  # barriers in here are part of making the group
        return recorder, token, is_first

    def leave(entered: tuple[Recorder, Any, bool], result: Any, error: BaseException | None) -> None:
        recorder, token, _ = entered
        thread.busy = False
        recorder.end(token, Flag.ERROR if error is not None else 0)
        if error is None:
            startup.connected()
            groups.of(recorder, None if is_first else result)
            if is_first:
                recorder.event("run_update", backend=str(module.get_backend()))

    return around(guard, original, enter, leave)


def _destroying(groups: Groups, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        finally:
            with guard:
                groups.forget()

    return destroy_process_group


def _watch_store(module: ModuleType) -> None:
    """The time a TCPStore takes to connect, which is when its constructor returns."""
    store = getattr(module, "TCPStore", None)
    if store is None:
        import torch

        store = getattr(torch._C._distributed_c10d, "TCPStore", None)
    if store is None:
        return

    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Recorder, Any] | None:
        recorder = rank_recorder()
        if recorder is None:
            return None
        startup.uses_torch(recorder)
        host = kwargs.get("host_name", args[1] if len(args) > 1 else "")
        port = kwargs.get("port", args[2] if len(args) > 2 else "")
        attrs = {"endpoint": f"{host}:{port}"}
        return recorder, recorder.begin(SpanCategory.INIT, InitPhase.STORE, attrs=attrs)

    def leave(entered: tuple[Recorder, Any], result: Any, error: BaseException | None) -> None:
        entered[0].end(entered[1], Flag.ERROR if error is not None else 0)

    store.__init__ = around(guard, store.__init__, enter, leave)
