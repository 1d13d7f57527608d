"""A child process that ends when its owner does: first asked, then made to."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

_GRACE_S = 20.0  # torchrun takes its time to end the workers


class Child:
    """A command whose output goes to a file. As a context manager it is over when the block is."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            # In a session of its own: Ctrl-C in the terminal reaches us alone, and we end children in order.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit status (negative: the signal that ended it), or None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Its exit status, once it has one."""
        return self._process.wait()

    def end(self) -> int:
        """Ask it to end, make it end when it does not; returns its exit status."""
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(_GRACE_S)
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def last_words(self, lines: int = 5) -> str:
        """The end of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
