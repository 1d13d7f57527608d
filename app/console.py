"""What stands behind the SQL page: examples, limits, and a result that a browser can show."""

import time
from functools import cache
from importlib import resources

import pyarrow as pa
import pyarrow.compute as pc

from rankscope.ingest.sqltext import check_reads_only
from rankscope.ingest.store import Store

ROW_LIMIT = 10_000
TIME_LIMIT_S = 20.0
_EXACT = 2**53  # a browser's numbers are exact up to here


@cache
def examples() -> dict[str, str]:
    """Title -> SQL, from analytics/queries/examples; the first line of each file is its title."""
    found: dict[str, str] = {}
    folder = resources.files("rankscope.analytics") / "queries" / "examples"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            title, _, sql = file.read_text().partition("\n")
            found[title.removeprefix("-- ")] = sql.strip()
    return found


def limited(sql: str) -> str:
    """`sql` cut to one row more than the limit, so that a cut is noticed.

    Raises:
        UserError: it is not one statement that only reads.
    """
    text = sql.strip().rstrip(";").strip()
    check_reads_only(text)
    return f"SELECT * FROM (\n{text}\n) LIMIT {ROW_LIMIT + 1}"


def run_sql(store: Store, sql: str, run: str | None) -> tuple[pa.Table, float]:
    """The result, at most ROW_LIMIT + 1 rows, and the seconds it took.

    Args:
        store: to ask.
        sql: what a person typed; $run in it is `run`.
        run: a run's id.

    Raises:
        UserError: refused, wrong, or too slow; in one line.
    """
    params = {"run": run} if run and "$run" in sql else {}
    began = time.perf_counter()
    table = store.query_untrusted(limited(sql), params, time_limit_s=TIME_LIMIT_S)
    return table, time.perf_counter() - began


def displayable(table: pa.Table) -> pa.Table:
    """Integers that a browser would round, such as times in nanoseconds, as text."""
    for place, field in enumerate(table.schema):
        if pa.types.is_integer(field.type) or pa.types.is_decimal(field.type):
            high = pc.max(pc.abs(table.column(place))).as_py()
            if high is not None and high > _EXACT:
                table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    return table
