"""What one demo run is to be, decided before anything starts."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from rankscope.ingest.errors import UserError
from rankscope.ingest.places import default_url, spool_of

RANKS = 4
STEPS = 200
QUICK_STEPS = 60


@dataclass(frozen=True)
class Plan:
    """A training of `ranks` ranks and `steps` steps in which `kill_rank` dies at `kill_step`."""

    run: str
    store: Path
    spool: Path
    folder: Path  # checkpoints, progress, the trainer's output, the truth about the fault
    ranks: int
    steps: int
    checkpoint_every: int  # steps
    eval_every: int  # steps
    kill_rank: int
    kill_step: int

    @property
    def progress(self) -> Path:
        return self.folder / "progress.jsonl"

    @property
    def truth(self) -> Path:
        return self.folder / "truth.json"

    @property
    def log(self) -> Path:
        return self.folder / "train.log"


def make_plan(
    *,
    store: str | None = None,
    spool: Path | None = None,
    run: str | None = None,
    steps: int | None = None,
    kill_rank: int = 2,
    kill_step: int | None = None,
    quick: bool = False,
) -> Plan:
    """Fill in what was left open. The fault comes between two checkpoints, so that steps are lost.

    Raises:
        UserError: something asked for cannot be.
    """
    url = store if store is not None else default_url()
    if url.startswith(("quack:", "ducklake:")):
        raise UserError(f"the demo writes to a store that is a file, not to {url}: name one with --store")
    total = steps if steps is not None else QUICK_STEPS if quick else STEPS
    if total < 10:
        raise UserError(f"--steps {total} leaves no room for a failure: ask for 10 or more", status=2)
    if not 0 <= kill_rank < RANKS:
        raise UserError(f"--kill-rank {kill_rank} is not one of the ranks 0 to {RANKS - 1}", status=2)
    every = max(4, total // 8)
    at = kill_step if kill_step is not None else (total * 6 // 10) // every * every + every // 2
    if not 1 <= at < total:
        raise UserError(f"--kill-step {at} is not between 1 and {total - 1}", status=2)
    name = run or os.environ.get("RANKSCOPE_RUN") or time.strftime("demo-%Y%m%d-%H%M%S")
    if "/" in name or name.startswith("."):
        raise UserError(f"{name!r} cannot be a run's name: it is used as the name of a folder", status=2)
    path = Path(url)
    folder = path.with_name(path.name.removesuffix(".duckdb") + ".demo") / name
    if folder.exists():
        raise UserError(f"there is a demo run {name} already, in {folder}: choose another name with --run")
    return Plan(
        run=name,
        store=path,
        spool=spool if spool is not None else spool_of(url),
        folder=folder,
        ranks=RANKS,
        steps=total,
        checkpoint_every=every,
        eval_every=2 * every,
        kill_rank=kill_rank,
        kill_step=at,
    )
