"""The collector: reads the spool of this host's processes into the store, each record exactly once.

    Collector(store, Path("rankscope.spool")).run(stop)

What was read and the rows made of it are committed together, so that it may be killed anywhere and started
again. All it knows is in the store and in the segments: after a failed transaction it reads both anew.
"""

import fcntl
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import duckdb

from rankscope.ingest.batches import build, count
from rankscope.ingest.errors import UserError
from rankscope.ingest.events import column_types
from rankscope.ingest.layout import SLOTS
from rankscope.ingest.reading import Reading, load_sources
from rankscope.ingest.registry import Registry
from rankscope.ingest.ring import recover
from rankscope.ingest.spool import SpoolScan, StreamName, parse_segment_name
from rankscope.ingest.sqltext import clean_message
from rankscope.ingest.store import Store
from rankscope.ingest.stream import Stream, Take
from rankscope.ingest.strings import Strings
from rankscope.ingest.writer import write

BATCH_RECORDS: Final = 4 * SLOTS  # records a transaction
POLL_S: Final = 0.25
RETRY_S: Final = 1.0  # between attempts to write to a full disk
_LIVENESS_S: Final = 1.0  # how often an idle process is looked up
_MAX_STRINGS: Final = 1_000_000  # interned, before all is forgotten and read anew


@dataclass
class Progress:
    """What one round did."""

    records: int = 0
    streams: int = 0  # whose state changed
    more: bool = False  # another round would find more at once
    problems: list[str] = field(default_factory=list)


class Collector:
    """Reads one spool into one store. Only one at a time may read a spool."""

    def __init__(
        self,
        store: Store,
        spool: Path,
        on_commit: Callable[[set[str]], None] | None = None,
        *,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Take the spool.

        Args:
            store: this process must own it.
            spool: made when it is not there.
            on_commit: called with the ids of the runs that got rows, after each transaction.
            say: where lines about problems go; stderr without.

        Raises:
            UserError: another collector reads this spool, or it cannot be used.
        """
        self._store = store
        self.spool = spool.resolve()
        self._on_commit = on_commit
        self._say = say if say is not None else _to_stderr
        self._lock = _lock(spool)
        # While one batch is committed here, the next is read: DuckDB and numpy both let go of the GIL.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rankscope-writer")
        self._pending: Future[None] | None = None
        self._hosts = {socket.gethostname()}
        self._turn = 0
        self._forget()

    def run(self, stop: threading.Event) -> None:
        """Collect until `stop` is set, then once more what is there by then."""
        waiting = False
        while True:
            last = stop.is_set()
            try:
                progress = self.run_once()
            except duckdb.Error as error:
                if last:
                    raise
                if not waiting:
                    self._say(f"cannot write to {self._store.url}, trying again: {_first_line(error)}")
                waiting = True
                stop.wait(RETRY_S)
                self._store.reopen()
                self._forget()
                continue
            if waiting:
                self._say(f"writing to {self._store.url} again")
                waiting = False
            if progress.more:
                continue
            if last:
                return
            stop.wait(POLL_S)

    def catch_up(self) -> int:
        """Collect until nothing waits; returns the number of records."""
        records = 0
        while True:
            progress = self.run_once()
            records += progress.records
            if not progress.more:
                return records

    def run_once(self) -> Progress:
        """One round: read what waits, up to a batch, and commit it.

        With `more` in its progress, the commit may still be under way; it has happened when there is no more.

        Raises:
            duckdb.Error: the store did not take it; nothing is lost, another round reads it again.
        """
        try:
            return self._round()
        except BaseException:
            if self._pending is not None:
                wait([self._pending])
            self._forget()
            raise

    def close(self) -> None:
        """Give the spool free."""
        self._pool.shutdown()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        """Know nothing: the store and the segments tell all of it again."""
        self._con: duckdb.DuckDBPyConnection | None = None
        self._pending = None
        self._in_pending: list[tuple[Reading, int, bool]] = []
        self._scan = SpoolScan(self.spool)
        self._strings = Strings()
        self._readings: dict[str, Reading] = {}
        self._done: set[str] = set()  # streams that nothing more is wanted of

    def _begin(self) -> duckdb.DuckDBPyConnection:
        if self._con is None:
            self._con = self._store.cursor()
            self._types = column_types(self._con)
            self._registry = Registry(self._store.cursor())
            self._saved = load_sources(self._con, self.spool)
            # A stream whose files were taken away meanwhile is not in the spool, and must still be ended.
            for stream, saved in list(self._saved.items()):
                run, _, stem = stream.rpartition("/")
                named = parse_segment_name(run, f"{stem}.0.seg")
                if named is not None and saved.is_here and not saved.complete:
                    self._reading(named[0])
        return self._con

    def _reading(self, name: StreamName) -> Reading | None:
        """The reading of a stream, begun where the store says; None when it is done with."""
        if name.stream in self._done:
            return None
        reading = self._readings.get(name.stream)
        if reading is None:
            reading = Reading(Stream(self.spool, name.stream, self._strings), name)
            saved = self._saved.pop(name.stream, None)
            if saved is not None:
                saved.apply(reading)
            self._readings[name.stream] = reading
        return reading

    def _round(self) -> Progress:
        if len(self._strings) > _MAX_STRINGS:
            self._forget()
        con = self._begin()
        self._look_for_segments()
        progress = Progress()
        takes: list[tuple[Reading, Take]] = []
        changed: list[Reading] = []
        room = BATCH_RECORDS
        for reading in self._in_turn():
            if room <= 0:
                progress.more = True
                break
            before = reading.state
            # Asked before reading, so that everything written until then is read now.
            self._look_up(reading)
            finished = reading.has_ended and not reading.complete
            if not (finished or reading.state != before or reading.stream.ready()):
                continue
            take = reading.stream.read(min(room, 2 * SLOTS), finished)
            reading.identify(self._registry)
            if take is not None:
                room -= len(take.records)
                takes.append((reading, take))
            reading.complete = (finished or reading.complete) and take is None and reading.stream.is_read()
            progress.more |= finished and not reading.complete
            # Without a header nobody knows whose it is: that is written down only when no better will come.
            if reading.state != before and (reading.process is not None or reading.complete):
                changed.append(reading)
        if changed:
            changes = build(takes, changed, self._registry, self._strings, self._types)
            self._tell(progress)
            self._settle()
            self._pending = self._pool.submit(write, con, changes)
            self._in_pending = [(reading, reading.stream.next_slot, reading.complete) for reading in changed]
        self._tell(progress)
        if not progress.more:
            self._settle()
        progress.records = sum(count(take) for _, take in takes)
        progress.streams = len(changed)
        return progress

    def _look_for_segments(self) -> None:
        first_seen: list[tuple[StreamName, int]] = self._scan.changed()
        # Attempts are numbered in order of first sight: within one look, the earlier process was first.
        for name, index in sorted(first_seen, key=lambda seen: seen[0].start_ns):
            reading = self._reading(name)
            if reading is not None:
                reading.stream.segments.add(index)

    def _in_turn(self) -> list[Reading]:
        """All readings, another one first each time, so that none starves when there is much to read."""
        readings = list(self._readings.values())
        if not readings:
            return []
        self._turn %= len(readings)
        return readings[self._turn :] + readings[: self._turn]

    def _look_up(self, reading: Reading) -> None:
        """See, now and then, whether a process is gone or said good-bye."""
        now = time.monotonic()
        if reading.dead or now - reading.looked_up < _LIVENESS_S:
            return
        reading.looked_up = now
        if reading.host in self._hosts:
            reading.look_for_process()
            if reading.dead:
                self._recover_ring(reading)
        reading.closed = reading.stream.is_closed()

    def _recover_ring(self, reading: Reading) -> None:
        """Let what a process that is gone kept to itself join its stream, before the end of that is read."""
        try:
            if recover(self.spool / reading.stream.name):
                self._look_for_segments()
        except OSError as error:
            reading.stream.complain(f"its last collectives cannot be read ({error.strerror})")

    def _settle(self) -> None:
        """Wait for the transaction that is under way, and do what follows it."""
        if self._pending is None:
            return
        self._pending.result()
        self._pending = None
        for reading, slot, complete in self._in_pending:
            self._clear_away(reading, slot, complete)
        runs = {reading.process.run_id for reading, _, _ in self._in_pending if reading.process is not None}
        self._in_pending = []
        if self._on_commit is not None:
            self._on_commit(runs)

    def _clear_away(self, reading: Reading, slot: int, complete: bool) -> None:
        """Delete files whose records, up to `slot`, are in the store; let go of a stream that is complete."""
        stream = reading.stream
        newest = max(stream.segments, default=0)
        is_done = complete and (reading.dead or reading.host not in self._hosts)
        for index in sorted(stream.segments):
            if is_done or ((index + 1) * SLOTS <= slot and index < newest):
                self._delete(stream, index)
        if is_done:
            self._done.add(stream.name)
            self._readings.pop(stream.name, None)

    def _tell(self, progress: Progress) -> None:
        for name, reading in self._readings.items():
            for problem in reading.stream.news:
                self._say(f"{name}: {problem}")
            progress.problems += reading.stream.news
            reading.stream.news = []

    def _delete(self, stream: Stream, index: int) -> None:
        stream.segments.discard(index)
        try:
            stream.path(index).unlink(missing_ok=True)
        except OSError as error:
            self._say(f"cannot delete {stream.path(index)}, which is in the store: {error.strerror}")


def _lock(spool: Path) -> int:
    try:
        spool.mkdir(parents=True, exist_ok=True)
        handle = os.open(spool / ".collector.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"cannot use the spool {spool}: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise UserError(
            f"another collector reads {spool} already: stop it, or leave the work to it"
        ) from error
    return handle


def _to_stderr(line: str) -> None:
    print(f"collector: {line}", file=sys.stderr, flush=True)


def _first_line(error: Exception) -> str:
    return clean_message(error).splitlines()[0]
