"""Who this process is: its run, launch, attempt, rank and host, from its environment."""

import os
import re
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Identity:
    """What the header of every segment says of its writer."""

    run_id: str
    launch_id: str
    restart_count: int
    rank: int  # -1: not a rank
    world_size: int | None
    local_rank: int | None
    host: str
    pid: int
    start_ns: int  # the kernel's start time of the process, wall clock
    incarnation: int = 0
    replica_group: int | None = None
    mesh: dict[str, int] | None = None
    role: str = "rank"
    command: str = ""
    python: str = field(default_factory=lambda: sys.version.split()[0])

    @classmethod
    def of_this_process(cls, run: str | None = None, **overrides: Any) -> "Identity":
        """Read the environment; `overrides` are fields whose value is known better."""
        env = os.environ
        start_ns = process_start_ns()
        host = overrides.get("host") or socket.gethostname()
        rank = _integer(env.get("RANK"))
        world_size = _integer(env.get("WORLD_SIZE"))
        found = cls(
            run_id=safe_name(run or env.get("RANKSCOPE_RUN") or new_run_id(host, start_ns)),
            launch_id=env.get("RANKSCOPE_LAUNCH_ID") or _slurm_launch() or f"{host}-{os.getppid()}",
            restart_count=_integer(env.get("TORCHELASTIC_RESTART_COUNT")) or 0,
            rank=rank if rank is not None else 0,
            world_size=world_size if world_size is not None else 1,
            local_rank=_integer(env.get("LOCAL_RANK")),
            host=host,
            pid=os.getpid(),
            start_ns=start_ns,
            replica_group=_integer(env.get("REPLICA_GROUP_ID")),
            command=" ".join(getattr(sys, "orig_argv", sys.argv)),
        )
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
        return asdict(self)


def new_run_id(host: str, now_ns: int | None = None) -> str:
    """A run's name made from time and host: '20261201-154502-node3'."""
    now = time.gmtime((now_ns or time.time_ns()) / 1e9)
    return safe_name(f"{time.strftime('%Y%m%d-%H%M%S', now)}-{host}")


def safe_name(name: str) -> str:
    """`name` as one plain path component."""
    plain = re.sub(r"[^\w.+@=-]+", "_", name).lstrip(".")
    return plain[:120] or "_"


def process_start_ns(pid: int | None = None) -> int:
    """When the kernel started a process, ns since the epoch (to 10 ms); now where that cannot be read."""
    try:
        stat = Path(f"/proc/{pid or 'self'}/stat").read_text()
        ticks = int(stat.rpartition(")")[2].split()[19])
        since_boot_ns = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return time.time_ns() - (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - since_boot_ns)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time_ns()


def _slurm_launch() -> str | None:
    job = os.environ.get("SLURM_JOB_ID")
    return f"{job}.{os.environ.get('SLURM_RESTART_COUNT', '0')}" if job else None


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        return None
