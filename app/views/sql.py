"""SQL: any question that the pages do not answer, over the documented views, read-only."""

import pyarrow as pa
import streamlit as st

from rankscope.app import human, shell
from rankscope.app.console import ROW_LIMIT, TIME_LIMIT_S, displayable, examples, run_sql
from rankscope.app.db import Answer, ask, store
from rankscope.app.markup import div, span, tag
from rankscope.app.parts.schema import schema
from rankscope.app.state import put, where
from rankscope.ingest.errors import UserError


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
        table, took_s = run_sql(store(), sql, run)
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
            placeholder="NULL",
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
