"""Run a script for real under `rankscope run`, and read what was recorded of it from a store."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankscope.ingest.collector import Collector
from rankscope.ingest.store import Store

# torch 2.13: without it, a restarted worker may read the addresses of the attempt before from the store. With
# it, the store's port is chosen before it is bound, and may be taken meanwhile: so only where needed.
OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
RANKSCOPE = (sys.executable, "-m", "rankscope.app.cli")


class Launched:
    """A finished run of its own, collected into a store."""

    def __init__(self, folder: Path, done: "subprocess.CompletedProcess[str]") -> None:
        self.status = done.returncode
        self.output = done.stdout + done.stderr
        self.store = Store.open(str(folder / "runs.duckdb"))
        collector = Collector(self.store, folder / "spool")
        while collector.run_once().more:
            pass

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows of a SELECT."""
        return self.store.rows(sql)

    def value(self, sql: str) -> Any:
        """The one value of a SELECT."""
        (row,) = self.store.rows(sql)
        (value,) = row.values()
        return value


def run_recorded(
    folder: Path, *command: str, environment: Mapping[str, str] | None = None, timeout_s: float = 120
) -> Launched:
    """Run `command` under `rankscope run` in `folder`."""
    return Launched(
        folder, run_plain(folder, *RANKSCOPE, "run", "--run", "it", "--spool", "spool", "--", *command,
                          environment=environment, timeout_s=timeout_s)
    )  # fmt: skip


def run_plain(
    folder: Path, *command: str, environment: Mapping[str, str] | None = None, timeout_s: float = 120
) -> "subprocess.CompletedProcess[str]":
    """Run `command` in `folder`, without this process' own RANKSCOPE settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    fixed = {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, env=inherited | fixed | dict(environment or {}), capture_output=True, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip


def torchrun(script: str, *, ranks: int = 2, restarts: int = 0) -> list[str]:
    """The command that starts `script` on `ranks` ranks of this machine."""
    return [
        TORCHRUN, "--standalone", "--nproc-per-node", str(ranks), "--max-restarts", str(restarts),
        "--monitor-interval", "0.1", script,
    ]  # fmt: skip
