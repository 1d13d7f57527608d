"""A formed ring, as one rank holds it: a connection to the next rank and one from the previous."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rankscope.emulation.bootstrap.channel import Aborted, Channel, PeerGone, Silence
from rankscope.emulation.bootstrap.errors import BootstrapError, Reason, told
from rankscope.emulation.bootstrap.loop import Loop
from rankscope.emulation.counts import Counts


@dataclass
class Ring:
    """What form_ring gives; closes its connections at the end of a `with`.

    `phases_ns` are (name, begin, end) on CLOCK_MONOTONIC; `counts` the operations of this rank so far.
    """

    rank: int
    world: int
    next: Channel
    previous: Channel
    loop: Loop
    counts: Counts = field(default_factory=Counts)
    phases_ns: list[tuple[str, int, int]] = field(default_factory=list)

    def close(self) -> None:
        self.next.close()
        self.previous.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fail(self, phase: str, cause: PeerGone | Aborted | Silence) -> BootstrapError:
        """Find who is to blame, pass it on to both neighbours, close; returns the error to raise."""
        if isinstance(cause, Aborted):
            error = told(self.rank, phase, cause.reason, cause.culprit, cause.seen_by)
        elif isinstance(cause, PeerGone):
            error = self._blame(phase, Reason.GONE, cause.peer, "closed its connection: it died or gave up")
        else:
            error = self._blame(phase, Reason.SILENT, cause.peers[0], "is connected and silent")
        self.abort(error)
        return error

    def lied(self, phase: str, culprit: int, what: str) -> BootstrapError:
        """A neighbour sent what cannot be; passes it on, closes, returns the error to raise."""
        error = self._blame(phase, Reason.LIED, culprit, what)
        self.abort(error)
        return error

    def abort(self, error: BootstrapError) -> None:
        culprit = -1 if error.culprit is None else error.culprit
        self.next.abort(error.reason, culprit, error.seen_by)
        self.previous.abort(error.reason, culprit, error.seen_by)

    def _blame(self, phase: str, reason: Reason, culprit: int, what: str) -> BootstrapError:
        return BootstrapError(self.rank, phase, reason, culprit, f"rank {culprit} {what}")
