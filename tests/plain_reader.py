"""What a stream says, read in plain Python from layout.py alone: slow, and nothing of the collector's.

stream = read_stream(next(spool.glob("run/*.0.seg")))
stream.of(Kind.SCALAR)[0].name
"""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankscope.ingest.layout import CHUNK, HEADER, MAGIC, MARKER_OFFSET, RECORD, RECORD_SIZE, SLOTS, Kind


@dataclass(frozen=True)
class Plain:
    """One record, its texts by name."""

    slot: int
    kind: int
    t: int
    a: int
    b: int
    c: int
    d: int
    name: str
    pg: str
    step: int
    attr: str
    attr_id: int
    tag: int
    flags: int

    @property
    def value(self) -> float:
        found: float = struct.unpack("<d", struct.pack("<q", self.a))[0]
        return found


@dataclass
class PlainStream:
    """All published records of a stream."""

    identity: dict[str, Any] = field(default_factory=dict)
    records: list[Plain] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    strings: dict[int, str] = field(default_factory=dict)
    holes: list[int] = field(default_factory=list)  # slots before the last record that were not published
    dropped: int = 0
    closed: bool = False

    def of(self, *kinds: Kind) -> list[Plain]:
        return [record for record in self.records if record.kind in kinds]


def read_stream(first: Path) -> PlainStream:
    """Read a stream by the path of its file 0, or of any file from which reading is to begin."""
    stem, index, _ = first.name.rsplit(".", 2)
    stream = PlainStream()
    bodies: dict[int, bytes] = {}
    number = int(index)
    while True:
        path = first.with_name(f"{stem}.{number}.seg")
        if not path.exists():
            break
        data = path.read_bytes()
        magic, size, closed, header, _, slots, base, _, _, dropped, _, length = HEADER.unpack_from(data)
        stream.closed = bool(closed)
        stream.dropped = max(stream.dropped, dropped)
        if magic != MAGIC:
            break  # made for later use
        assert (size, slots, base) == (RECORD_SIZE, SLOTS, number * SLOTS)
        assert len(data) == header + SLOTS * RECORD_SIZE
        described = json.loads(data[HEADER.size : HEADER.size + length])
        stream.identity = described["identity"]
        stream.strings |= dict(enumerate(described["strings"]))
        for place in range(SLOTS):
            body = data[header + place * RECORD_SIZE : header + (place + 1) * RECORD_SIZE]
            slot = base + place
            if body[MARKER_OFFSET:] == ((slot + 1) & 0xFFFFFFFF).to_bytes(4, "little"):
                bodies[slot] = body
        number += 1
    _texts(stream, bodies)
    for slot, body in bodies.items():
        t, a, b, c, d, name, pg, step, attr, tag, kind, flags, _ = RECORD.unpack(body)
        if kind in (0, Kind.STRING, Kind.EVENT):
            continue
        text = stream.strings
        known = "" if kind in (Kind.COLL_ROLLUP, Kind.COLL_ROLLUP2) else text[attr]
        stream.records.append(
            Plain(slot, kind, t, a, b, c, d, text[name], text[pg], step, known, attr, tag, flags)
        )
    if bodies:
        begin = int(index) * SLOTS
        stream.holes = [slot for slot in range(begin, max(bodies)) if slot not in bodies]
    return stream


def _texts(stream: PlainStream, bodies: dict[int, bytes]) -> None:
    parts: dict[tuple[int, int], dict[int, bytes]] = {}
    for body in bodies.values():
        number, index, count, payload, length, kind, _, _ = CHUNK.unpack(body)
        if kind not in (Kind.STRING, Kind.EVENT):
            continue
        part = parts.setdefault((kind, number), {})
        part[index] = payload[:length]
        if len(part) == count:
            text = b"".join(part[place] for place in range(count)).decode()
            if kind == Kind.STRING:
                stream.strings[number] = text
            else:
                stream.events.append(json.loads(text))


def the_stream(spool: Path) -> PlainStream:
    """The one stream of a spool."""
    (first,) = spool.glob("*/*.0.seg")
    return read_stream(first)
