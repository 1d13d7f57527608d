"""The folder where this host's processes leave segments: `<spool>/<run>/<host>-<pid>-<start>.<k>.seg`."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from rankscope.ingest.places import spool_of

__all__ = ["SpoolScan", "StreamName", "has_segments", "parse_segment_name", "segment_path", "spool_of"]

_SEGMENT = re.compile(
    r"(?P<stem>(?P<host>.*)-(?P<pid>\d{1,10})-(?P<start>\d{1,19}))\.(?P<index>\d{1,9})\.seg"
)


@dataclass(frozen=True)
class StreamName:
    """What the names of a stream's files say about its process."""

    run: str
    stem: str  # '<host>-<pid>-<start>'
    host: str
    pid: int
    start_ns: int

    @property
    def stream(self) -> str:
        """The stream's identity: '<run>/<host>-<pid>-<start>'."""
        return f"{self.run}/{self.stem}"


def parse_segment_name(run: str, filename: str) -> tuple[StreamName, int] | None:
    """The stream and the place in it that a file in the folder of `run` has; None for other files."""
    match = _SEGMENT.fullmatch(filename)
    if match is None:
        return None
    name = StreamName(run, match["stem"], match["host"], int(match["pid"]), int(match["start"]))
    return name, int(match["index"])


def segment_path(spool: Path, stream: str, index: int) -> Path:
    """Where segment `index` of a stream lies."""
    return spool / f"{stream}.{index}.seg"


class SpoolScan:
    """Finds the segment files of a spool again and again, looking only into folders that changed."""

    def __init__(self, spool: Path) -> None:
        self.spool = spool
        self._looked: dict[str, tuple[int, int]] = {}  # run: (modified, when looked), ns

    def changed(self) -> list[tuple[StreamName, int]]:
        """Segments in folders that changed since the last call; all of them at first."""
        found: list[tuple[StreamName, int]] = []
        try:
            runs = [entry for entry in os.scandir(self.spool) if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return found
        for run in runs:
            now = time.time_ns()
            modified = run.stat(follow_symlinks=False).st_mtime_ns
            before = self._looked.get(run.name)
            # Two changes may carry one time stamp: what was young when looked at is looked at again.
            if before is not None and before[0] == modified and before[1] - modified > 1_000_000_000:
                continue
            self._looked[run.name] = (modified, now)
            for entry in os.scandir(run.path):
                named = parse_segment_name(run.name, entry.name)
                if named is not None:
                    found.append(named)
        return found


def has_segments(spool: Path) -> bool:
    """Whether anything waits in `spool`."""
    return bool(SpoolScan(spool).changed())
