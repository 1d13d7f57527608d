"""The fault injector kills the rank that was meant, once, and says so."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankscope.sample_data.faults.kill import KillRank, find_rank
from rankscope.sample_data.progress import Progress, append_progress

# A launcher with two ranks; each has a child that inherits its environment, as a data loader's worker does.
LAUNCHER = """
import os, subprocess, sys
worker = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
ranks = [subprocess.Popen([sys.executable, "-c", worker], env={**os.environ, "RANK": str(r)}) for r in (0, 1)]
print(*[rank.pid for rank in ranks], flush=True)
sys.exit(ranks[1].wait() and 7)
"""


@pytest.fixture
def launcher() -> Iterator[tuple[int, list[int]]]:
    """Its process, and those of its ranks."""
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    ranks = [int(pid) for pid in process.stdout.readline().split()]
    yield process.pid, ranks
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_finds_the_rank_and_not_its_child(launcher: tuple[int, list[int]]) -> None:
    pid, ranks = launcher
    deadline = time.monotonic() + 20
    while _children(ranks[1]) == [] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _children(ranks[1]), "the rank has a child with the same RANK"
    assert [find_rank(pid, rank) for rank in (0, 1, 2)] == [*ranks, None]


def test_kills_at_the_step_and_writes_the_truth(launcher: tuple[int, list[int]], tmp_path: Path) -> None:
    pid, ranks = launcher
    progress, truth = tmp_path / "progress.jsonl", tmp_path / "truth.json"
    kill = KillRank(pid, run="r", rank=1, step=3, progress=progress, truth=truth)
    kill.start()
    append_progress(progress, Progress(2, 9, 1.0, 0))
    kill.join(0.2)
    assert kill.is_alive(), "not before its step"
    append_progress(progress, Progress(4, 9, 1.0, 0))
    kill.join(20)
    assert not kill.is_alive()
    written = json.loads(truth.read_text())
    assert (written["rank"], written["pid"], written["step"], written["kind"]) == (1, ranks[1], 4, "sigkill")


def test_can_be_given_up(launcher: tuple[int, list[int]], tmp_path: Path) -> None:
    pid, _ = launcher
    kill = KillRank(pid, run="r", rank=1, step=3, progress=tmp_path / "p", truth=tmp_path / "truth.json")
    kill.start()
    kill.stop()
    kill.join(20)
    assert not kill.is_alive()
    assert kill.truth is None
    assert not (tmp_path / "truth.json").exists()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
