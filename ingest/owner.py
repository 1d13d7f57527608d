"""The small file beside a store that tells which process has it open, and where that process serves it.

Only one process may have a .duckdb file open while somebody writes. That process leaves `<store>.owner`, so
that every other one can find its endpoint and go through it instead of meeting a lock. The file holds the
endpoint's token, hence mode 0600.
"""

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from rankscope.ingest.processes import is_alive, start_ns


@dataclass(frozen=True)
class Owner:
    """Who has a store open. `uri` is None while it serves nobody: a short command that will soon be done."""

    pid: int
    start_ns: int | None  # of the process, since the epoch
    host: str
    uri: str | None  # 'quack:127.0.0.1:PORT'
    token: str | None
    socket: str | None = None  # where it answers questions that people typed

    @classmethod
    def this_process(
        cls, uri: str | None = None, token: str | None = None, socket_path: str | None = None
    ) -> "Owner":
        """The calling process as an owner."""
        return cls(os.getpid(), start_ns(os.getpid()), socket.gethostname(), uri, token, socket_path)

    @property
    def is_here(self) -> bool:
        """On this host, where its process can be looked up."""
        return self.host == socket.gethostname()

    @property
    def is_this_process(self) -> bool:
        return self.is_here and self.pid == os.getpid() and is_alive(self.pid, self.start_ns)


def owner_path(store: Path) -> Path:
    """Where the owner of the file `store` says so."""
    return store.with_name(store.name + ".owner")


def read_owner(store: Path) -> Owner | None:
    """The owner of `store`, or None. A file left behind by a process of this host that is gone is removed."""
    path = owner_path(store)
    try:
        fields = json.loads(path.read_text())
        owner = Owner(
            int(fields["pid"]), fields["start_ns"], str(fields["host"]), fields["uri"], fields["token"],
            fields["socket"],
        )  # fmt: skip
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)  # it was never whole: writers rename a finished file into place
        return None
    if owner.is_here and not is_alive(owner.pid, owner.start_ns):
        path.unlink(missing_ok=True)
        return None
    return owner


def write_owner(store: Path, owner: Owner) -> None:
    """Say that `owner` has `store` open."""
    path = owner_path(store)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(owner), file)
    draft.replace(path)


def remove_owner(store: Path) -> None:
    """Take the owner file away, if it is this process'."""
    owner = read_owner(store)
    if owner is not None and owner.is_this_process:
        owner_path(store).unlink(missing_ok=True)
