"""What is watched without a change to the trainer: one file a thing, in the order of this list.

A hook's module has attach(module), called once its library's module is imported. Nothing here imports a
library to watch it, and nothing raises into the trainer: see guard.py.
"""

import importlib
import time
from collections.abc import Collection
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.postimport import after_import

if TYPE_CHECKING:
    from rankscope.ingest.recorder import Recorder


class Hook(NamedTuple):
    """`file` in this package attaches to `module` when that is imported; in a rank at once for module ''."""

    file: str
    module: str


HOOKS: Final = (
    Hook("exceptions", ""),
    Hook("distributed", "torch.distributed.distributed_c10d"),
    Hook("flight_recorder", "torch.distributed.distributed_c10d"),
    Hook("functional", "torch.distributed._functional_collectives"),
    Hook("ddp", "torch.nn.parallel.distributed"),
    Hook("fsdp", "torch.distributed.fsdp.fully_sharded_data_parallel"),
    Hook("fsdp", "torch.distributed.fsdp._fully_shard._fully_shard"),
    Hook("autograd", "torch.autograd"),
    Hook("optimizer", "torch.optim.optimizer"),
    Hook("dataloader", "torch.utils.data.dataloader"),
    Hook("checkpoint", "torch.serialization"),
    Hook("checkpoint", "torch.distributed.checkpoint.state_dict_saver"),
    Hook("checkpoint", "torch.distributed.checkpoint.state_dict_loader"),
    Hook("torchft", "torchft.manager"),
    Hook("torchtitan", "torchtitan.observability.structured_logger.structured_logging"),
    Hook("huggingface", "transformers.trainer"),
    Hook("lightning", "lightning.pytorch.trainer.trainer"),
    Hook("lightning", "pytorch_lightning.trainer.trainer"),
    Hook("torchelastic", "torch.distributed.elastic.agent.server.local_elastic_agent"),
)

_installed = False
began_ns = time.time_ns()  # our first line in this process, as far as hooks go


def install(recorder: "Recorder | None" = None, only: Collection[str] | None = None) -> None:
    """Arm the hooks, once a process. Without a recorder, the first hook that needs one begins it.

    Args:
        only: names of the hooks to arm; all by default.
    """
    global _installed
    if _installed:
        return
    _installed = True
    for hook in HOOKS:
        if only is not None and hook.file not in only:
            continue
        attacher = _Attacher(hook)
        if hook.module:
            after_import(hook.module, attacher)
        elif recorder is not None:
            attacher(importlib.import_module(__name__))
        else:
            after_import("torch", attacher)  # what never imports torch, never becomes a rank


class _Attacher:
    """Loads a hook's own file only when it is needed."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._guard = Guard(f"attach {hook.file}")

    def __call__(self, module: ModuleType) -> None:
        with self._guard:
            importlib.import_module(f"{__name__}.{self._hook.file}").attach(module)
