"""Runs: what trained here, and what it came to."""

import streamlit as st

from rankscope.app import empty, human
from rankscope.app.db import ask, store
from rankscope.app.links import linked
from rankscope.app.markup import div, tag
from rankscope.app.parts.runs_table import runs_table
from rankscope.app.shell import REFRESH_S, panel

LIMIT = 200


def draw() -> None:
    """The table, from what the store holds now."""
    newest = ask("runs", as_of=None, limit=LIMIT)
    runs = newest.rows()
    if not runs:
        empty.no_runs(store().url)
        return
    as_of = max(run["as_of_ns"] or 0 for run in runs)
    ledgers: dict[str, dict[str, float]] = {}
    for row in ask("runs_ledger", as_of=as_of, limit=LIMIT).rows():
        ledgers.setdefault(row["run_id"], {})[row["category"]] = row["share_ratio"] or 0.0
    causes = {row["run_id"]: row for row in ask("runs_causes", as_of=as_of, limit=LIMIT).rows()}
    going = sum(run["status"] == "running" for run in runs)
    unit = human.plural(len(runs), "run") + (f", {going} running" if going else "")
    with panel("runs", "What trained here, and what did it come to?", newest, unit=unit):
        linked(runs_table(runs, ledgers, causes), key="runs-table")
        if len(runs) == LIMIT:
            st.html(div("rs rs-muted", f"The newest {LIMIT} runs; ask for the others on the SQL page."))


st.html(div("rs", div("rs-title", tag("h1", "Runs"))))
st.fragment(draw, run_every=REFRESH_S)()
