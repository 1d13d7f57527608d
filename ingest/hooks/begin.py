"""Begin to record a process that turns out to be a rank: one that started without RANK in its environment."""

import os
from typing import Any

from rankscope.ingest import recorder


def as_rank(rank: int = -1, world_size: int = -1) -> None:
    """This process trains. Under `rankscope run` it begins to record now, if it does not yet.

    Args:
        rank, world_size: as the trainer itself said; -1 unknown.
    """
    if recorder.current() is not None or "RANKSCOPE_SPOOL" not in os.environ:
        return
    known: dict[str, Any] = {}
    if rank >= 0:
        known["rank"] = rank
    if world_size >= 0:
        known["world_size"] = world_size
    recorder.init(hooks=False, **known)
