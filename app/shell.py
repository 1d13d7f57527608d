"""The frame of every page: navigation, header of a run, panels with their data, the line of coverage."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import streamlit as st

from rankscope.app import empty, human
from rankscope.app.db import Answer, ask, store
from rankscope.app.links import linked
from rankscope.app.markup import Markup, div, span, tag
from rankscope.app.parts.words import status
from rankscope.app.state import PAGES, href, where
from rankscope.app.theme import Mode

_CSS = Path(__file__).parent / "static" / "rankscope.css"
REFRESH_S = 2.0


def mode() -> Mode:
    """The theme that the person looks at."""
    return "dark" if st.context.theme.type == "dark" else "light"


def style() -> None:
    """Put the style sheet in; once a page."""
    st.html(_CSS)


def navigation() -> None:
    """The sidebar. Links of a run keep the run."""
    run = where().run or newest_run()
    with st.sidebar:
        st.html(div("rs-brand", span("rs-logo"), "Rankscope"))
        st.page_link(PAGES[""], label="Runs", icon=":material/table_rows:")
        st.page_link(
            PAGES["sql"], label="SQL", icon=":material/terminal:", query_params={"run": run} if run else {}
        )
        if run:
            st.html(div("rs-nav-title", "Run") + div("rs-nav-run", run, title=run))
            keep = {"run": run}
            st.page_link(PAGES["run"], label="Overview", icon=":material/monitoring:", query_params=keep)
            st.page_link(PAGES["time"], label="Time", icon=":material/schedule:", query_params=keep)
            st.page_link(PAGES["what-if"], label="What if", icon=":material/tune:", query_params=keep)


def coverage(run: dict[str, Any]) -> Markup:
    """How much of the truth was seen: belongs under every number of a run."""
    expected, reporting = run["ranks_expected"], run["ranks_reporting"]
    silent = (expected or 0) - (reporting or 0)
    dropped = run["dropped"] or 0
    return div(
        "rs-coverage",
        span(
            "rs-gap" if silent > 0 else "",
            f"{human.count(reporting)} of {human.plural(expected, 'rank')} reporting"
            + (f", {human.count(silent)} silent" if silent > 0 else ""),
        ),
        span("rs-gap" if dropped else "", f"{human.plural(dropped, 'record')} dropped"),
        span("rs-gap", f"{human.plural(run['errors'], 'unreadable record')}") if run["errors"] else None,
        span("", f"as of {human.moment(run['as_of_ns'])} UTC"),
    )


def run_header(run: dict[str, Any], page: str) -> None:
    """Name, status, facts and coverage of a run."""
    facts = [
        ("", human.plural(run["ranks"], "rank")),
        ("", human.plural(run["hosts"], "host")),
        ("", human.plural(run["replica_groups"], "replica group") if run["replica_groups"] else None),
        ("", human.plural(run["attempts"], "attempt")),
        ("began ", f"{human.moment(run['began_ns'])} UTC"),
        ("took " if run["status"] != "running" else "running for ", human.seconds(run["wall_s"])),
        ("", " · ".join(filter(None, (run["framework"], run["backend"], run["device_kind"]))) or None),
        ("", None if run["origin"] == "recorded" else run["origin"]),
    ]
    linked(
        div(
            "rs",
            div("rs-crumb", tag("a", "Runs", href=href("")), f" / {page}"),
            div("rs-title", tag("h1", run["run_id"]), status(run["status"])),
            div(
                "rs-facts",
                [span("", name, tag("b", value)) for name, value in facts if value],
            ),
            div("rs-facts", span("rs-mono rs-command", run["command"], title=run["command"]))
            if run["command"]
            else None,
            tag("div", coverage(run), style="margin-top:6px"),
        ),
        key="run-header",
    )


def newest_run() -> str | None:
    """Id of the run that began last, or None."""
    row = ask("runs", as_of=None, limit=1).first()
    return row["run_id"] if row else None


def run_of_page() -> dict[str, Any] | None:
    """The run that the URL names, the newest when it names none; None when it is not there."""
    run_id = where().run
    if run_id is None or run_id == "latest":
        run_id = newest_run()
        if run_id is None:
            return None
    return ask("run", as_of=None, run=run_id).first()


def say_what_is_missing() -> None:
    """In place of a run's page, when its run is not there."""
    run_id = where().run
    if run_id is None or newest_run() is None:
        empty.no_runs(store().url)
    else:
        empty.no_such_run(run_id, store().url)


@contextmanager
def panel(
    key: str, question: str, answer: Answer | None = None, *, unit: str = "", stretch: bool = False
) -> Iterator[None]:
    """A framed part of a page that answers one question, with its data behind one button.

    Args:
        key: unique on the page.
        question: the title.
        answer: what the part shows; gives "Show SQL", CSV and Parquet.
        unit: unit and how to read it, after the title.
        stretch: be as tall as the panel beside it.
    """
    with st.container(key=f"panel-{key}", height="stretch" if stretch else "content"):
        title = div("rs rs-panel-title", question, tag("small", unit) if unit else None)
        if answer is None:
            st.html(title)
        else:
            with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small"):
                st.html(title)
                _data(key, answer)
        yield


def _data(key: str, answer: Answer) -> None:
    with (
        st.container(key=f"data-{key}", width="content"),
        st.popover("SQL and data", type="tertiary", key=f"popover-{key}"),
    ):
        st.code(answer.shown, language="sql", wrap_lines=True)
        with st.container(horizontal=True):
            st.download_button(
                "CSV",
                lambda: as_csv(answer),
                f"{answer.name}.csv",
                "text/csv",
                key=f"csv-{key}",
                on_click="ignore",
            )
            st.download_button(
                "Parquet",
                lambda: as_parquet(answer),
                f"{answer.name}.parquet",
                "application/vnd.apache.parquet",
                key=f"parquet-{key}",
                on_click="ignore",
            )
            st.page_link(
                PAGES["sql"], label="Open in SQL", query_params={"q": answer.shown, "run": where().run or ""}
            )


def as_csv(answer: Answer) -> bytes:
    """The answer as CSV; lists become text, which CSV has no other way to hold."""
    out = BytesIO()
    table = answer.table
    for place, field in enumerate(table.schema):
        if pyarrow.types.is_nested(field.type):
            words = [None if v is None else str(v) for v in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pyarrow.array(words, pyarrow.string()))
    pyarrow.csv.write_csv(table, out)
    return out.getvalue()


def as_parquet(answer: Answer) -> bytes:
    """The answer as a Parquet file."""
    out = BytesIO()
    pyarrow.parquet.write_table(answer.table, out)
    return out.getvalue()
