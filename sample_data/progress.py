"""What a trainer tells of itself while it trains: one JSON line a step in `progress.jsonl`."""

import json
from dataclasses import dataclass
from pathlib import Path

_TAIL_BYTES = 512


@dataclass(frozen=True)
class Progress:
    """`step` optimizer steps of `steps` are done."""

    step: int
    steps: int
    loss: float  # nats a byte
    time_ns: int  # wall clock


def append_progress(path: Path, progress: Progress) -> None:
    """Add one line, in one write."""
    with path.open("a") as file:
        file.write(json.dumps(progress.__dict__) + "\n")


def last_progress(path: Path) -> Progress | None:
    """The newest whole line, or None while there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            whole, _, _ = file.read().rpartition(b"\n")
    except FileNotFoundError:
        return None
    line = whole.rpartition(b"\n")[2]
    return Progress(**json.loads(line)) if line else None


def read_progress(path: Path) -> list[Progress]:
    """All whole lines, oldest first; steps that were done again appear again."""
    whole = path.read_text().rpartition("\n")[0]
    return [Progress(**json.loads(line)) for line in whole.splitlines()]
