"""Whether a process of this host is still the one that somebody meant: a pid alone may be used again."""

import os
import time
from pathlib import Path

# Clocks are set and slewed between two readings of a start time: no closer comparison holds.
START_TOLERANCE_NS = 2_000_000_000
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_HAS_PROC = Path("/proc/self/stat").exists()


def start_ns(pid: int) -> int | None:
    """When process `pid` of this host started, in ns since the epoch; None when that cannot be seen."""
    seen = _look(pid)
    return None if seen is None else time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + seen[1]


def is_alive(pid: int, started_ns: int | None = None, clocks: tuple[int, int] | None = None) -> bool:
    """Whether process `pid` of this host runs and started at `started_ns` (None: whenever).

    Args:
        clocks: the pair (wall, monotonic) that the process itself saw. With it, a wall clock that was set
            since then does not make the process look like another one.
    """
    if pid <= 0:
        return False
    if not _HAS_PROC:
        return _answers(pid)
    seen = _look(pid)
    if seen is None:
        return False
    state, since_boot_ns = seen
    if state in "ZX":  # it has ended, and only waits for its parent to hear of it: it writes no more
        return False
    if started_ns is None:
        return True
    now_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if abs(now_ns + since_boot_ns - started_ns) <= START_TOLERANCE_NS:
        return True
    return (
        clocks is not None and abs(since_boot_ns - (started_ns - clocks[0] + clocks[1])) <= START_TOLERANCE_NS
    )


def _look(pid: int) -> tuple[str, int] | None:
    """State, as the kernel's letter, and start in ns since boot, of a process; None when there is none."""
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(handle, 4096)
    except OSError:  # it ended meanwhile
        return None
    finally:
        os.close(handle)
    # Behind the command's closing parenthesis; the command may itself hold spaces and parentheses.
    fields = text.rpartition(b")")[2].split()
    return fields[0].decode(), int(fields[19]) * _TICK_NS


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it lives, and belongs to somebody else
    return True
