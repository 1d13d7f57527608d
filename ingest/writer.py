"""One transaction of the collector: rows, and how far each source was read, together or not at all."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa

from rankscope.ingest.events import Row
from rankscope.ingest.registry import Additions

_SOURCE_STATE: Final = pa.schema(
    [
        ("source_id", pa.int64()), ("next_slot", pa.int64()), ("records", pa.int64()),
        ("dropped", pa.int64()), ("writer_dropped", pa.int64()), ("errors", pa.int64()),
        ("last_error", pa.string()), ("complete", pa.bool_()), ("updated_ns", pa.int64()),
        ("last_ns", pa.int64()), ("step", pa.int64()),
    ]
)  # fmt: skip
_KEYS: Final = pa.schema([("source_id", pa.int64()), ("slot", pa.int64())])
# Columns that a process may fill in, of its run and of its own row; all else goes into attrs.
_UPDATABLE: Final = {
    "run": ("began_ns", "planned_ranks", "command", "framework", "backend", "device_kind", "origin"),
    "rank": ("host", "local_rank", "pid", "device", "replica_group", "mesh", "spawn_ns", "began_ns", "role"),
}


@dataclass
class Changes:
    """What one transaction writes."""

    additions: Additions
    sources: Sequence[Row]  # new ones
    tables: Sequence[tuple[str, pa.Table]]
    gone: Mapping[str, Sequence[tuple[int, int]]]  # by table: (source_id, slot) of begun rows that ended
    updates: Sequence[tuple[str, Row]]
    exits: Sequence[Row]
    state: Sequence[Row]  # of sources that were read, as _SOURCE_STATE says
    runs: set[str]  # that these changes belong to


def write(con: duckdb.DuckDBPyConnection, changes: Changes) -> None:
    """Write everything in one transaction.

    Raises:
        duckdb.Error: nothing was written.
    """
    con.execute("BEGIN")
    try:
        _add(con, changes)
        for table, keys in changes.gone.items():
            _remove_open(con, table, keys)
        for table, rows in changes.tables:
            _insert(con, table, rows)
        for table, row in changes.updates:
            _update(con, table, row)
        if changes.state:
            _save_state(con, changes.state)
        _insert(
            con, "stale_run", [{"run_id": run, "since_ns": time.time_ns()} for run in sorted(changes.runs)]
        )
        con.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.Error):  # the failure may have ended the transaction already
            con.execute("ROLLBACK")
        raise


def _add(con: duckdb.DuckDBPyConnection, changes: Changes) -> None:
    additions = changes.additions
    _insert(con, "source", changes.sources)
    _insert(con, "rank", additions.ranks)
    _insert(con, "process_exit", changes.exits)
    beating = ("run_id", "attempt", "rank", "incarnation", "host", "pid", "source_id")
    _insert(con, "heartbeat", [{key: rank[key] for key in beating} for rank in additions.ranks])
    for run in _merged(additions.runs, ("run_id",)):
        con.execute(
            "INSERT INTO run BY NAME SELECT $run_id AS run_id, 'recorded' AS origin "
            "WHERE NOT EXISTS (FROM run WHERE run_id = $run_id)",
            {"run_id": run["run_id"]},
        )
        con.execute(
            "UPDATE run SET began_ns = least(began_ns, $began_ns), "
            "planned_ranks = greatest(planned_ranks, $planned_ranks), command = coalesce(command, $command) "
            "WHERE run_id = $run_id",
            run,
        )
    for attempt in _merged(additions.attempts, ("run_id", "attempt")):
        key = {"run_id": attempt["run_id"], "attempt": attempt["attempt"]}
        con.execute(
            "INSERT INTO attempt BY NAME SELECT $run_id AS run_id, $attempt AS attempt, "
            "$launch_id AS launch_id, $restart_count AS restart_count "
            "WHERE NOT EXISTS (FROM attempt WHERE run_id = $run_id AND attempt = $attempt)",
            key | {"launch_id": attempt["launch_id"], "restart_count": attempt["restart_count"]},
        )
        con.execute(
            "UPDATE attempt SET began_ns = least(began_ns, $began_ns), "
            "world_size = greatest(world_size, $world_size) WHERE run_id = $run_id AND attempt = $attempt",
            key | {"began_ns": attempt["began_ns"], "world_size": attempt["world_size"]},
        )


def _merged(rows: Sequence[Row], keys: tuple[str, ...]) -> list[Row]:
    """One row a key: the first time, the largest size, the first text."""
    merged: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        old = merged.get(key)
        if old is None:
            merged[key] = dict(row)
            continue
        for name, value in row.items():
            if old[name] is None:
                old[name] = value
            elif value is not None and name == "began_ns":
                old[name] = min(old[name], value)
            elif value is not None and name in ("planned_ranks", "world_size"):
                old[name] = max(old[name], value)
    return list(merged.values())


def _insert(con: duckdb.DuckDBPyConnection, table: str, rows: pa.Table | Sequence[Row]) -> None:
    if not len(rows):
        return
    with _arrow(con, rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows))) as incoming:
        con.execute(f"INSERT INTO {table} BY NAME FROM {incoming}")


def _remove_open(con: duckdb.DuckDBPyConnection, table: str, keys: Sequence[tuple[int, int]]) -> None:
    """Rows of what had begun, now that it has ended."""
    if not keys:
        return
    gone = pa.table([[source for source, _ in keys], [slot for _, slot in keys]], schema=_KEYS)
    # The bound on slots lets DuckDB skip the older part of a large table.
    ended = "end_ns IS NULL AND" if table == "collective" else ""
    with _arrow(con, gone) as incoming:
        con.execute(
            f"DELETE FROM {table} AS opened USING {incoming} AS gone WHERE {ended} opened.slot >= $first "
            "AND opened.source_id = gone.source_id AND opened.slot = gone.slot",
            {"first": min(slot for _, slot in keys)},
        )


def _update(con: duckdb.DuckDBPyConnection, table: str, row: Row) -> None:
    columns = [name for name in _UPDATABLE[table] if row.get(name) is not None]
    sets = [f"{name} = ${name}" for name in columns]
    params: Row = {name: row[name] for name in columns}
    if row.get("attrs"):
        sets.append("attrs = json_merge_patch(coalesce(attrs, '{}'), $attrs)")
        params["attrs"] = row["attrs"]
    if not sets:
        return
    keys = ("run_id",) if table == "run" else ("run_id", "attempt", "rank", "incarnation")
    where = " AND ".join(f"{name} = $key_{name}" for name in keys)
    con.execute(
        f"UPDATE {table} SET {', '.join(sets)} WHERE {where}",
        params | {f"key_{name}": row[name] for name in keys},
    )


def _save_state(con: duckdb.DuckDBPyConnection, state: Sequence[Row]) -> None:
    with _arrow(con, pa.Table.from_pylist(list(state), _SOURCE_STATE)) as incoming:
        con.execute(
            f"UPDATE source SET next_slot = s.next_slot, records = source.records + s.records, "
            "dropped = s.dropped, writer_dropped = s.writer_dropped, errors = s.errors, "
            "last_error = s.last_error, complete = s.complete, updated_ns = s.updated_ns "
            f"FROM {incoming} AS s WHERE source.source_id = s.source_id"
        )
        con.execute(
            "UPDATE heartbeat SET last_ns = greatest(heartbeat.last_ns, s.last_ns), "
            "step = coalesce(greatest(heartbeat.step, s.step), heartbeat.step) "
            f"FROM {incoming} AS s WHERE heartbeat.source_id = s.source_id AND s.last_ns > 0"
        )


@contextmanager
def _arrow(con: duckdb.DuckDBPyConnection, rows: pa.Table) -> Iterator[str]:
    """The name by which SQL knows `rows` meanwhile."""
    con.register("incoming", rows)
    try:
        yield "incoming"
    finally:
        con.unregister("incoming")
