"""When and how worker processes end, to the millisecond, without reaping them from whoever started them.

    watch = ExitWatch(on_exit)
    watch.add(pid, worker, returncode)        # on_exit(worker, Exit) will be called once, from a thread

A pidfd wakes the thread the moment a process ends; waitid with WNOWAIT reads its status and leaves it to be
reaped. If its parent was quicker, the status that the parent got is used.
"""

import contextlib
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

W = TypeVar("W")
_STATUS_ATTEMPTS: Final = 200
_STATUS_PAUSE_S: Final = 0.005


@dataclass(frozen=True)
class Exit:
    """How a process ended; `code` is negative for a signal, None when nobody knows."""

    pid: int
    time_ns: int
    code: int | None

    def __str__(self) -> str:
        if self.code is None:
            return "ended"
        return (
            f"was killed by {signal_name(-self.code)}" if self.code < 0 else f"exited with code {self.code}"
        )


def signal_name(number: int) -> str:
    """'SIGKILL' for 9."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def status_of(pid: int) -> int | None:
    """Exit code of an ended child that nobody has reaped yet, negative for a signal; else None."""
    try:
        info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return None
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


class ExitWatch(Generic[W]):
    """Watches processes of this host from a thread of its own. Raises OSError on Linux before 5.3."""

    def __init__(self, on_exit: Callable[[W, Exit], None]) -> None:
        self._on_exit = on_exit
        self._selector = selectors.DefaultSelector()
        self._wake_r, self._wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake_r, selectors.EVENT_READ)
        self._stopping = False
        os.close(os.pidfd_open(os.getpid()))
        self._thread = threading.Thread(target=self._watch, name="rankscope-exits", daemon=True)
        self._thread.start()

    def add(self, pid: int, worker: W, returncode: Callable[[], int | None] | None) -> None:
        """Watch a process.

        Args:
            returncode: for a child, what its parent object knows, for when that reaped it first. None: it
                is no child of ours, and its exit code cannot be known.
        """
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:  # it ended, and was reaped, before we looked
            self._on_exit(worker, Exit(pid, time.time_ns(), returncode() if returncode else None))
            return
        self._selector.register(fd, selectors.EVENT_READ, (pid, worker, returncode))

    def stop(self, timeout_s: float = 5.0) -> None:
        """Report what has ended up to now, then end the thread."""
        self._stopping = True
        os.write(self._wake_w, b"x")
        self._thread.join(timeout_s)

    def _watch(self) -> None:
        while True:
            ready = self._selector.select(0 if self._stopping else None)
            now = time.time_ns()
            for key, _ in ready:
                if key.fd == self._wake_r:
                    os.read(self._wake_r, 4096)
                    continue
                self._selector.unregister(key.fd)
                pid, worker, returncode = key.data
                code = _code_of(pid, returncode) if returncode is not None else None
                os.close(key.fd)
                self._on_exit(worker, Exit(pid, now, code))
            if self._stopping and not ready:
                return


def _code_of(pid: int, returncode: Callable[[], int | None]) -> int | None:
    for _ in range(_STATUS_ATTEMPTS):
        code = status_of(pid)
        if code is None:
            code = returncode()
        if code is not None:
            return code
        time.sleep(_STATUS_PAUSE_S)  # reaped this very moment: its parent is about to write the status down
    return None
