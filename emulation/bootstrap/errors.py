"""Why a bootstrap failed, and because of which rank."""

from enum import IntEnum


class Reason(IntEnum):
    """What is wrong with the culprit; travels in abort messages."""

    MISSING = 1  # published no address, or never came
    UNREACHABLE = 2  # published an address where it does not answer
    GONE = 3  # its connection closed
    SILENT = 4  # connected, and then said nothing for too long
    LIED = 5  # is not who it says, or sent what cannot be
    STORE = 6  # not a rank: the store does not answer


class BootstrapError(RuntimeError):
    """A bootstrap that cannot go on.

    `culprit` is the rank that is to blame (None: none, the store), `seen_by` the rank that noticed first,
    `rank` the one that raises; `phase` is where this one was.
    """

    def __init__(
        self,
        rank: int,
        phase: str,
        reason: Reason,
        culprit: int | None,
        what: str,
        *,
        seen_by: int | None = None,
    ) -> None:
        self.rank, self.phase, self.reason, self.culprit = rank, phase, reason, culprit
        self.seen_by = rank if seen_by is None else seen_by
        super().__init__(f"rank {rank} in {phase}: {what}")


_WORDS = {
    Reason.MISSING: "is missing: it published no address or never connected",
    Reason.UNREACHABLE: "does not answer at the address it published",
    Reason.GONE: "closed its connection: it died or gave up",
    Reason.SILENT: "is connected and silent",
    Reason.LIED: "is not what it says it is",
    Reason.STORE: "cannot reach the store",
}


def told(rank: int, phase: str, reason: int, culprit: int, seen_by: int) -> BootstrapError:
    """The error at a rank that heard of the culprit from its neighbour."""
    known = Reason(reason) if reason in Reason._value2member_map_ else Reason.LIED
    what = f"rank {culprit} {_WORDS[known]} (seen by rank {seen_by})"
    return BootstrapError(rank, phase, known, culprit, what, seen_by=seen_by)
