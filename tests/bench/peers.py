"""What others take to log one number: time on the caller's thread, and until all of it is on disk.

    python tests/bench/peers.py NAME FOLDER

Runs in an environment of its own, so it imports nothing of ours. Prints one JSON object.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

Log = Callable[[int], object]
# name: (events timed singly, events to disk)
COUNTS = {
    "trackio": (3_000, 3_000),
    "tensorboard": (20_000, 20_000),
    "wandb": (5_000, 5_000),
    "mlflow": (300, 300),
}


def trackio(folder: Path) -> tuple[str, Log, Callable[[], object]]:
    os.environ |= {"TRACKIO_DIR": str(folder), "GRADIO_ANALYTICS_ENABLED": "False"}
    import trackio

    trackio.init(project="bench", name="run", embed=False)
    return trackio.__version__, lambda n: trackio.log({"loss": 0.5 * n}), trackio.finish


def tensorboard(folder: Path) -> tuple[str, Log, Callable[[], object]]:
    import tensorboard as package
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))
    return package.__version__, lambda n: writer.add_scalar("loss", 0.5 * n, n), writer.close


def wandb(folder: Path) -> tuple[str, Log, Callable[[], object]]:
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(folder)}
    import wandb

    run = wandb.init(project="bench", dir=str(folder))
    return wandb.__version__, lambda n: run.log({"loss": 0.5 * n}), run.finish


def mlflow(folder: Path) -> tuple[str, Log, Callable[[], object]]:
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("bench")
    mlflow.start_run()
    return mlflow.__version__, lambda n: mlflow.log_metric("loss", 0.5 * n, step=n), mlflow.end_run


def measure(name: str, folder: Path) -> dict[str, float | str]:
    """version, median_ns and p99_ns per event, events_per_s to disk."""
    version, log, finish = {f.__name__: f for f in (trackio, tensorboard, wandb, mlflow)}[name](folder)
    singly, to_disk = COUNTS[name]
    log(0)
    took = [0] * singly
    clock = time.perf_counter_ns
    began = clock()
    for n in range(singly):
        before = clock()
        log(n + 1)
        took[n] = clock() - before
    for n in range(singly, to_disk):
        log(n + 1)
    finish()
    seconds = (clock() - began) / 1e9
    took.sort()
    return {
        "version": version,
        "median_ns": took[singly // 2],
        "p99_ns": took[singly * 99 // 100],
        "events_per_s": to_disk / seconds,
    }


if __name__ == "__main__":
    result = measure(sys.argv[1], Path(sys.argv[2]))
    print("\n" + json.dumps(result))
