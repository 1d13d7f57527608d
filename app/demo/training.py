"""The training of the demo: torchrun under `rankscope run`, watched through what the trainer itself tells."""

import os
import sys
import time
from pathlib import Path

from rankscope.app.demo.plan import Plan
from rankscope.app.demo.process import Child
from rankscope.app.demo.screen import Screen
from rankscope.ingest.errors import UserError
from rankscope.sample_data.faults.kill import KillRank
from rankscope.sample_data.progress import last_progress, read_progress

_POLL_S = 0.1
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # the ranks share this machine's cores
    # torchrun keeps one store over all restarts: with torch 2.13 gloo meets addresses of dead ranks in it.
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}


def train(plan: Plan, screen: Screen) -> None:
    """Train as planned, with the failure in it, and come back when it is over.

    Raises:
        UserError: it did not reach its last step.
    """
    began_ns = time.time_ns()
    environment = {
        **_ENVIRONMENT,
        "RANKSCOPE_SPOOL": str(plan.spool.absolute()),
        "RANKSCOPE": "1",
        # This Python's own torchrun, whether its environment is active or not.
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
    }
    with Child(_command(plan), plan.log, environment) as training:
        kill = KillRank(
            training.pid,
            run=plan.run,
            rank=plan.kill_rank,
            step=plan.kill_step,
            progress=plan.progress,
            truth=plan.truth,
        )
        kill.start()
        try:
            with screen.bar():
                _follow(plan, screen, training, kill, began_ns)
        finally:
            kill.stop()
        status = training.wait()
    last = last_progress(plan.progress)
    if status != 0 or last is None or last.step != plan.steps:
        reached = last.step if last is not None else 0
        raise UserError(
            f"the training ended with status {status} after {reached} of {plan.steps} steps: see {plan.log}"
        )
    if kill.truth is None:
        raise UserError(
            f"the training was over before rank {plan.kill_rank} was killed: ask for more --steps"
        )
    first = read_progress(plan.progress)[0]
    screen.phase("trained", f"{plan.steps} steps, loss {first.loss:.2f} -> {last.loss:.2f}")


def _follow(plan: Plan, screen: Screen, training: Child, kill: KillRank, began_ns: int) -> None:
    started = killed = recovered = False
    while training.poll() is None:
        now = last_progress(plan.progress)
        if now is not None:
            screen.step(now)
        if now is not None and not started:
            started = True
            screen.phase("training", f"first step {(now.time_ns - began_ns) / 1e9:.1f} s after the launch")
        if kill.truth is not None and not killed:
            killed = True
            screen.phase(
                "killed",
                f"rank {kill.truth.rank} (process {kill.truth.pid}) at step {kill.truth.step}, SIGKILL",
            )
        if now is not None and kill.truth is not None and not recovered and _is_after(now.step, kill):
            recovered = True
            screen.phase("recovered", f"trains again after {_since_kill_s(now.time_ns, kill):.1f} s")
        time.sleep(_POLL_S)


def _is_after(step: int, kill: KillRank) -> bool:
    """The first thing told after a restart is an earlier step: it starts from a checkpoint."""
    return kill.truth is not None and step < kill.truth.step


def _since_kill_s(time_ns: int, kill: KillRank) -> float:
    assert kill.truth is not None
    return (time_ns - kill.truth.time_ns) / 1e9


def _command(plan: Plan) -> list[str]:
    return [
        *(sys.executable, "-m", "rankscope.app.cli", "run", "--run", plan.run, "--"),
        *("torchrun", "--standalone", "--nproc-per-node", str(plan.ranks), "--max-restarts", "2"),
        *("-m", "rankscope.sample_data.trainers.ddp", "--out", str(plan.folder)),
        *("--steps", str(plan.steps), "--checkpoint-every", str(plan.checkpoint_every)),
        *("--eval-every", str(plan.eval_every)),
    ]
