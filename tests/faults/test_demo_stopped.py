"""Ctrl-C in the middle of a demo ends all that it started."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.training
PATIENCE_S = 300


def test_nothing_is_left_running(tmp_path: Path, rankscope_command: list[str]) -> None:
    command = [*rankscope_command, "demo", "--quick", "--run", "cut", "--store", "runs.duckdb"]
    with (tmp_path / "output.txt").open("w") as output:
        demo = subprocess.Popen(command, cwd=tmp_path, stdout=output, stderr=output)
    ranks_record = tmp_path / "runs.spool" / "cut"
    deadline = time.monotonic() + PATIENCE_S
    while len(list(ranks_record.glob("*.seg"))) < 5:  # the launcher and four ranks
        assert demo.poll() is None, (tmp_path / "output.txt").read_text()
        assert time.monotonic() < deadline, (tmp_path / "output.txt").read_text()
        time.sleep(0.05)
    started = running_in(tmp_path) - {demo.pid}
    assert len(started) >= 5
    demo.send_signal(signal.SIGINT)
    assert demo.wait(PATIENCE_S) == 1
    assert running_in(tmp_path) == set()
    assert (tmp_path / "output.txt").read_text().splitlines()[-1] == "stopped"
    assert not (tmp_path / "runs.duckdb.owner").exists()


def running_in(folder: Path) -> set[int]:
    """Processes whose working directory is `folder`."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").readlink() == folder:
                    found.add(int(entry.name))
            except OSError:
                continue  # it ended in between, or is a zombie
    return found
