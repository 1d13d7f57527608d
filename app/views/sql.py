"""SQL: any question that the pages do not answer, over the documented views, read-only."""

import time
from functools import cache
from importlib import resources

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from rankscope.app import human, shell
from rankscope.app.db import Answer, ask, store
from rankscope.app.markup import div, span, tag
from rankscope.app.parts.schema import schema
from rankscope.app.state import put, where
from rankscope.ingest.errors import UserError
from rankscope.ingest.sqltext import check_reads_only

ROW_LIMIT = 10_000
TIME_LIMIT_S = 20.0


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


def run_sql(sql: str, run: str | None) -> tuple[pa.Table, float]:
    """The result, at most ROW_LIMIT + 1 rows, and the seconds it took.

    Raises:
        UserError: refused, wrong, or too slow; in one line.
    """
    params = {"run": run} if run and "$run" in sql else {}
    began = time.perf_counter()
    table = store().query_untrusted(limited(sql), params, time_limit_s=TIME_LIMIT_S)
    return table, time.perf_counter() - began


def displayable(table: pa.Table) -> pa.Table:
    """Integers beyond 2^53, such as times in nanoseconds, as text: a browser's numbers would round them."""
    for place, field in enumerate(table.schema):
        if pa.types.is_integer(field.type) or pa.types.is_decimal(field.type):
            high = pc.max(pc.abs(table.column(place))).as_py()
            if high is not None and high > 2**53:
                table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    return table


def _editor(run: str | None) -> str:
    if "sql" not in st.session_state:
        st.session_state["sql"] = st.query_params.get("q") or next(iter(examples().values()))

    def take() -> None:
        chosen = st.session_state["example"]
        if chosen:
            st.session_state["sql"] = examples()[chosen]

    with shell.panel("editor", "Ask the store", unit="read-only, over the documented views"):
        st.selectbox(
            "Example",
            list(examples()),
            index=None,
            key="example",
            on_change=take,
            placeholder="Begin with an example…",
            label_visibility="collapsed",
        )
        text = st.text_area("SQL", key="sql", height=190, label_visibility="collapsed") or ""
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Run", type="primary", icon=":material/play_arrow:", key="run-sql")
            st.html(
                div(
                    "rs rs-muted",
                    f"Ctrl+Enter runs it. At most {ROW_LIMIT:,} rows and {TIME_LIMIT_S:g} s. ",
                    tag("span", "$run", class_="rs-mono"),
                    f" is {run}." if run else " is the newest run.",
                )
            )
    return text


def _result(sql: str, run: str | None) -> None:
    try:
        table, took_s = run_sql(sql, run)
    except UserError as error:
        st.html(
            div(
                "rs rs-verdict rs-verdict-bad",
                span("rs-verdict-mark", "✕"),
                tag("pre", str(error), class_="rs-error"),
            )
        )
        return
    cut = table.num_rows > ROW_LIMIT
    table = table.slice(0, ROW_LIMIT)
    words = f"{'the first ' if cut else ''}{human.plural(table.num_rows, 'row')} in {human.seconds(took_s)}"
    answer = Answer("result", sql, {"run": run}, table)
    with shell.panel("result", "Result", unit=words):
        shown = displayable(table)
        st.dataframe(
            shown,
            hide_index=True,
            key="result",
            height="auto" if table.num_rows < 12 else 480,
            column_config={
                field.name: st.column_config.NumberColumn(format="plain")
                for field in shown.schema
                if pa.types.is_integer(field.type)
            },
        )
        with st.container(horizontal=True):
            st.download_button(
                "CSV",
                lambda: shell.as_csv(answer),
                "result.csv",
                "text/csv",
                on_click="ignore",
                icon=":material/download:",
            )
            st.download_button(
                "Parquet",
                lambda: shell.as_parquet(answer),
                "result.parquet",
                "application/vnd.apache.parquet",
                on_click="ignore",
                icon=":material/download:",
            )


def main() -> None:
    """The page."""
    run = where().run or shell.newest_run()
    st.html(div("rs", div("rs-title", tag("h1", "SQL"))))
    left, right = st.columns([2.6, 1], gap="small")
    with left:
        text = _editor(run)
        put(q=text)
        if text.strip():
            _result(text, run)
    with right, shell.panel("schema", "Views", unit="open one for its columns"):
        st.html(schema(ask("help", as_of=0).rows()))


main()
