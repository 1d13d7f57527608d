"""Who this process is: its run, launch, attempt, rank and host, from its environment."""

import os
import re
import sys
import time
from pathlib import Path
from typing import Any, TypeVar


class Identity:
    """What the header of every segment says of its writer."""

    # No dataclass: making one loads more than all the rest of the recorder.
    def __init__(self, run_id: str, launch_id: str, host: str, start_ns: int) -> None:
        self.run_id = run_id
        self.launch_id = launch_id
        self.restart_count = 0
        self.rank = 0  # -1: not a rank
        self.world_size: int | None = 1
        self.local_rank: int | None = None
        self.host = host
        self.pid = os.getpid()
        self.start_ns = start_ns  # the kernel's start time of the process, wall clock
        self.incarnation = 0
        self.replica_group: int | None = None
        self.mesh: dict[str, int] | None = None
        self.role = "rank"
        self.command = " ".join(getattr(sys, "orig_argv", sys.argv))
        self.python = sys.version.split()[0]

    @classmethod
    def of_this_process(cls, run: str | None = None, **overrides: Any) -> "Identity":
        """Read the environment; `overrides` are fields whose value is known better."""
        env = os.environ
        start_ns = process_start_ns()
        host = str(overrides.get("host") or os.uname().nodename)
        found = cls(
            safe_name(run or env.get("RANKSCOPE_RUN") or new_run_id(host, start_ns)),
            env.get("RANKSCOPE_LAUNCH_ID") or _slurm_launch() or f"{host}-{os.getppid()}",
            host,
            start_ns,
        )
        found.rank = _integer(env.get("RANK"), 0)
        found.world_size = _integer(env.get("WORLD_SIZE"), 1)
        found.local_rank = _integer(env.get("LOCAL_RANK"), None)
        found.restart_count = _integer(env.get("TORCHELASTIC_RESTART_COUNT"), 0)
        found.replica_group = _integer(env.get("REPLICA_GROUP_ID"), None)
        for name, value in overrides.items():
            if not hasattr(found, name):
                raise TypeError(f"rankscope.init() has no parameter {name!r}")
            setattr(found, name, value)
        return found

    @property
    def stem(self) -> str:
        """Name of this process' segment files, without index and ending."""
        return f"{safe_name(self.host)}-{self.pid}-{self.start_ns}"

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def new_run_id(host: str, now_ns: int | None = None) -> str:
    """A run's name made from time and host: '20261201-154502-node3'."""
    now = time.gmtime((now_ns or time.time_ns()) / 1e9)
    return safe_name(f"{time.strftime('%Y%m%d-%H%M%S', now)}-{host}")


def safe_name(name: str) -> str:
    """`name` as one plain path component."""
    plain = re.sub(r"[^\w.+@=-]+", "_", name).lstrip(".")
    return plain[:120] or "_"


def process_start_ns() -> int:
    """When the kernel started this process, ns since the epoch (to 10 ms); now where that cannot be read."""
    try:
        stat = Path("/proc/self/stat").read_text()
        ticks = int(stat.rpartition(")")[2].split()[19])
        since_boot_ns = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return time.time_ns() - (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - since_boot_ns)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time_ns()


def _slurm_launch() -> str | None:
    job = os.environ.get("SLURM_JOB_ID")
    return f"{job}.{os.environ.get('SLURM_RESTART_COUNT', '0')}" if job else None


N = TypeVar("N", int, None)


def _integer(text: str | None, otherwise: N) -> int | N:
    try:
        return int(text) if text else otherwise
    except ValueError:
        return otherwise
