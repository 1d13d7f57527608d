"""Which rank a process of this host said it is, from the segment that it wrote."""

import json
from pathlib import Path

from rankscope.ingest.layout import HEADER, MAGIC


def rank_of(folder: Path, pid: int) -> int | None:
    """The rank of process `pid` by its latest stream in a run's folder; None when it recorded nothing."""
    found = sorted(folder.glob(f"*-{pid}-*.seg"), key=lambda path: path.stat().st_mtime_ns)
    for path in reversed(found):
        with path.open("rb") as file:
            head = file.read(HEADER.size)
            if len(head) < HEADER.size or head[: len(MAGIC)] != MAGIC:
                continue
            described = json.loads(file.read(HEADER.unpack(head)[-1]))
        identity = described["identity"]
        if identity["pid"] == pid and identity["role"] == "rank":
            return int(identity["rank"])
    return None
