"""Records with attributes: JSON objects that say which table they are rows of.

    {"type": "signal", "kind": "exception", "time_ns": 1790000000000000000, "message": "…", "lineno": 12}

Keys that are columns of the table become columns, all others go into its attrs.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import duckdb
import pyarrow as pa

from rankscope.ingest.decode import Process
from rankscope.ingest.segments import sound
from rankscope.ingest.strings import clean_json

# Tables that a process may write rows of.
EVENT_TABLES: Final = (
    "process_exit", "process_group", "signal", "quorum", "quorum_member", "span", "collective",
    "collective_rollup", "scalar", "rank",
)  # fmt: skip
# Rows of its own that a process may fill in later.
UPDATE_TABLES: Final = {"run_update": "run", "rank_update": "rank"}
_RESERVED: Final = frozenset({"run_id", "attempt", "source_id", "slot"})
_ARROW: Final = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR": pa.string(),
    "JSON": pa.string(),
    "INTEGER[]": pa.list_(pa.int32()),
}

Row = dict[str, Any]


class BadEvent(ValueError):
    """An event that cannot become a row: its message says why."""


def column_types(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Types of all columns, by table."""
    types: dict[str, dict[str, str]] = defaultdict(dict)
    found = con.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND schema_name = current_schema() ORDER BY column_index"
    )
    for table, column, kind in found.fetchall():
        types[table][column] = kind
    return types


class EventReader:
    """Turns events of a batch into rows by table, and into updates."""

    def __init__(self, types: Mapping[str, Mapping[str, str]]) -> None:
        self._types = types
        self.rows: dict[str, list[Row]] = defaultdict(list)
        self.updates: list[tuple[str, Row]] = []  # (table, columns); a rank's with its key columns

    def add(self, process: Process, text: str, attempt_of: Callable[[int], int]) -> None:
        """Take one event of `process`.

        Args:
            attempt_of: the attempt that a restart count of the process' launch stands for.

        Raises:
            BadEvent: it is no row of any table.
        """
        try:
            event = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadEvent("an event that is no JSON") from error
        if not isinstance(event, dict):
            raise BadEvent("an event that is no JSON object")
        kind = event.pop("type", None)
        if not isinstance(kind, str):
            raise BadEvent("an event without a type")
        if kind == "hook_error":  # told by the recorder: it counts as an error of its stream
            raise BadEvent(f"the hook {event.get('hook')!r} failed and is off: {event.get('message')}")
        if kind in UPDATE_TABLES:
            table = UPDATE_TABLES[kind]
        elif kind in EVENT_TABLES:
            table = kind
        else:
            raise BadEvent(f"an event of the unknown type {kind[:60]!r}")
        types = self._types[table]
        row: Row = {"run_id": process.run_id, "attempt": process.attempt, "source_id": process.source_id}
        restart = event.pop("restart_count", None)
        if restart is not None:
            row["attempt"] = attempt_of(_coerced("restart_count", restart, "INTEGER"))
        event.setdefault("rank", process.rank if process.rank >= 0 or table != "signal" else None)
        event.setdefault("incarnation", process.incarnation)
        if table in ("signal", "process_exit"):
            event.setdefault("host", process.host)
        extra: Row = {}
        for key, value in event.items():
            if key == "attrs" and isinstance(value, dict):
                extra |= value
            elif key in types and key not in _RESERVED and key != "attrs":
                row[key] = _coerced(key, value, types[key])
            elif key not in _RESERVED and key not in ("rank", "incarnation"):
                extra[key] = value
        if extra and "attrs" in types:
            row["attrs"] = clean_json(json.dumps(extra))
        row = {key: value for key, value in row.items() if key in types}
        if kind in UPDATE_TABLES:
            self.updates.append((table, row))
        else:
            self.rows[table].append(row)

    def tables(self) -> dict[str, pa.Table]:
        """The rows as Arrow tables with all columns of their tables."""
        made = {}
        for table, rows in self.rows.items():
            schema = pa.schema([(name, _ARROW[kind]) for name, kind in self._types[table].items()])
            made[table] = pa.Table.from_pylist(rows, schema)
        return made


def _coerced(name: str, value: object, kind: str) -> Any:
    """`value` as the column wants it.

    Raises:
        BadEvent: it is something else.
    """
    if value is None:
        return None
    if kind in ("BIGINT", "INTEGER"):
        limit = 2**63 if kind == "BIGINT" else 2**31
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
            return value
    elif kind == "DOUBLE":
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _as_float(value)
    elif kind == "BOOLEAN":
        if isinstance(value, bool):
            return value
    elif kind == "INTEGER[]":
        if isinstance(value, list):
            return [_coerced(name, item, "INTEGER") for item in value]
    elif kind == "JSON":
        return clean_json(json.dumps(value))
    elif kind == "VARCHAR":
        return sound(value if isinstance(value, str) else json.dumps(value))
    raise BadEvent(f"an event whose {name} is no {kind}: {str(value)[:60]!r}")


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
