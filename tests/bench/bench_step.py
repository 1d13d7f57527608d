"""What recording costs a real DDP step: the same training with and without, in turn, on gloo.

    python tests/bench/bench_step.py [--pairs 4]

Each turn is a process group of its own, so that without means that no hook was ever there.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 2
WARM_UP = 20
STEPS = 120


def train(rank: int, port: int, spool: str) -> None:
    """One rank: prints the median duration of its steps, ns, and the records it made."""
    os.environ |= {
        "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }  # fmt: skip
    import rankscope

    recorder = rankscope.init(spool, run="bench")
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(
        nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(8)])
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(256, 256)
    took = []
    for step in range(WARM_UP + STEPS):
        before = time.perf_counter_ns()
        with recorder.step(step):
            optimizer.zero_grad()
            loss = model(data).square().mean()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                recorder.scalar("loss", loss.item())
        if step >= WARM_UP:
            took.append(time.perf_counter_ns() - before)
    written = next(iter(recorder._pen)) if recorder.enabled else 0
    if rank == 0:
        print(json.dumps({"step_ns": statistics.median(took), "records_a_step": written / (WARM_UP + STEPS)}))
    torch.distributed.destroy_process_group()


def turn(recording: bool) -> dict[str, float]:
    """Train once; what rank 0 measured."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    environment["RANKSCOPE"] = "1" if recording else "0"
    with tempfile.TemporaryDirectory() as spool:
        ranks = [
            subprocess.Popen(
                [sys.executable, __file__, "--rank", str(rank), "--port", str(port), "--spool", spool],
                stdout=subprocess.PIPE, text=True, env=environment,
            )
            for rank in range(RANKS)
        ]  # fmt: skip
        said = [rank.communicate(timeout=300)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * RANKS
    found: dict[str, float] = json.loads(said[0].splitlines()[-1])
    return found


def measure(pairs: int = 4) -> dict[str, object]:
    """Returns step_ns without and with, the slow-down of each pair, and the records of a step."""
    off, on = [], []
    for _ in range(pairs):
        off.append(turn(recording=False))
        on.append(turn(recording=True))
    without, with_it = [t["step_ns"] for t in off], [t["step_ns"] for t in on]
    return {
        "without_step_ns": without,
        "with_step_ns": with_it,
        "slow_down_ratio": statistics.median(with_it) / statistics.median(without) - 1,
        "pairs_ratio": [b / a - 1 for a, b in zip(without, with_it, strict=True)],
        "records_a_step": on[-1]["records_a_step"],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--port", type=int)
    parser.add_argument("--spool", type=Path)
    args = parser.parse_args()
    if args.rank is not None:
        train(args.rank, args.port, str(args.spool))
    else:
        print(json.dumps(measure(args.pairs), indent=1))
