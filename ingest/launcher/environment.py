"""The environment in which all processes of a run are started."""

import os
import socket
import time
from collections.abc import Mapping, MutableMapping
from pathlib import Path

import rankscope
from rankscope.ingest import boot

_BOOT = str(Path(boot.__file__).absolute().parent)


def launch_id(environment: Mapping[str, str]) -> str:
    """One id for all restarts of this launch: the scheduler's, where there is one."""
    known = environment.get("RANKSCOPE_LAUNCH_ID")
    if known:
        return known
    job = environment.get("SLURM_JOB_ID")
    if job:
        return f"{job}.{environment.get('SLURM_RESTART_COUNT', '0')}"
    return f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"


def prepare(environment: MutableMapping[str, str], run: str, spool: Path) -> None:
    """Make every Python that inherits `environment` record itself as part of `run`."""
    environment["RANKSCOPE_RUN"] = run
    environment["RANKSCOPE_LAUNCH_ID"] = launch_id(environment)
    environment["RANKSCOPE_SPOOL"] = str(spool.absolute())
    environment["RANKSCOPE_PACKAGE"] = str(Path(rankscope.__file__).absolute().parent)
    environment.pop("RANKSCOPE_PID", None)  # a run started by a rank is a run of its own
    path = [_BOOT, *(p for p in environment.get("PYTHONPATH", "").split(os.pathsep) if p and p != _BOOT)]
    environment["PYTHONPATH"] = os.pathsep.join(path)
