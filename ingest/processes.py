"""Whether a process of this host is still the one that somebody meant: a pid alone may be used again."""

import os
import time
from pathlib import Path

# The kernel counts start times in ticks since boot, and the boot time in seconds: no closer comparison holds.
START_TOLERANCE_NS = 2_000_000_000


def start_ns(pid: int) -> int | None:
    """When process `pid` of this host started, in ns since the epoch; None when that cannot be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    except (OSError, StopIteration):
        return None
    # Behind the command's closing parenthesis, which may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return int(boot.split()[1]) * 1_000_000_000 + int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def is_alive(pid: int, started_ns: int | None = None, clocks: tuple[int, int] | None = None) -> bool:
    """Whether process `pid` of this host runs and started at `started_ns` (None: whenever).

    Args:
        clocks: the pair (wall, monotonic) that the process itself saw. With it, a wall clock that was set
            since then does not make the process look like another one.
    """
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it lives, and belongs to somebody else
    if _is_zombie(pid):
        return False
    seen = start_ns(pid)
    if started_ns is None or seen is None or abs(seen - started_ns) <= START_TOLERANCE_NS:
        return True
    if clocks is None:
        return False
    since_boot = started_ns - clocks[0] + clocks[1]
    seen_since_boot = seen - time.time_ns() + time.monotonic_ns()
    return abs(seen_since_boot - since_boot) <= START_TOLERANCE_NS


def _is_zombie(pid: int) -> bool:
    """A zombie has ended and only waits for its parent to hear of it: it writes no more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")
