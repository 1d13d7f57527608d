"""Kill one rank of a training at a set step, from outside of it, once.

    kill = KillRank(launcher_pid, rank=2, step=90, progress=out / "progress.jsonl", truth=out / "truth.json")
    kill.start()

The trainer does not know; nothing that judges the run reads the truth. Needs Linux' /proc.
"""

import json
import os
import signal
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rankscope.sample_data.progress import last_progress

_POLL_S = 0.01


@dataclass(frozen=True)
class Truth:
    """What was done to the run."""

    run: str
    rank: int
    pid: int
    kind: str  # 'sigkill'
    step: int  # in flight when the signal was sent, as far as rank 0 had told
    time_ns: int  # wall clock, when the signal was sent


class KillRank(threading.Thread):
    """Waits for a step, sends SIGKILL to one rank, writes the truth; `truth` is not None then."""

    def __init__(
        self, launcher_pid: int, *, run: str, rank: int, step: int, progress: Path, truth: Path
    ) -> None:
        super().__init__(name="fault-injector", daemon=True)
        self.launcher_pid = launcher_pid
        self.run_id = run
        self.rank = rank
        self.step = step
        self.progress = progress
        self.truth_path = truth
        self.truth: Truth | None = None
        self._given_up = threading.Event()

    def stop(self) -> None:
        """Give up, if it has not happened yet."""
        self._given_up.set()

    def run(self) -> None:
        """Not for callers: see `start`."""
        while not self._given_up.wait(_POLL_S):
            now = last_progress(self.progress)
            if now is None or now.step < self.step:
                continue
            pid = find_rank(self.launcher_pid, self.rank)
            if pid is None:
                continue
            time_ns = time.time_ns()
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it was on its way out by itself: wait for its next life
            self.truth = Truth(self.run_id, self.rank, pid, "sigkill", now.step, time_ns)
            self.truth_path.write_text(json.dumps(asdict(self.truth)) + "\n")
            return


def find_rank(launcher_pid: int, rank: int) -> int | None:
    """The process of `rank` among the descendants of a launcher, or None while there is none."""
    parents = _parents()
    for pid in sorted(parents):
        if _descends(pid, launcher_pid, parents) and _rank_of(pid) == rank and _rank_of(parents[pid]) != rank:
            return pid  # and not a worker of a data loader, which inherits its environment
    return None


def _parents() -> dict[int, int]:
    """Parent of each process of this machine."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it ended in between
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return parents


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor


def _rank_of(pid: int) -> int | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    for entry in environment.split(b"\0"):
        if entry.startswith(b"RANK="):
            return int(entry[5:])
    return None
