"""A real emulation on this machine: worker processes, one real TCPStore, and what came of it, checked."""

import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from rankscope.emulation.counts import Counts
from rankscope.emulation.real.plan import RealPlan
from rankscope.ingest.errors import UserError

_FILES_A_RANK = 8  # own sockets of a rank while its ring is formed by a root: doors, callers, neighbours
_GRACE_S = 60.0


@dataclass
class RealResult:
    """What a real start did. `spans` holds (phase, begin_ns, end_ns) of sampled ranks, wall clock."""

    plan: RealPlan
    workers: int
    total_s: float
    phases: list[tuple[str, float]]
    counts: Counts
    checked: int
    complete: bool
    errors: list[str]
    cpu_s: float
    shared_connections: int
    began_ns: int
    spans: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict, repr=False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "ranks": self.plan.ranks,
            "ring": self.plan.ring,
            "allgather": None if self.plan.shared else self.plan.allgather,
            "total_s": self.total_s,
            "phases": [{"name": name, "s": seconds} for name, seconds in self.phases],
            "messages": self.counts.messages,
            "store_ops": self.counts.store_ops,
            "counts": self.counts.as_dict(),
            "chunks_checked": self.checked,
            "ring_complete": self.complete,
            "errors": self.errors,
            "workers": self.workers,
            "cpu_s": self.cpu_s,
            "shared_connections": self.shared_connections,
        }

    @property
    def form_s(self) -> float:
        """Until every rank had its two neighbours."""
        return sum(seconds for name, seconds in self.phases if not name.startswith("allgather"))

    @property
    def gather_s(self) -> float:
        """All AllGathers."""
        return sum(seconds for name, seconds in self.phases if name.startswith("allgather"))


def run_real(
    plan: RealPlan, *, workers: int | None = None, progress: Callable[[str], None] = lambda text: None
) -> RealResult:
    """Start `plan.ranks` virtual ranks for real over `workers` processes of this machine.

    Raises:
        UserError: torch is missing, too many ranks for this machine's open files, or a worker died.
    """
    return run_series([plan], workers=workers, progress=progress)[0]


def run_series(
    plans: Sequence[RealPlan],
    *,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> list[RealResult]:
    """Several plans one after the other in the same workers, their names apart from each other."""
    try:
        import torch.distributed as dist
    except ImportError as error:
        raise UserError("the real emulation needs torch: pip install torch") from error
    workers = workers or min(*(plan.ranks for plan in plans), max(2, os.cpu_count() or 2), 64)
    for plan in plans:
        _check_files(plan, workers)
    store = dist.TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=_GRACE_S)
    )
    progress(f"starting {workers} workers")
    processes = [_start(plans, index, workers, store.port) for index in range(workers)]
    try:
        _wait(processes, sum(plan.timeout_s for plan in plans) + 2 * _GRACE_S)
        progress("reading what they report")
        return [collect(store, plan, workers) for plan in plans]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def collect(store: Any, plan: RealPlan, workers: int) -> RealResult:
    """Put the workers' reports together and check that one ring of all ranks was formed."""
    reports = [json.loads(zlib.decompress(store.get(f"{plan.name}/report/{w}"))) for w in range(workers)]
    counts = Counts()
    spans: dict[int, list[tuple[str, int, int]]] = {}
    for report in reports:
        counts.add(Counts.from_dict(report["counts"]))
        spans.update({int(rank): [tuple(s) for s in found] for rank, found in report["spans"].items()})
    following = np.array([rank for report in reports for rank in report["next"]], dtype=np.int64)
    began = min(report["began_ns"] for report in reports)
    ends: dict[str, int] = {}
    for report in reports:
        for name, end in report["phase_ends_ns"].items():
            ends[name] = max(ends.get(name, 0), end)
    ended = max(ends.values(), default=max(report["ended_ns"] for report in reports))
    return RealResult(
        plan=plan,
        workers=workers,
        total_s=(ended - began) / 1e9,
        phases=_fronts(ends, began),
        counts=counts,
        checked=sum(report["checked"] for report in reports),
        complete=is_one_ring(following) and len(following) == plan.ranks,
        errors=[error for report in reports for error in report["errors"]][:20],
        cpu_s=sum(report["cpu_s"] for report in reports),
        shared_connections=sum(report["shared_connections"] for report in reports),
        began_ns=began,
        spans=spans,
    )


def is_one_ring(following: np.ndarray[Any, np.dtype[np.int64]]) -> bool:
    """Whether following[rank] leads through all ranks once and back to the first."""
    n = len(following)
    if n == 0 or following.min() < 0 or following.max() >= n:
        return False
    rank, steps = int(following[0]), 1
    while rank != 0 and steps <= n:
        rank, steps = int(following[rank]), steps + 1
    return rank == 0 and steps == n


def _fronts(ends_ns: dict[str, int], began_ns: int) -> list[tuple[str, float]]:
    """(phase, seconds by which the last rank moved on in it)."""
    fronts, at = [], began_ns
    for name, end in ends_ns.items():
        fronts.append((name, max(0, end - at) / 1e9))
        at = max(at, end)
    return fronts


def _check_files(plan: RealPlan, workers: int) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = int(0.9 * hard) // _FILES_A_RANK * workers
    if not plan.shared and plan.ranks > most:
        raise UserError(
            f"{plan.ranks:,} ranks with sockets of their own need more than the {hard:,} open files a "
            "process may "
            f"have: use --form-only (shared connections), at most {most:,} ranks, or torchrun over "
            "several hosts"
        )


def _start(plans: Sequence[RealPlan], index: int, workers: int, port: int) -> subprocess.Popen[bytes]:
    env = os.environ | {
        "RANK": str(index),
        "WORLD_SIZE": str(workers),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is ours
        "RANKSCOPE": "0",  # workers are not ranks of anybody's training
    }
    told = json.dumps([plan.to_json() for plan in plans])
    command = [sys.executable, "-m", "rankscope.emulation.real.worker", "--plans", told]
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _wait(processes: list[subprocess.Popen[bytes]], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    for number, process in enumerate(processes):
        try:
            status = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise UserError(
                f"worker {number} of the emulation did not end within {timeout_s:.0f} s"
            ) from error
        if status:
            raise UserError(
                f"worker {number} of the emulation ended with status {status}: see its message above"
            )
