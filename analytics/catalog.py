"""The derived tables and public views of a store, and how a run's derived rows are made anew.

    con = store.cursor()
    catalog.install(con)             # once per store: derived tables, v_* views, v_help
    catalog.refresh(con, "llama")    # after new facts of that run were committed

Facts (ingest/schema.sql) -> staging views (staging/) -> derived tables (derive/) -> public views (marts/).
A view's documentation stands in the head of its file; columns that mean the same everywhere, in columns.toml.
"""

import hashlib
import re
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from rankscope.ingest.errors import UserError

_HERE = Path(__file__).parent
# Relations over facts and derived tables, each after those that it reads.
_STAGING = ("s_span", "s_step", "s_arrival", "s_wait", "s_claim")
# Derived tables in the order in which they are filled. The wide ones are filled part by part.
_DERIVED = (
    "d_process",
    "d_frame",
    "d_alive",
    "d_window",
    "d_plan",
    "d_epoch",
    "d_step_summary",
    "d_reference",
    "d_evidence",
    "d_incident",
    "d_impact",
    "d_ledger_interval",
    "d_ledger",
    "d_ledger_step",
    "d_ledger_minute",
    "d_init_rank",
    "d_init_phase",
    "d_meeting",
    "d_lateness",
    "d_run",
)
_PART_STEPS = 3_000_000  # steps of ranks that one statement works on: bounds memory to about 2 GB
_PARAMETER = re.compile(r"\$(\w+)")
_COLUMN_DOC = re.compile(r"--   (\w+)(?: \[([^\]]+)\])?: (.+)")


@dataclass(frozen=True)
class View:
    """A public view: its SELECT and what it means."""

    name: str
    sql: str
    meaning: str
    columns: dict[str, tuple[str | None, str]]  # name -> (unit, meaning), of columns documented in its head

    @property
    def code(self) -> str:
        """Its SQL without comments."""
        return re.sub(r"--[^\n]*", "", self.sql)


@cache
def views() -> tuple[View, ...]:
    """All public views, by name."""
    return tuple(_read_view(path) for path in sorted((_HERE / "marts").glob("v_*.sql")))


def install(con: duckdb.DuckDBPyConnection) -> None:
    """Create the derived tables and all views, unless the store has these very ones already.

    Derived tables of another version are made anew: their runs are noted in `stale_run`, to be refreshed.

    Raises:
        UserError: the store is read-only and has other ones.
    """
    version = _version()
    try:
        found = con.execute("SELECT version FROM d_catalog").fetchone()
    except duckdb.CatalogException:
        found = None
    if found == (version,):
        return
    try:
        con.begin()
        con.execute("CREATE TABLE IF NOT EXISTS d_catalog (version VARCHAR)")
        tables = _sql("derive", "tables")
        for name in re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", tables):
            con.execute(f"DROP TABLE IF EXISTS {name}")
        con.execute(tables)
        con.execute("INSERT INTO stale_run SELECT run_id, $now FROM run", {"now": time.time_ns()})
        for name in _STAGING:
            con.execute(f"CREATE OR REPLACE VIEW {name} AS {_sql('staging', name)}")
        for view in _by_need():
            con.execute(f"CREATE OR REPLACE VIEW {view.name} AS {view.sql}")
        _write_help(con)
        con.execute("DELETE FROM d_catalog")
        con.execute("INSERT INTO d_catalog VALUES ($version)", {"version": version})
        con.commit()
    except duckdb.Error as error:
        if "read-only" in str(error):
            raise UserError(
                "this store is read-only and its views are of another version: copy it, then open the copy"
            ) from error
        con.rollback()
        raise


def refresh(con: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Make all derived rows of one run anew, in one transaction. Idempotent; for runs going on too."""
    con.begin()
    try:
        for name in _DERIVED:
            con.execute(f"DELETE FROM {name} WHERE run_id = $run_id", {"run_id": run_id})
        for name in _DERIVED:
            sql = _sql("derive", name)
            names = set(_PARAMETER.findall(sql))
            for part in _parts(con, run_id, names):
                values = {key: value for key, value in part.items() if key in names}
                con.execute(f"INSERT INTO {name} BY NAME {sql}", values)
        con.commit()
    except BaseException:
        con.rollback()
        raise


def _parts(con: duckdb.DuckDBPyConnection, run_id: str, names: set[str]) -> Iterator[dict[str, str | int]]:
    """Parameters for each part of a statement: ranges of ranks or of steps, as it asks for."""
    whole: dict[str, str | int] = {"run_id": run_id}
    if not names & {"rank_low", "step_low"}:
        yield whole
        return
    row = con.execute(_sql("derive", "extent"), whole).fetchone()
    assert row is not None
    steps, first, last, ranks = row
    count = max(1, -(-steps // _PART_STEPS))
    low, high, name = (0, ranks, "rank") if "rank_low" in names else (first, last, "step")
    size = max(1, -(-(high - low + 1) // count))
    for begin in range(low, high + 1, size):
        yield whole | {f"{name}_low": begin, f"{name}_high": min(begin + size - 1, high)}


def _by_need() -> list[View]:
    """Views, each after those that it reads."""
    waiting, made = list(views()), list[View]()
    names = {view.name for view in waiting}
    while waiting:
        done = {view.name for view in made}
        ready = [v for v in waiting if names & set(re.findall(r"v_\w+", v.code)) - {v.name} <= done]
        assert ready, f"views that read each other: {[view.name for view in waiting]}"
        made += ready
        waiting = [view for view in waiting if view not in ready]
    return made


def _sql(folder: str, name: str) -> str:
    return (_HERE / folder / f"{name}.sql").read_text()


@cache
def _version() -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted([*_HERE.glob("*/*.sql"), _HERE / "columns.toml"]):
        if path.parent.name != "queries":
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _read_view(path: Path) -> View:
    sql = path.read_text()
    meaning: list[str] = []
    columns: dict[str, tuple[str | None, str]] = {}
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        column = _COLUMN_DOC.fullmatch(line)
        if column:
            columns[column[1]] = (column[2], column[3])
        else:
            meaning.append(line.removeprefix("--").strip())
    return View(path.stem, sql, " ".join(meaning), columns)


def _write_help(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        'CREATE TABLE IF NOT EXISTS d_help ("view" VARCHAR, "column" VARCHAR, type VARCHAR, '
        "unit VARCHAR, meaning VARCHAR)"
    )
    con.execute("DELETE FROM d_help")
    con.execute('CREATE OR REPLACE VIEW v_help AS SELECT "view", "column", type, unit, meaning FROM d_help')
    rows: list[tuple[str, str | None, str | None, str | None, str]] = [
        ("v_help", None, None, None, "This list: every public view (column null) and each of its columns.")
    ]
    for view in views():
        rows.append((view.name, None, None, None, view.meaning))
        for name, kind, *_ in con.execute(f"DESCRIBE {view.name}").fetchall():
            unit, meaning = column_help(view, name)
            rows.append((view.name, name, kind, unit, meaning))
    con.executemany("INSERT INTO d_help VALUES (?, ?, ?, ?, ?)", rows)


def column_help(view: View, column: str) -> tuple[str | None, str]:
    """Unit and meaning of a view's column; an empty meaning where nobody wrote one."""
    common = _common()
    unit, meaning = view.columns.get(column, (None, common["meaning"].get(column, "")))
    if unit is None:
        unit = next((unit for suffix, unit in common["unit"].items() if column.endswith(suffix)), None)
    return unit, meaning


@cache
def _common() -> dict[str, dict[str, str]]:
    return tomllib.loads((_HERE / "columns.toml").read_text())
