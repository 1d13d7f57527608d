"""Run any command as a child: what it does passes through, and how it ends is recorded."""

import functools
import os
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankscope.ingest.errors import UserError
from rankscope.ingest.launcher.exits import Exit
from rankscope.ingest.launcher.failures import record_exit
from rankscope.ingest.launcher.ranks import StrangerWatch
from rankscope.ingest.recorder import Recorder

_PASSED_ON = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)


def block_signals() -> None:
    """Keep signals for `supervise` to take. To be called before any thread is started."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON | {signal.SIGCHLD})


def supervise(command: Sequence[str], recorder: Recorder, spool: Path) -> int:
    """Run `command` to its end, handing on signals; returns its exit status, 128 + n for signal n.

    Raises:
        UserError: there is no such command.
    """
    identity = recorder.identity
    strangers = StrangerWatch(
        spool / identity.run_id, identity.launch_id, functools.partial(_stranger_left, recorder)
    )
    program = shutil.which(command[0])
    if program is None:
        raise UserError(f"there is no command {command[0]!r} to run: give its path, or see $PATH", status=127)
    pid = os.posix_spawn(
        program, list(command), os.environ, setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
    )
    strangers.start()
    while True:
        info = signal.sigwaitinfo(_PASSED_ON | {signal.SIGCHLD})
        if info.si_signo != signal.SIGCHLD:
            # What the terminal sends, it sends to the child as well; what a process sent to us, it did not.
            if info.si_code <= 0:
                os.kill(pid, info.si_signo)
            continue
        now = time.time_ns()
        done = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        if done is None:
            continue
        code = done.si_status if done.si_code == os.CLD_EXITED else -done.si_status
        strangers.stop()
        rank = strangers.ranks.get(pid, {}).get("rank")
        record_exit(recorder, Exit(pid, now, code), rank=rank)
        return code if code >= 0 else 128 - code


def _stranger_left(recorder: Recorder, identity: dict[str, Any], exit_: Exit) -> None:
    """A rank ended that something else had started: when is known, how is not."""
    record_exit(recorder, exit_, rank=identity["rank"], restart_count=identity["restart_count"])
