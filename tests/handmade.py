"""Segments written by hand, byte by byte, apart from the recorder's own writer: also broken ones.

writer = HandWriter(spool, rank=0)
writer.span("step", step=3, flags=Flag.COMMITTED)
writer.close()
"""

import json
import os
import socket
import struct
import time
from io import BufferedRandom
from pathlib import Path
from typing import Any

from rankscope.ingest.collector import Collector
from rankscope.ingest.layout import (
    CHUNK,
    CHUNK_BYTES,
    CLOSED_OFFSET,
    DROPPED_OFFSET,
    HEADER,
    MAGIC,
    NO_STEP,
    PAGE,
    RECORD,
    RECORD_SIZE,
    SLOTS,
    Kind,
)
from rankscope.ingest.store import Store

WALL_NS = 1_700_000_000_000_000_000
MONO_NS = 5_000_000_000
NO_PID = 4_194_305  # beyond the kernel's largest: a process that is gone


class HandWriter:
    """Writes one stream; `pid` says whose: by default that of a process that is gone."""

    def __init__(
        self,
        spool: Path,
        *,
        run: str = "run",
        rank: int = 0,
        pid: int | None = None,
        start_ns: int = WALL_NS - 1_000_000_000,
        wall_ns: int = WALL_NS,
        mono_ns: int = MONO_NS,
        host: str | None = None,
        **identity: Any,
    ) -> None:
        self.host = host or socket.gethostname()
        self.pid = pid if pid is not None else NO_PID + rank
        self.clocks = (wall_ns, mono_ns)
        self.identity: dict[str, Any] = {
            "run_id": run, "launch_id": "L", "restart_count": 0, "rank": rank, "world_size": 4,
            "local_rank": rank, "host": self.host, "pid": self.pid, "start_ns": start_ns, "incarnation": 0,
            "replica_group": None, "mesh": None, "role": "rank" if rank >= 0 else "launcher",
            "command": "train.py", "python": "3.11.7",
        } | identity  # fmt: skip
        self.folder = spool / run
        self.stem = f"{self.host}-{self.pid}-{start_ns}"
        self.stream = f"{run}/{self.stem}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.slot = 0
        self._strings = [""]
        self._blobs = 0
        self._sizes: dict[int, int] = {}
        self._files: dict[int, BufferedRandom] = {}

    def path(self, index: int = 0) -> Path:
        return self.folder / f"{self.stem}.{index}.seg"

    def make(self, index: int) -> None:
        """Make a file, as recorders do, before it is needed."""
        described = json.dumps({"identity": self.identity, "strings": self._strings}).encode()
        size = self._sizes[index] = -(-(HEADER.size + len(described)) // PAGE) * PAGE
        head = HEADER.pack(
            MAGIC, RECORD_SIZE, 0, size, index, SLOTS, index * SLOTS, *self.clocks, 0, self.pid,
            len(described),
        )  # fmt: skip
        self._file(index).truncate(size + SLOTS * RECORD_SIZE)
        self.poke(index, 0, head + described)

    def put(self, body: bytes, *, slot: int | None = None, marker: int | None = None) -> int:
        """Publish 64 bytes in the next slot (or in `slot`); returns the slot."""
        if slot is None:
            slot = self.slot
            self.slot += 1
        index = slot // SLOTS
        if index not in self._sizes:
            self.make(index)
        if marker is None:
            marker = (slot + 1) & 0xFFFFFFFF
        self.poke(
            index,
            self._sizes[index] + slot % SLOTS * RECORD_SIZE,
            body[: RECORD_SIZE - 4] + struct.pack("<I", marker),
        )
        return slot

    def poke(self, index: int, at: int, data: bytes) -> None:
        """Overwrite bytes of a file."""
        os.pwrite(self._file(index).fileno(), data, at)

    def _file(self, index: int) -> BufferedRandom:
        if index not in self._files:
            self._files[index] = self.path(index).open("r+b" if self.path(index).exists() else "w+b")
        return self._files[index]

    def at(self, slot: int) -> int:
        """Where a slot's record begins in its file."""
        return self._sizes[slot // SLOTS] + slot % SLOTS * RECORD_SIZE

    def skip(self, count: int = 1) -> int:
        """Claim slots and never publish them; returns the first."""
        first = self.slot
        self.slot += count
        return first

    def blob(self, kind: Kind, number: int, data: bytes, chunks: slice = slice(None)) -> None:
        """Write a text; `chunks` leaves some of it out."""
        pieces = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)] or [b""]
        for index, piece in list(enumerate(pieces))[chunks]:
            self.put(CHUNK.pack(number, index, len(pieces), piece, len(piece), kind, 0, 0))

    def intern(self, text: str) -> int:
        if text in self._strings:
            return self._strings.index(text)
        self._strings.append(text)
        self.blob(Kind.STRING, len(self._strings) - 1, text.encode())
        return len(self._strings) - 1

    def record(
        self, kind: int, t: int, *, a: int = 0, b: int = 0, c: int = 0, d: int = 0, name: str = "",
        pg: str = "", step: int = NO_STEP, attr: str | int = "", tag: int = 0, flags: int = 0,
    ) -> int:  # fmt: skip
        numbers = self.intern(name), self.intern(pg)
        attribute = attr if isinstance(attr, int) else self.intern(attr)
        return self.put(RECORD.pack(t, a, b, c, d, *numbers, step, attribute, tag, kind, flags, 0))

    def begin(
        self, category: str, *, t: int = MONO_NS, name: str = "", step: int = NO_STEP, attr: str = ""
    ) -> int:
        return self.record(Kind.SPAN_BEGIN, t, name=name, pg=category, step=step, attr=attr)

    def end(
        self, begun: int, category: str, *, t: int, begin: int, name: str = "", step: int = NO_STEP,
        attr: str = "", flags: int = 0,
    ) -> int:  # fmt: skip
        return self.record(
            Kind.SPAN_END, t, a=begin, b=begun, name=name, pg=category, step=step, attr=attr, flags=flags
        )

    def span(
        self, category: str, *, t: int = MONO_NS, duration: int = 1000, name: str = "", step: int = NO_STEP,
        attr: str = "", flags: int = 0,
    ) -> int:  # fmt: skip
        begun = self.begin(category, t=t, name=name, step=step, attr=attr)
        return self.end(
            begun, category, t=t + duration, begin=t, name=name, step=step, attr=attr, flags=flags
        )

    def scalar(self, value: float, *, step: int = NO_STEP, t: int = MONO_NS, name: str = "loss") -> int:
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        return self.record(Kind.SCALAR, t, a=bits, name=name, step=step)

    def event(self, **described: Any) -> None:
        self.blob(Kind.EVENT, self._blobs, json.dumps(described).encode())
        self._blobs += 1

    def drop(self, count: int) -> None:
        """Say that records were dropped."""
        self.poke(max(self._sizes), DROPPED_OFFSET, count.to_bytes(8, "little"))

    def close(self) -> None:
        for index in self._sizes:
            if self.path(index).exists():
                self.poke(index, CLOSED_OFFSET, b"\x01")


def living(spool: Path, **identity: Any) -> HandWriter:
    """A writer whose process is this one, so that a collector waits for more of it."""
    return HandWriter(spool, pid=os.getpid(), start_ns=_own_start_ns(), **identity)


def _own_start_ns() -> int:
    from rankscope.ingest.processes import start_ns

    found = start_ns(os.getpid())
    return found if found is not None else time.time_ns()


def collect(store: Store, spool: Path) -> list[str]:
    """Collect what is there; returns the lines about problems."""
    said: list[str] = []
    with Collector(store, spool, say=said.append) as collector:
        collector.catch_up()
    return said
