"""Functional collectives, as DTensor and tensor parallelism use them outside of the compiler.

They return at once; their end is when somebody waits for the result, which wait_tensor sees. What a compiled
graph calls does not pass through Python and is not seen.
"""

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from rankscope.ingest.hooks.collectives import Call, text_of, thread
from rankscope.ingest.hooks.distributed import groups_of
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.patching import put
from rankscope.ingest.hooks.signatures import measure
from rankscope.ingest.layout import Flag

# Function and where its group is among the parameters.
FUNCTIONS: Final = {
    "broadcast": 2,
    "all_reduce": 2,
    "all_gather_single": 2,
    "all_gather_tensor": 2,
    "reduce_scatter_single": 3,
    "reduce_scatter_tensor": 3,
    "all_to_all_single": 3,
    "all_reduce_coalesced": 2,
    "all_gather_single_coalesced": 1,
    "all_gather_into_tensor_coalesced": 1,
    "reduce_scatter_single_coalesced": 3,
    "reduce_scatter_tensor_coalesced": 3,
}
MAX_PENDING: Final = 1024

_guard = Guard("functional")
_ASYNC = int(Flag.ASYNC)
_pending: "OrderedDict[int, tuple[Any, Call]]" = OrderedDict()  # where a result lies -> (its storage, call)


def attach(module: ModuleType) -> None:
    """Watch torch.distributed._functional_collectives."""
    wrapped = {
        name: _watched(module, name, getattr(module, name), group_at)
        for name, group_at in FUNCTIONS.items()
        if hasattr(module, name)
    }
    if hasattr(module, "wait_tensor"):
        wrapped["wait_tensor"] = _watched_wait(module.wait_tensor)
    put(module, wrapped)


def _watched(module: ModuleType, op: str, original: Callable[..., Any], group_at: int) -> Callable[..., Any]:
    import torch
    import torch.distributed as dist

    c10d = dist.distributed_c10d

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        recorder = rank_recorder()
        if recorder is None or module._are_we_tracing():
            return None
        named = module._resolve_group_name(args[group_at] if group_at < len(args) else kwargs["group"])
        group = groups_of(c10d).of(recorder, c10d._resolve_process_group(named))
        if group is None:
            return None
        measured = measure(args[0] if args else kwargs["self"])
        return Call(recorder, group, op, measured[0], text_of(sys._getframe(2), measured), _ASYNC)

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or _guard.off or thread.busy:
            return original(*args, **kwargs)
        call = None
        with _guard:
            call = begin(args, kwargs)
        if call is None:
            return original(*args, **kwargs)
        thread.busy = True
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            with _guard:
                call.fail(error)
            raise
        finally:
            thread.busy = False
        with _guard:
            _await(call, result)
        return result

    return watched


def _await(call: Call, result: Any) -> None:
    """End `call` when the first of its results is waited for; at once when it was waited for already."""
    first = result[0] if isinstance(result, (list, tuple)) else result
    pending = getattr(first, "elem", None)
    if pending is None or getattr(first, "completed", False):
        call.end()
        return
    storage = pending.untyped_storage()
    while len(_pending) >= MAX_PENDING:
        _pending.popitem(last=False)[1][1].end()  # nobody waits for it
    _pending[storage.data_ptr()] = (storage, call)


def _watched_wait(original: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    @functools.wraps(original)
    def wait_tensor(tensor: Any) -> Any:
        if torch.compiler.is_compiling() or not _pending or _guard.off:
            return original(tensor)
        found = None
        with _guard:
            found = _pending.pop(tensor.untyped_storage().data_ptr(), None)
        try:
            result = original(tensor)
        except BaseException as error:
            if found is not None:
                with _guard:
                    found[1].fail(error)
            raise
        if found is not None:
            with _guard:
                found[1].end()
        return result

    return wait_tensor
