"""FSDP: wrapping a module is part of making the model. Its collectives are seen in torch.distributed."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks.guard import Guard, around
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.patching import put
from rankscope.ingest.hooks.startup import startup
from rankscope.ingest.recorder import Recorder

_guard = Guard("fsdp")


def attach(module: ModuleType) -> None:
    """Watch FSDP2's fully_shard, or FSDP1's constructor."""
    if hasattr(module, "fully_shard"):
        put(module, {"fully_shard": _building(module.fully_shard)})
    wrapper = getattr(module, "FullyShardedDataParallel", None)
    if wrapper is not None and wrapper.__module__ == module.__name__:
        wrapper.__init__ = _building(wrapper.__init__)


def _building(original: Callable[..., Any]) -> Callable[..., Any]:
    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recorder | None:
        return rank_recorder()

    def leave(recorder: Recorder, result: Any, error: BaseException | None) -> None:
        startup.built(recorder)

    return around(_guard, original, enter, leave)
