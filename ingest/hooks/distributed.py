"""torch.distributed: every collective that goes through its Python functions, and groups as they are made.

A collective is published before the call: a size mismatch on gloo kills a rank with no exception at all.
Functions that call others (all_gather_object calls all_gather) are recorded once, outermost. What the
compiler traces is left alone: there, a wrapper calls the original and nothing else.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from rankscope.ingest.hooks.collectives import Call, guard, text_of, thread, watch_wait
from rankscope.ingest.hooks.groups import Groups
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.patching import put
from rankscope.ingest.hooks.process_groups import wrappers as group_wrappers
from rankscope.ingest.hooks.signatures import measure
from rankscope.ingest.layout import Flag

_P2P, _ASYNC = int(Flag.P2P), int(Flag.ASYNC)

# What each sends: the parameter whose tensors are counted, None where objects or nothing are sent.
COLLECTIVES: Final[dict[str, str | None]] = {
    "all_reduce": "tensor",
    "all_reduce_coalesced": "tensors",
    "broadcast": "tensor",
    "reduce": "tensor",
    "all_gather": "tensor",
    "all_gather_coalesced": "input_tensor_list",
    "all_gather_single": "input_tensor",
    "all_gather_into_tensor": "input_tensor",
    "gather": "tensor",
    "scatter": "tensor",
    "reduce_scatter": "input_list",
    "reduce_scatter_single": "input",
    "reduce_scatter_tensor": "input",
    "all_to_all": "input_tensor_list",
    "all_to_all_single": "input",
    "barrier": None,
    "monitored_barrier": None,
    "all_gather_object": None,
    "gather_object": None,
    "broadcast_object_list": None,
    "scatter_object_list": None,
}
MESSAGES: Final[dict[str, str | None]] = {
    "send": "tensor",
    "recv": "tensor",
    "isend": "tensor",
    "irecv": "tensor",
    "send_object_list": None,
    "recv_object_list": None,
}
# Names that only warn and call the other one: the other one is watched.
ALIASES: Final = {
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
}


def attach(module: ModuleType) -> None:
    """Watch the functions of torch.distributed.distributed_c10d."""
    groups = groups_of(module)
    wrapped: dict[str, Callable[..., Any]] = {}
    for names, is_message in ((COLLECTIVES, False), (MESSAGES, True)):
        for name, sent in names.items():
            original = getattr(module, name, None)
            if original is not None and not hasattr(module, ALIASES.get(name, "")):
                wrapped[name] = _watched(module, groups, name, original, sent, is_message)
    manager = getattr(module, "_coalescing_manager", None)
    if manager is not None:
        wrapped["_coalescing_manager"] = _watched_manager(module, groups, manager)
    wrapped |= group_wrappers(module, groups)
    _teach_compiler({getattr(module, name): wrapper for name, wrapper in wrapped.items()})
    put(module, wrapped)
    watch_wait(module.Work)


@functools.cache
def groups_of(module: ModuleType) -> Groups:
    """The one Groups of a module of collectives."""
    return Groups(module)


def _watched(
    module: ModuleType, groups: Groups, op: str, original: Callable[..., Any], sent: str | None, message: bool
) -> Callable[..., Any]:
    places = {name: index for index, name in enumerate(inspect.signature(original).parameters)}
    group_at, async_at = places["group"], places.get("async_op", 99)
    sent_at = places[sent] if sent is not None else -1
    peer_names = (
        [name for name in ("dst", "src", "group_dst", "group_src") if name in places] if message else []
    )
    # Plain numbers: with enums, arithmetic alone would cost ten times what a record does.
    now, later = (_P2P, _P2P | _ASYNC) if message else (0, _ASYNC)
    always_async = op in ("isend", "irecv")
    world = module._world
    nothing = (0, None, (), 0)
    is_compiling = _is_compiling()

    def argument(args: tuple[Any, ...], kwargs: dict[str, Any], name: str, place: int) -> Any:
        return args[place] if place < len(args) else kwargs.get(name)

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        recorder = rank_recorder()
        if recorder is None:
            return None
        pg = argument(args, kwargs, "group", group_at)
        group = groups.of(recorder, pg)
        if group is None or (pg or module.GroupMember.WORLD) in world.pg_coalesce_state:
            return None  # not ours, or only noted for the manager that will start it
        value = argument(args, kwargs, sent, sent_at) if sent is not None else None
        measured = measure(value) if value is not None else nothing
        peer = -1
        for name in peer_names:
            given = argument(args, kwargs, name, places[name])
            if given is not None:
                peer = group.ranks[given] if name.startswith("group_") else given
        flags = later if always_async or argument(args, kwargs, "async_op", async_at) else now
        call = Call(recorder, group, op, measured[0], text_of(sys._getframe(2), measured), flags, peer)
        if getattr(value[0] if isinstance(value, list) and value else value, "is_cuda", False):
            call.on_device()
        return call

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or guard.off or thread.busy:
            return original(*args, **kwargs)
        call = None
        with guard:
            call = begin(args, kwargs)
        if call is None:
            return original(*args, **kwargs)
        thread.busy = True
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            with guard:
                call.fail(error)
            raise
        finally:
            thread.busy = False
        with guard:
            if isinstance(result, module.Work):
                call.end_with(result)
            else:
                call.done()
        return result

    return watched


def _watched_manager(module: ModuleType, groups: Groups, original: Callable[..., Any]) -> Callable[..., Any]:
    """Collectives that are noted first and started together, when the manager is left."""
    is_compiling = _is_compiling()

    def begin(pg: Any, asynchronous: bool) -> Call | None:
        recorder = rank_recorder()
        group = groups.of(recorder, pg) if recorder is not None else None
        if recorder is None or group is None:
            return None
        noted = module._world.pg_coalesce_state.get(pg or module.GroupMember.WORLD) or []
        name = f"{noted[0].op.__name__}_coalesced" if noted else "coalesced"
        measured = measure([op.tensor for op in noted])
        flags = _ASYNC if asynchronous else 0
        return Call(recorder, group, name, measured[0], text_of(sys._getframe(3), measured), flags)

    @functools.wraps(original)
    @contextmanager
    def manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[Any]:
        call = None
        try:
            with original(group, device, async_ops) as coalesced:
                yield coalesced
                if not (is_compiling() or guard.off or thread.busy):
                    with guard:
                        call = begin(group, async_ops)
        except BaseException as error:
            if call is not None:
                with guard:
                    call.fail(error)
            raise
        if call is not None:
            with guard:
                works = getattr(coalesced, "works", None)
                if async_ops and works:
                    call.end_with(works[-1])
                else:
                    call.end()

    return manager


def _is_compiling() -> Callable[[], bool]:
    """torch.compiler.is_compiling, which the compiler itself takes for True."""
    import torch

    compiler = getattr(torch, "compiler", None)
    return compiler.is_compiling if compiler is not None else _not_yet


def _not_yet() -> bool:
    import torch

    return bool(torch.compiler.is_compiling())


def _teach_compiler(wrappers: dict[Any, Callable[..., Any]]) -> None:
    """The compiler replaces collectives by functional ones, and knows them by identity: also by ours."""
    functional = sys.modules.get("torch.distributed._functional_collectives")
    remaps = getattr(functional, "traceable_collective_remaps", None)
    if isinstance(remaps, dict):
        remaps.update(
            {wrapper: remaps[original] for original, wrapper in wrappers.items() if original in remaps}
        )
