"""Shared by several kinds of tests: one run that was really trained, and really lost a rank, per session."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_RANKSCOPE = (sys.executable, "-m", "rankscope.app.cli")
KILL_RANK = 1
DEMO_TIMEOUT_S = 900


@dataclass(frozen=True)
class DemoRun:
    """A finished `rankscope demo --quick`. Nobody has its store open: copy it rather than write to it."""

    run: str
    store: Path
    spool: Path
    folder: Path
    status: int
    output: str

    @property
    def truth(self) -> dict[str, Any]:
        """What the fault injector did: run, rank, pid, kind, step, time_ns."""
        found: dict[str, Any] = json.loads((self.folder / "truth.json").read_text())
        return found

    def copy_store(self, folder: Path) -> Path:
        """The store as a file of its own in `folder`."""
        return Path(shutil.copy(self.store, folder / self.store.name))


Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}


@pytest.fixture(scope="session")
def rankscope_command() -> list[str]:
    """What to type for `rankscope`."""
    return list(_RANKSCOPE)


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Run `rankscope ARGS...` in a process of its own, as a person would, without this process' settings."""
    elsewhere = tmp_path_factory.mktemp("cli")

    def run(*args: str | Path, timeout_s: float = 240) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*_RANKSCOPE, *map(str, args)],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=_environment(),
            cwd=elsewhere,
        )

    return run


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """A freshly trained run of 4 ranks in which rank 1 was killed with SIGKILL.

    Trained once a session: with pytest-xdist the first worker that needs it trains, the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    with _locked(base / "demo.lock"):
        note = base / "demo.json"
        if not note.exists():
            note.write_text(json.dumps(_train(base / "demo")))
        done = json.loads(note.read_text())
    if done["status"] != 0:
        pytest.fail(f"rankscope demo ended with status {done['status']}:\n{done['output']}")
    folder = base / "demo"
    return DemoRun(
        run="quick",
        store=folder / "runs.duckdb",
        spool=folder / "runs.spool",
        folder=folder / "runs.demo" / "quick",
        status=done["status"],
        output=done["output"],
    )


def _train(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    command = [*_RANKSCOPE, "demo", "--quick", "--run", "quick", "--kill-rank", str(KILL_RANK)]
    command += ["--store", str(folder / "runs.duckdb")]
    with (folder / "output.txt").open("w") as output:
        demo = subprocess.Popen(command, stdout=output, stderr=output, env=_environment())
        try:
            status = demo.wait(DEMO_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            demo.terminate()  # so that it ends its own children
            status = demo.wait() or -1
    told = (folder / "output.txt").read_text()
    for log in sorted((folder / "runs.demo" / "quick").glob("*.log")):
        told += f"\n--- {log.name}\n" + log.read_text(errors="replace")[-4000:]
    return {"status": status, "output": told}


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
