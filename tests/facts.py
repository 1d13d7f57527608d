"""Hand-built facts for tests: a run, told attempt by attempt and rank by rank, in seconds.

facts = FactBuilder("run-1", ranks=2)
facts.attempt(0)
for rank in range(2):
    facts.process(0, rank, spawn=0, end=20, exit_code=0)
    facts.steps(0, rank, begin=5, count=5, seconds=3)
con = facts.store()                  # a DuckDB connection with schema, facts and refreshed views
"""

import json
import zlib
from pathlib import Path
from typing import Any

import duckdb

import rankscope
from rankscope.analytics import catalog

SCHEMA = (Path(rankscope.__file__).parent / "ingest" / "schema.sql").read_text()
EPOCH_NS = 1_700_000_000_000_000_000  # second 0 of a hand-built run


def ns(seconds: float) -> int:
    """Seconds of a hand-built run as nanoseconds since the epoch."""
    return EPOCH_NS + round(seconds * 1e9)


def empty_store(path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    """A store with the schema and all views, and no facts."""
    con = duckdb.connect(path)
    con.execute(SCHEMA)
    catalog.install(con)
    return con


class FactBuilder:
    """Collects rows of one run; times are seconds from the run's own zero."""

    def __init__(self, run_id: str = "run", *, ranks: int = 1, origin: str = "recorded") -> None:
        self.run_id = run_id
        self.ranks = ranks
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._sources = 0
        self._spawned: dict[tuple[int, int, int], int] = {}
        self.add("run", run_id=run_id, planned_ranks=ranks, origin=origin)

    def add(self, table: str, **columns: Any) -> None:
        """One raw row of any table; *_ns are given as they are."""
        self.rows.setdefault(table, []).append({"run_id": self.run_id, **columns})

    def attempt(
        self,
        attempt: int,
        *,
        world_size: int | None = None,
        launch: str = "launch",
        began: float | None = None,
        **attrs: float,
    ) -> None:
        """A launch or restart. attrs: queued, allocated in seconds."""
        self.add(
            "attempt",
            attempt=attempt,
            launch_id=launch,
            restart_count=attempt,
            world_size=self.ranks if world_size is None else world_size,
            began_ns=None if began is None else ns(began),
            attrs=json.dumps({f"{key}_ns": ns(value) for key, value in attrs.items()}) if attrs else None,
        )

    def launcher(self, *, spawn: float, end: float | None, attempt: int = 0, host: str = "host-0") -> None:
        """The launching process; end None: it still lives."""
        source = self._source(attempt, -1, 0, complete=end is not None)
        self.add(
            "rank",
            attempt=attempt,
            rank=-1,
            incarnation=0,
            host=host,
            pid=999,
            spawn_ns=ns(spawn),
            began_ns=ns(spawn),
            role="launcher",
            source_id=source,
        )
        self.add(
            "heartbeat",
            attempt=attempt,
            rank=-1,
            incarnation=0,
            host=host,
            pid=999,
            last_ns=ns(spawn if end is None else end),
            source_id=source,
        )

    def process(
        self,
        attempt: int,
        rank: int,
        *,
        spawn: float,
        end: float | None = None,
        exit_code: int | None = None,
        began: float | None = None,
        incarnation: int = 0,
        host: str = "host-0",
        replica_group: int | None = None,
        observer: str = "launcher",
        last: float | None = None,
        mesh: dict[str, int] | None = None,
        complete: bool = False,
    ) -> None:
        """A rank's process. `end` writes its exit as `observer` saw it; `last` its latest sign of life."""
        source = self._source(attempt, rank, incarnation, complete=complete)
        pid = 1000 + self._sources
        self._spawned[attempt, rank, incarnation] = source
        self.add(
            "rank",
            attempt=attempt,
            rank=rank,
            incarnation=incarnation,
            host=host,
            local_rank=rank,
            pid=pid,
            replica_group=replica_group,
            mesh=None if mesh is None else json.dumps(mesh),
            spawn_ns=ns(spawn),
            began_ns=ns(spawn if began is None else began),
            role="rank",
            source_id=source,
        )
        if last is not None:
            self.add(
                "heartbeat",
                attempt=attempt,
                rank=rank,
                incarnation=incarnation,
                host=host,
                pid=pid,
                last_ns=ns(last),
                source_id=source,
            )
        if end is not None:
            self.exit(
                attempt, rank, end, exit_code, incarnation=incarnation, observer=observer, pid=pid, host=host
            )

    def exit(
        self,
        attempt: int,
        rank: int,
        time: float,
        exit_code: int | None,
        *,
        incarnation: int = 0,
        observer: str = "launcher",
        pid: int | None = None,
        host: str | None = None,
    ) -> None:
        """A process' end, as somebody saw it."""
        self.add(
            "process_exit",
            attempt=attempt,
            rank=rank,
            incarnation=incarnation,
            pid=pid,
            host=host,
            time_ns=ns(time),
            exit_code=exit_code,
            observer=observer,
        )

    def span(
        self,
        attempt: int,
        rank: int,
        category: str,
        begin: float,
        end: float | None,
        *,
        name: str = "",
        step: int | None = None,
        committed: bool | None = None,
        status: str = "ok",
        incarnation: int = 0,
        thread: int = 0,
        **attrs: Any,
    ) -> None:
        """A span; end None: it began and was still open when last read."""
        row = {
            "attempt": attempt,
            "rank": rank,
            "incarnation": incarnation,
            "category": category,
            "name": name,
            "step": step,
            "begin_ns": ns(begin),
            "thread": thread,
            "attrs": json.dumps(attrs) if attrs else None,
            "source_id": self._spawned.get((attempt, rank, incarnation)),
        }
        if end is None:
            self.add("open_span", slot=0, **row)
        else:
            self.add("span", end_ns=ns(end), committed=committed, status=status, **row)

    def step(
        self,
        attempt: int,
        rank: int,
        number: int,
        begin: float,
        end: float | None,
        *,
        committed: bool = True,
        incarnation: int = 0,
        status: str = "ok",
    ) -> None:
        """One step; end None: in flight when last read."""
        self.span(
            attempt,
            rank,
            "step",
            begin,
            end,
            step=number,
            committed=committed,
            incarnation=incarnation,
            status=status,
        )

    def steps(
        self,
        attempt: int,
        rank: int,
        *,
        begin: float,
        count: int,
        seconds: float,
        first: int = 0,
        incarnation: int = 0,
    ) -> float:
        """`count` committed steps on end; returns when the last one ends."""
        for index in range(count):
            self.step(
                attempt,
                rank,
                first + index,
                begin + index * seconds,
                begin + (index + 1) * seconds,
                incarnation=incarnation,
            )
        return begin + count * seconds

    def signal(
        self,
        attempt: int,
        rank: int | None,
        kind: str,
        time: float,
        *,
        failure_kind: str | None = None,
        message: str = "",
        observer: str = "self",
        incarnation: int = 0,
        observed: float | None = None,
    ) -> None:
        """A piece of failure evidence."""
        self.add(
            "signal",
            attempt=attempt,
            rank=rank,
            incarnation=incarnation,
            time_ns=ns(time),
            observed_ns=ns(time if observed is None else observed),
            kind=kind,
            failure_kind=failure_kind,
            observer=observer,
            message=message,
        )

    def group(self, attempt: int, name: str, ranks: list[int], *, incarnation: int = 0) -> None:
        """A process group, described by all its members."""
        for rank in ranks:
            self.add(
                "process_group",
                attempt=attempt,
                rank=rank,
                incarnation=incarnation,
                pg=name,
                ranks=ranks,
                backend="gloo",
                created_ns=ns(0),
            )

    def collective(
        self,
        attempt: int,
        rank: int,
        seq: int,
        arrival: float,
        end: float | None,
        *,
        pg: str = "world",
        step: int | None = None,
        op: str = "all_reduce",
        is_async: bool = False,
        incarnation: int = 0,
    ) -> None:
        """One collective on one rank."""
        self.add(
            "collective",
            attempt=attempt,
            rank=rank,
            incarnation=incarnation,
            pg=pg,
            seq=seq,
            op=op,
            step=step,
            enqueue_ns=ns(arrival),
            end_ns=None if end is None else ns(end),
            is_async=is_async,
            is_p2p=False,
            state="started" if end is None else "completed",
            source_id=self._spawned.get((attempt, rank, incarnation)),
        )

    def rollup(
        self, attempt: int, rank: int, step: int, arrival: float, end: float, *, pg: str = "world"
    ) -> None:
        """All collectives of a rank's step as one."""
        self.add(
            "collective_rollup",
            attempt=attempt,
            rank=rank,
            incarnation=0,
            step=step,
            pg=pg,
            count=1,
            bytes=8,
            total_ns=ns(end) - ns(arrival),
            max_ns=ns(end) - ns(arrival),
            first_enqueue_ns=ns(arrival),
            last_enqueue_ns=ns(arrival),
            last_end_ns=ns(end),
            last_seq=step,
        )

    def scalar(self, attempt: int, rank: int, step: int, name: str, value: float, time: float) -> None:
        """A logged value."""
        self.add(
            "scalar",
            attempt=attempt,
            rank=rank,
            incarnation=0,
            step=step,
            name=name,
            value=value,
            time_ns=ns(time),
        )

    def clock(self, host: str, offset: float) -> None:
        """A host's clock runs `offset` seconds ahead of the run's reference."""
        self.add("host_clock", host=host, time_ns=ns(0), offset_ns=round(offset * 1e9), method="test")

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Insert all rows, and refresh the run."""
        for table, rows in self.rows.items():
            for row in rows:
                names = ", ".join(row)
                values = ", ".join(f"${name}" for name in row)
                con.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", row)
        catalog.refresh(con, self.run_id)

    def store(self) -> duckdb.DuckDBPyConnection:
        """A new in-memory store with these facts."""
        con = empty_store()
        self.write(con)
        return con

    def _source(self, attempt: int, rank: int, incarnation: int, *, complete: bool) -> int:
        self._sources += 1
        number = self._sources + zlib.crc32(self.run_id.encode()) * 1_000
        self.add(
            "source",
            source_id=number,
            attempt=attempt,
            rank=rank,
            incarnation=incarnation,
            kind="segment",
            stream=f"{self.run_id}/test-{self._sources}",
            path=f"{self.run_id}.{self._sources}.seg",
            records=1,
            dropped=0,
            errors=0,
            complete=complete,
        )
        return number


def ledger(con: duckdb.DuckDBPyConnection, run_id: str = "run") -> dict[str, float]:
    """Ledger of a run in rank seconds, categories without time left out."""
    rows = con.execute(
        "SELECT category, sum(ns)::HUGEINT FROM v_ledger WHERE run_id = $run_id GROUP BY ALL",
        {"run_id": run_id},
    ).fetchall()
    return {category: int(value) / 1e9 for category, value in rows if value}
