"""The folder where this host's processes leave segments: `<spool>/<run>/<host>-<pid>-<start>.<k>.seg`."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from rankscope.ingest.store import default_url

_SEGMENT = re.compile(r"(?P<stem>.+)\.(?P<index>\d{1,10})\.seg")


@dataclass(frozen=True)
class SegmentName:
    """What the name of a segment file says: the stream it belongs to, and its place there."""

    stream: str  # '<run>/<host>-<pid>-<start>'
    index: int


def spool_of(store_url: str | None = None) -> Path:
    """$RANKSCOPE_SPOOL, else the folder that belongs to the store: its path with .spool for .duckdb."""
    named = os.environ.get("RANKSCOPE_SPOOL")
    if named:
        return Path(named)
    url = store_url if store_url is not None else default_url()
    if url.startswith(("quack:", "ducklake:")):
        return Path("rankscope.spool")
    return Path(url.removesuffix(".duckdb") + ".spool")


def parse_segment_name(run: str, filename: str) -> SegmentName | None:
    """What `filename` in the run's folder says, or None when it is no segment's."""
    match = _SEGMENT.fullmatch(filename)
    return SegmentName(f"{run}/{match['stem']}", int(match["index"])) if match else None


def segment_path(spool: Path, stream: str, index: int) -> Path:
    """Where segment `index` of a stream lies."""
    return spool / f"{stream}.{index}.seg"
