"""A stream together with what the store knows of it: whose it is, how far it was read, what is open in it."""

from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from rankscope.ingest.decode import Process
from rankscope.ingest.processes import is_alive
from rankscope.ingest.registry import Identity, Registry
from rankscope.ingest.ring import recover
from rankscope.ingest.spool import StreamName
from rankscope.ingest.store import source_id
from rankscope.ingest.stream import Stream


@dataclass
class Reading:
    """One process' stream, as a collector goes through it."""

    stream: Stream
    name: StreamName
    is_known: bool = False  # the store has a row for it
    process: Process | None = None
    identity: Identity | None = None
    complete: bool = False  # nothing more will come, and all that came was read
    closed: bool = False  # its process said that nothing more will come
    dead: bool = False  # its process is gone
    last_ns: int = 0  # wall time of its last record
    looked_up: float = float("-inf")  # when its process was last looked for, monotonic seconds
    # Slots of what had begun and not ended, as the store has it, by table.
    open: dict[str, set[int]] = field(default_factory=lambda: {"open_span": set(), "collective": set()})

    @property
    def source_id(self) -> int:
        return source_id(self.stream.name)

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.closed or self.dead

    @property
    def host(self) -> str:
        """Where its process runs."""
        return self.identity.host if self.identity is not None else self.name.host

    def look_for_process(self) -> None:
        """See whether its process, which is one of this host, is gone."""
        segment = self.stream.segment
        if self.identity is None or segment is None:
            self.dead = not is_alive(self.name.pid, self.name.start_ns or None)
        else:
            clocks = (segment.wall_ns, segment.mono_ns)
            self.dead = not is_alive(self.identity.pid, self.identity.start_ns, clocks)
        if self.dead:
            self._recover_ring()

    def _recover_ring(self) -> None:
        """Let what its process left in its ring of last collectives become the end of its stream."""
        try:
            if recover(self.stream.spool / self.stream.name):
                self.stream.look_for_more()
        except OSError as error:
            self.stream.complain(f"its ring of collectives cannot be read ({error.strerror})")

    @property
    def state(self) -> tuple[object, ...]:
        """What the store must be told of when it changes."""
        stream = self.stream
        return stream.next_slot, stream.errors, stream.writer_dropped, self.complete, self.process is None

    def identify(self, registry: Registry) -> None:
        """Find out whose stream it is, once a header could be read."""
        segment = self.stream.segment
        if segment is None or self.identity is not None:
            return
        self.identity = Identity.parse(segment.identity, self.name.run)
        if self.process is None:
            clocks = (segment.wall_ns, segment.mono_ns)
            self.process = registry.process(self.identity, self.stream.name, clocks)


@dataclass
class Saved:
    """A source as the store has it."""

    process: Process | None
    next_slot: int
    lost: int
    writer_dropped: int
    errors: int
    last_error: str | None
    complete: bool
    last_ns: int
    is_here: bool = True  # its files lay in this spool
    open: dict[str, set[int]] = field(default_factory=lambda: {"open_span": set(), "collective": set()})

    def apply(self, reading: Reading) -> None:
        """Let `reading` go on from here."""
        stream = reading.stream
        stream.next_slot = self.next_slot
        stream.lost = self.lost
        stream.writer_dropped = self.writer_dropped
        stream.errors = self.errors
        stream.last_error = self.last_error
        reading.is_known = True
        reading.process = self.process
        reading.complete = self.complete
        reading.last_ns = self.last_ns
        reading.open = self.open


def load_sources(con: duckdb.DuckDBPyConnection, spool: Path) -> dict[str, Saved]:
    """All streams that the store knows, by stream; their spool may be reached by another path now."""
    found = con.execute(
        "SELECT stream, source_id, run_id, attempt, rank, incarnation, host, next_slot, dropped, "
        "writer_dropped, errors, last_error, complete, last_ns, path "
        "FROM source LEFT JOIN (SELECT source_id, host, last_ns FROM heartbeat) USING (source_id) "
        "WHERE kind = 'segment'"
    ).fetchall()
    saved: dict[str, Saved] = {}
    by_number: dict[int, Saved] = {}
    for stream, number, run, attempt, rank, incarnation, host, slot, dropped, by_writer, *rest in found:
        errors, last_error, complete, last_ns, path = rest
        process = Process(run, attempt, rank, incarnation, host or "", number) if rank is not None else None
        saved[stream] = by_number[number] = Saved(
            process, slot, dropped - by_writer, by_writer, errors, last_error, complete, last_ns or 0,
            is_here=Path(path).is_relative_to(spool),
        )  # fmt: skip
    for table, is_open in (("open_span", "true"), ("collective", "end_ns IS NULL")):
        begun = con.execute(
            f"SELECT source_id, slot FROM {table} SEMI JOIN "
            "(SELECT source_id FROM source WHERE kind = 'segment' AND NOT complete) USING (source_id) "
            f"WHERE {is_open}"
        ).fetchall()
        for number, slot in begun:
            if number in by_number:
                by_number[number].open[table].add(slot)
    return saved
