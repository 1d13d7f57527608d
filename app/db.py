"""Questions to the store, each a file in analytics/queries, answered once for each state of the data.

    answer = ask("ledger", as_of=run["as_of_ns"], run=run_id)
    answer.table            # pyarrow.Table
    answer.shown            # the SQL as a person can run it, values filled in

Pages hold no SQL. An answer is kept until the data has moved on (`as_of` differs), so that a page that
refreshes every two seconds asks again only when something was committed.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

import pyarrow as pa
import streamlit as st

from rankscope.app.opening import open_store, shared_store
from rankscope.ingest.places import default_url
from rankscope.ingest.sqltext import bind
from rankscope.ingest.store import Store


@dataclass(frozen=True)
class Answer:
    """A question with its result."""

    name: str
    sql: str
    params: dict[str, Any]
    table: pa.Table

    @property
    def shown(self) -> str:
        """The SQL with its values in place, to read and to run."""
        return bind(self.sql, self.params).strip()

    def rows(self) -> list[dict[str, Any]]:
        """The result as one dict a row."""
        return [{name: _plain(value) for name, value in row.items()} for row in self.table.to_pylist()]

    def first(self) -> dict[str, Any] | None:
        """The first row, or None when there is none."""
        rows = Answer(self.name, self.sql, self.params, self.table.slice(0, 1)).rows()
        return rows[0] if rows else None


def _plain(value: Any) -> Any:
    """DuckDB's HUGEINT, which sums of nanoseconds are, comes as Decimal; Python's int holds it."""
    return int(value) if isinstance(value, Decimal) else value


@st.cache_resource(show_spinner=False)
def _opened(url: str) -> Store:
    return open_store(url, create=True)


def store() -> Store:
    """The store of this process: the dashboard's own, or opened here when main.py runs alone."""
    return shared_store() or _opened(default_url())


@cache
def sql_of(name: str) -> str:
    """Text of analytics/queries/<name>.sql."""
    return (resources.files("rankscope.analytics") / "queries" / f"{name}.sql").read_text()


@st.cache_data(show_spinner=False, max_entries=400, ttl=3600)
def _result(url: str, name: str, params: dict[str, Any], as_of: int | None) -> pa.Table:
    return store().query(sql_of(name), params)


def ask(name: str, /, *, as_of: int | None, **params: Any) -> Answer:
    """Ask one of analytics/queries.

    Args:
        name: the file, without .sql.
        as_of: state of the data the answer belongs to, ns since the epoch; None asks anew each time.
        params: values of the query's $names.
    """
    if as_of is None:
        table = store().query(sql_of(name), params)
    else:
        table = _result(store().url, name, params, as_of)
    return Answer(name, sql_of(name), params, table)
