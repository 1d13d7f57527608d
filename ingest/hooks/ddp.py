"""DistributedDataParallel: its construction, its forward passes, and the buckets that its reducer reduces.

The C++ reducer does not call Python's all_reduce, but it calls a communication hook. So a hook is registered
that does exactly what the reducer does without one: multiply by one over the group's size, then sum. That is
only done when the user has registered none before the first forward pass; a user's own hook calls
torch.distributed, where it is seen anyway. A hook registered later takes the place of ours.
"""

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks.collectives import Call
from rankscope.ingest.hooks.distributed import groups_of
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.signatures import measure, signature
from rankscope.ingest.hooks.startup import startup
from rankscope.ingest.hooks.steps import steps
from rankscope.ingest.layout import Flag
from rankscope.ingest.vocabulary import SpanCategory

_guard = Guard("ddp")
_ASYNC, _ERROR = int(Flag.ASYNC), int(Flag.ERROR)
_hooks: "weakref.WeakKeyDictionary[Any, BucketHook | None]" = (
    weakref.WeakKeyDictionary()
)  # None: the user's own
_join_works: "weakref.WeakKeyDictionary[Any, Any]" = (
    weakref.WeakKeyDictionary()
)  # counts of ranks not yet done


def attach(module: ModuleType) -> None:
    """Watch the DistributedDataParallel class of torch.nn.parallel.distributed."""
    ddp = module.DistributedDataParallel
    ddp.__init__ = _watched_init(ddp.__init__)
    ddp.forward = _watched_forward(ddp.forward)
    for name in ("register_comm_hook", "_register_builtin_comm_hook"):
        if hasattr(ddp, name):
            setattr(ddp, name, _watched_register(getattr(ddp, name), name))
    join = getattr(module, "Join", None)
    if join is not None and hasattr(join, "notify_join_context"):
        join.notify_join_context = staticmethod(_kept_notice(join.notify_join_context))


class BucketHook:
    """The hook in a reducer: plain averaging, or what the user put in its place later."""

    def __init__(self, ddp: Any) -> None:
        import torch.distributed as dist

        self.user: tuple[Callable[..., Any], object] | None = None
        self._c10d = dist.distributed_c10d
        self._ddp = weakref.ref(ddp)
        self._options = dist.AllreduceOptions()
        self._texts: dict[tuple[int, int], tuple[int, str]] = {}

    def __call__(self, state: object, bucket: Any) -> Any:
        if self.user is not None:
            return self.user[0](self.user[1], bucket)
        ddp: Any = self._ddp()
        tensor = bucket.buffer()
        tensor.mul_(1.0 / _divisor(ddp))
        call = None
        if not _guard.off:
            with _guard:
                call = self._begin(bucket, tensor, ddp.process_group)
        try:
            work = ddp.process_group.allreduce([tensor], self._options)
        except BaseException as error:
            if call is not None:
                with _guard:
                    call.fail(error)
            raise

        def done(future: Any) -> Any:
            try:
                value = future.value()
            except BaseException as error:
                if call is not None:
                    with _guard:
                        call.fail(error)
                raise
            if call is not None:
                with _guard:
                    call.done()
            return value[0]

        return work.get_future().then(done)

    def _begin(self, bucket: Any, tensor: Any, process_group: Any) -> Call | None:
        recorder = rank_recorder()
        group = groups_of(self._c10d).of(recorder, process_group) if recorder is not None else None
        if recorder is None or group is None:
            return None
        key = (bucket.index(), tensor.numel())
        found = self._texts.get(key)
        if found is None:
            size, dtype, shape, _ = measure(tensor)
            text = f"{signature(None, dtype, shape, 1)}ddp bucket {bucket.index()}"
            found = self._texts[key] = (size, text)
        call = Call(recorder, group, "all_reduce", found[0], found[1], _ASYNC)
        if tensor.is_cuda:
            call.on_device()
        return call


def _divisor(ddp: Any) -> float:
    """What the reducer divides by: the group's size, or the ranks that still have data if Join is told so."""
    if ddp._join_config.enable and not getattr(ddp, "_divide_by_initial_world_size", True):
        work = _join_works.get(ddp)
        if work is not None:
            work.wait()
            return float(work.result()[0].item())
    return float(ddp.process_group.size())


def _kept_notice(original: Callable[..., Any]) -> Callable[..., Any]:
    """Join counts the ranks that still have data; the reducer reads that, and so must our hook."""

    @functools.wraps(original)
    def notify_join_context(joinable: Any) -> Any:
        work = original(joinable)
        if work is not None and joinable in _hooks:
            _join_works[joinable] = work
        return work

    return notify_join_context


def _watched_init(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not _guard.off:
            with _guard:
                recorder = rank_recorder()
                if recorder is not None:
                    startup.built(recorder)

    return init


def _watched_forward(original: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or _guard.off:
            return original(self, *args, **kwargs)
        token = recorder = None
        with _guard:
            recorder = rank_recorder()
            if recorder is not None:
                if torch.is_grad_enabled() and self.training:
                    if self not in _hooks:
                        _register(self)
                    steps.model_pass(recorder)
                token = recorder.begin(SpanCategory.FORWARD)
        if recorder is None or token is None:
            return original(self, *args, **kwargs)
        failed = True
        try:
            result = original(self, *args, **kwargs)
            failed = False
        finally:
            with _guard:
                recorder.end(token, _ERROR if failed else 0)
        return result

    return forward


def _watched_register(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def register(self: Any, *args: Any, **kwargs: Any) -> Any:
        ours = _hooks.get(self)
        if self not in _hooks:
            result = original(self, *args, **kwargs)
            _hooks[self] = None  # ours would be refused now
            return result
        if ours is None or ours.user is not None or name != "register_comm_hook":
            return original(self, *args, **kwargs)  # torch refuses a second one, in its own words
        state = kwargs.get("state", args[0] if args else None)
        hook: Any = kwargs.get("hook", args[1] if len(args) > 1 else None)
        self._check_comm_hook(hook)
        ours.user = (hook, state)
        return None

    return register


def _register(ddp: Any) -> None:
    """Put our hook in, where it changes nothing but that it is seen."""
    import torch.distributed as dist

    _hooks[ddp] = None
    if (
        getattr(ddp, "_use_python_reducer", False)
        or getattr(ddp, "_comm_hooks", None)
        or getattr(ddp, "mixed_precision", None) is not None
        or not hasattr(ddp, "_join_config")
        or any(getattr(module, "sparse", False) for module in ddp.modules())
        or dist.get_backend(ddp.process_group) not in ("gloo", "nccl")
    ):
        return  # reduced in another way: its buckets stay unseen
    hook = BucketHook(ddp)
    dist._register_comm_hook(ddp.reducer, None, hook)
    _hooks[ddp] = hook
