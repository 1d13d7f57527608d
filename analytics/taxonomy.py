"""Names of what breaks, so that a run's failures stand beside the published ones.

    published().causes[0].share            # 0.353…, faulty GPU
    cause_of("out_of_memory")              # 'software_bug'

The names are those of the Llama 3 table; a failure that the table has no name for stays 'unknown'.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from rankscope.ingest.vocabulary import FailureKind

UNKNOWN = "unknown"
PLANNED = "planned"

# A kind says what was seen, a cause what broke: only kinds that leave no choice are mapped, and a time-out
# of a collective stands in the table under the watchdog that reported it.
_BY_KIND = {
    FailureKind.OUT_OF_MEMORY: "software_bug",
    FailureKind.EXCEPTION: "software_bug",
    FailureKind.TYPE_MISMATCH: "software_bug",
    FailureKind.SIZE_MISMATCH: "software_bug",
    FailureKind.DTYPE_MISMATCH: "software_bug",
    FailureKind.DATA: "software_bug",
    FailureKind.HANG: "nccl_watchdog",
    FailureKind.MISSING_RANK: "nccl_watchdog",
    FailureKind.NETWORK: "switch_cable",
    FailureKind.STORAGE: "dependency",
    FailureKind.STORE: "dependency",
    FailureKind.LAUNCHER: "dependency",
    FailureKind.COORDINATOR: "dependency",
    FailureKind.PLANNED: PLANNED,
}


@dataclass(frozen=True, slots=True)
class Cause:
    """One line of a failure table."""

    name: str
    title: str
    count: int
    share: float  # of the unexpected interruptions


@dataclass(frozen=True, slots=True)
class Published:
    """The Llama 3 table with what it rests on."""

    source: str
    days: float
    gpus: int
    interruptions: int
    planned: int
    unexpected: int
    causes: tuple[Cause, ...]


@cache
def published() -> Published:
    """The Llama 3 405B table (arXiv 2407.21783), counts as printed, shares computed from them."""
    data = tomllib.loads(files("rankscope.analytics").joinpath("data/llama3.toml").read_text())
    causes = tuple(
        Cause(row["name"], row["title"], row["count"], row["count"] / data["unexpected"])
        for row in data["cause"]
    )
    return Published(
        data["source"],
        data["days"],
        data["gpus"],
        data["interruptions"],
        data["planned"],
        data["unexpected"],
        causes,
    )


def cause_of(failure_kind: str, cause: str | None = None) -> str:
    """The table's name for a failure: its own `cause` where that is one, else what its kind implies.

    Raises:
        ValueError: failure_kind is not one of FailureKind.
    """
    kind = FailureKind(failure_kind)
    if cause in {known.name for known in published().causes}:
        return str(cause)
    return _BY_KIND.get(kind, UNKNOWN)


def table(failures: Iterable[tuple[str, str | None]]) -> list[Cause]:
    """(failure_kind, cause) of a run or many → lines as in the published table, most frequent first.

    Planned interruptions have a line and no share: shares are of the unexpected ones.
    """
    counts = Counter(cause_of(kind, cause) for kind, cause in failures)
    titles = {known.name: known.title for known in published().causes}
    unexpected = sum(count for name, count in counts.items() if name != PLANNED)

    def share(name: str, count: int) -> float:
        return 0.0 if name == PLANNED else count / unexpected

    return [
        Cause(name, titles.get(name, name.capitalize()), count, share(name, count))
        for name, count in counts.most_common()
    ]
