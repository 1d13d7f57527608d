"""Ranks that this launcher did not start itself: found by the streams that they begin in the run's folder.

A shell script, mpirun or accelerate start processes of their own. Nobody but their parent can learn their
exit code, but when they end, anybody can see.
"""

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rankscope.ingest.launcher.exits import Exit, ExitWatch
from rankscope.ingest.layout import HEADER, MAGIC

_PERIOD_S: Final = 0.25

Identity = dict[str, Any]


def read_identity(path: Path) -> Identity | None:
    """What the writer of a segment says of itself; None while its header is not whole."""
    try:
        with path.open("rb") as file:
            head = file.read(HEADER.size)
            if len(head) < HEADER.size or head[: len(MAGIC)] != MAGIC:
                return None
            identity: Identity = json.loads(file.read(HEADER.unpack(head)[-1]))["identity"]
    except (OSError, ValueError, KeyError):
        return None
    return identity


class StrangerWatch:
    """Tells when ranks of this host and launch end that are not watched by a launcher of their own."""

    def __init__(self, folder: Path, launch_id: str, on_exit: Callable[[Identity, Exit], None]) -> None:
        self.ranks: dict[int, Identity] = {}  # by pid
        self._folder = folder
        self._launch_id = launch_id
        self._exits: ExitWatch[Identity] = ExitWatch(on_exit)
        self._launchers = {os.getpid()}
        self._seen: set[str] = set()
        self._stop = threading.Event()
        self._looked_ns = 0
        self._thread = threading.Thread(target=self._run, name="rankscope-ranks", daemon=True)

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Look once more, and report what has ended up to now."""
        self._stop.set()
        self._thread.join()
        self._look()
        self._exits.stop()

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            self._look()

    def _look(self) -> None:
        try:
            modified_ns = self._folder.stat().st_mtime_ns
            if modified_ns == self._looked_ns:
                return
            paths = [Path(entry) for entry in os.scandir(self._folder) if entry.name.endswith(".0.seg")]
        except OSError:
            return  # nobody has recorded yet
        whole = True
        for path in paths:
            if path.name not in self._seen:
                identity = read_identity(path)
                if identity is None:
                    whole = False
                    continue
                self._seen.add(path.name)
                self._meet(identity)
        if whole:
            self._looked_ns = modified_ns

    def _meet(self, identity: Identity) -> None:
        if identity["host"] != socket.gethostname() or identity["launch_id"] != self._launch_id:
            return
        pid = int(identity["pid"])
        if identity["role"] == "launcher":
            self._launchers.add(pid)
        elif identity["role"] == "rank":
            self.ranks[pid] = identity
            if _parent_of(pid) not in self._launchers:
                self._exits.add(pid, identity, None)


def _parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
