"""Train a small transformer on Python's own sources with DDP: a run as people write them, plus five lines.

    rankscope run -- torchrun --nproc-per-node 4 --max-restarts 2 \\
        -m rankscope.sample_data.trainers.ddp --out runs/first --steps 200

It writes checkpoints and resumes from the newest one, so it may be killed at any moment. Rank 0 appends one
line a step to OUT/progress.jsonl. The lines that record the run are
marked with <- ; with RANKSCOPE=0 they do nothing.
"""

import argparse
import time
from pathlib import Path

import rankscope
from rankscope.ingest.recorder import Recorder

recorder = rankscope.init()  # <- 1: before torch, so that its import is part of the picture

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from rankscope.sample_data.progress import Progress, append_progress  # noqa: E402
from rankscope.sample_data.trainers import checkpoint  # noqa: E402
from rankscope.sample_data.trainers.corpus import ExactOrder, Windows, load_corpus  # noqa: E402
from rankscope.sample_data.trainers.model import ByteTransformer, Shape  # noqa: E402

EVAL_SAMPLES = 64


def main() -> None:
    args = _arguments()
    torch.set_num_threads(1)  # the ranks share this machine's cores
    torch.manual_seed(args.seed)
    dist.init_process_group("gloo")
    try:
        train(args, recorder)
    finally:
        dist.destroy_process_group()
        recorder.close()  # <- 5


def train(args: argparse.Namespace, rec: Recorder) -> None:
    """Train until step `args.steps`, from the newest checkpoint on."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shape = Shape()
    windows = Windows(load_corpus(), shape.context + 1)
    held_out = torch.stack([windows[i] for i in range(len(windows) - EVAL_SAMPLES, len(windows))])
    model = DistributedDataParallel(ByteTransformer(shape))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    found = checkpoint.load_latest(args.out / "checkpoints")
    done = 0
    if found is not None:
        done, state = found
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    order = ExactOrder(len(windows) - EVAL_SAMPLES, args.batch_size, rank, world_size, done, args.seed)
    loader = DataLoader(windows, batch_size=args.batch_size, sampler=order)

    for batch in rec.data(loader):  # <- 2
        with rec.step(done):  # <- 3
            loss = model(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            rec.scalar("loss", loss.item())  # <- 4
        done += 1
        if rank == 0:
            now = Progress(done, args.steps, loss.item(), time.time_ns())
            append_progress(args.out / "progress.jsonl", now)
        if done % args.checkpoint_every == 0 and rank == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            checkpoint.save(args.out / "checkpoints", done, state)
        if done % args.eval_every == 0:
            with rec.span("eval", step=done - 1):  # <- only to tell evaluation from what is unexplained
                rec.scalar("eval_loss", evaluate(model, held_out[rank::world_size]))
        if done >= args.steps:
            return


@torch.no_grad()
def evaluate(model: DistributedDataParallel, share: torch.Tensor) -> float:
    """Mean loss in nats a byte over what all ranks hold of the held-out text."""
    model.eval()
    loss = model.module(share)
    model.train()
    dist.all_reduce(loss)
    return float(loss) / dist.get_world_size()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints and progress")
    parser.add_argument("--steps", type=int, default=200, help="optimizer steps in all")
    parser.add_argument("--checkpoint-every", type=int, default=25, metavar="STEPS")
    parser.add_argument("--eval-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--batch-size", type=int, default=8, help="windows a rank and step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


if __name__ == "__main__":
    main()
