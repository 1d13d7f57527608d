"""Checkpoints that are whole or not there: written beside, then renamed."""

import re
from pathlib import Path
from typing import Any

import torch

_NAME = re.compile(r"step-(\d+)\.pt")


def save(folder: Path, step: int, state: dict[str, Any], *, keep: int = 2) -> Path:
    """Write `state` as it was after `step` steps, and forget all but the last `keep` checkpoints."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step}.pt"
    draft = path.with_suffix(".draft")
    torch.save(state, draft)
    draft.replace(path)
    for _, old in _found(folder)[:-keep]:
        old.unlink()
    return path


def load_latest(folder: Path) -> tuple[int, dict[str, Any]] | None:
    """The newest checkpoint as (steps done, state), or None."""
    found = _found(folder)
    if not found:
        return None
    step, path = found[-1]
    return step, torch.load(path, weights_only=True)


def _found(folder: Path) -> list[tuple[int, Path]]:
    names = ((_NAME.fullmatch(path.name), path) for path in folder.glob("step-*.pt"))
    return sorted((int(match[1]), path) for match, path in names if match)
