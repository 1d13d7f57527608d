"""Time: where it went, member by member; what was to be expected; what to change first."""

from typing import Any

import streamlit as st

from rankscope.analytics.checkpoint_interval import daly, simulated_optimum, young
from rankscope.analytics.interval import Interval
from rankscope.analytics.levers import advice, levers
from rankscope.app import empty, human, shell
from rankscope.app.charts.ett import ett_over_time, interval_curve
from rankscope.app.charts.ledger_by import ledger_by
from rankscope.app.db import Answer, ask
from rankscope.app.parts.advice import advice_line, expected_tiles, lever_table
from rankscope.app.rates import Observed, exact, observed
from rankscope.app.shell import panel
from rankscope.app.state import put
from rankscope.app.theme import LEDGER

_BY = ("attempt", "rank", "host", "replica group", "cause")
_MEMBERS = 40  # bars; the ones with least effective time
_RECORDS = 60
_HOUR_NS = 3600 * 10**9
_MANY = 2000  # ranks; beyond, only the roll-up by minute is fast enough
_REFRESH_S = 6.0
_PICTURE = {"displaylogo": False, "modeBarButtons": [["toImage"]]}


def draw() -> None:
    """The page; again every few seconds while the run goes on."""
    run = shell.run_of_page()
    if run is None:
        shell.say_what_is_missing()
        return
    asked = {"as_of": run["as_of_ns"], "run": run["run_id"]}
    rates = ask("rates", **asked)
    row = rates.first()
    found = observed(row) if row else Observed(None, None, ())
    shell.run_header(run, "Time")
    if found.rates is not None:
        st.html(advice_line(advice(exact(found.rates), run["ranks"]), found.notes))
    st.html(expected_tiles(run, found.rates, found.mttf))
    _ledger(run, asked)
    left, right = st.columns(2, gap="small")
    with left:
        _over_time(run, asked)
    with right:
        _interval(run, rates, found)
    _levers(run, rates, found)


def _ledger(run: dict[str, Any], asked: dict[str, Any]) -> None:
    options = [by for by in _BY if by != "replica group" or run["replica_groups"]]
    wanted = st.query_params.get("by")
    by = wanted if wanted in options else "attempt"
    if by == "cause":
        answer = ask("ledger_by_cause", **asked, limit=_MEMBERS)
    else:
        answer = ask("ledger_by", **asked, by=by, limit=_MEMBERS)
    rows = answer.rows()
    members = rows[0]["members"] if rows else 0
    unit = human.plural(members, by)
    if members > _MEMBERS:
        unit = f"the {_MEMBERS} of {unit} with the least effective time"
    unit += "; a click on a piece shows its records" if by != "cause" else ""
    with panel("ledger-by", "Where did the rank time go?", answer, unit=unit):
        picked = st.segmented_control(
            "By", options, default=by, required=True, key="by-pick", label_visibility="collapsed"
        )
        if picked != by:
            put(by=picked, member=None, category=None)
            st.rerun()
        if not rows:
            empty.none_of("No incident cost this run any time." if by == "cause" else "No rank time yet.")
            return
        figure = ledger_by(rows, shell.mode(), of_run=by == "cause")
        key = f"ledger-by-{by}"
        if by == "cause":
            st.plotly_chart(figure, theme=None, key=key, config=_PICTURE)
            return
        event = st.plotly_chart(
            figure, theme=None, key=key, on_select="rerun", selection_mode=["points"], config=_PICTURE
        )
        points = event["selection"]["points"]
        if points:
            number, host, category, _ = points[0]["customdata"]
            _records(asked, by, number, host, category)


def _records(asked: dict[str, Any], by: str, number: int | None, host: str | None, category: str) -> None:
    records = ask(
        "ledger_records",
        **asked,
        category=category,
        attempt=number if by == "attempt" else None,
        rank=number if by == "rank" else None,
        group=number if by == "replica group" else None,
        host=host,
        limit=_RECORDS,
    )
    with panel(
        "records",
        f"{LEDGER[category].label} of {host or f'{by} {number}'}: the longest stretches",
        records,
        unit="and the records that they rest on",
    ):
        st.dataframe(
            records.table,
            hide_index=True,
            placeholder="–",
            key="records",
            height="auto" if records.table.num_rows < 9 else 320,
            column_config={
                "begin_at": st.column_config.DatetimeColumn("begin (UTC)", format="HH:mm:ss.SSS"),
                "seconds": st.column_config.NumberColumn(format="%.6f"),
            },
        )


def _over_time(run: dict[str, Any], asked: dict[str, Any]) -> None:
    if run["wall_ns"] > _HOUR_NS or run["ranks"] > _MANY:
        points, window = ask("ett_hour", **asked, points=1200), "hour"
    else:
        t1 = run["began_ns"] + max(run["wall_ns"], 1)
        points = ask("ett_fine", **asked, buckets=300, window=30, t0=run["began_ns"], t1=t1)
        window = human.seconds(run["wall_s"] / 10)
    with panel(
        "ett", "How effective was it, when?", points, unit="effective training time, UTC", stretch=True
    ):
        if not points.table.num_rows:
            empty.none_of("No rank time yet.")
            return
        st.plotly_chart(
            ett_over_time(points.table, window, shell.mode()), theme=None, key="ett", config=_PICTURE
        )


@st.cache_data(show_spinner=False, max_entries=50)
def _optimum(failures: int, exposure_s: float, write_s: float) -> Interval:
    return simulated_optimum(failures, exposure_s, write_s, draws=60)


def _interval(run: dict[str, Any], rates: Answer, found: Observed) -> None:
    with panel(
        "interval", "Is the checkpoint interval right?", rates, unit="expected effective time", stretch=True
    ):
        if found.rates is None:
            empty.none_of("; ".join(found.notes).capitalize() + ".")
            return
        now = exact(found.rates)
        write = now.checkpoint_write_s.value
        if not write or found.mttf is None or found.mttf.value is None:
            why = "saving costs nothing that was recorded" if not write else "no failure was seen"
            every = human.seconds(now.checkpoint_interval_s.value)
            empty.none_of(f"There is no best interval while {why}: every {every} now.")
            return
        mttf_s = found.mttf.value * 3600
        marks = [("Young", young(write, mttf_s)), ("Daly", daly(write, mttf_s))]
        simulated = _optimum(found.mttf.failures, found.mttf.exposure_h * 3600, write)
        marks.append(("simulated", simulated.value))
        st.plotly_chart(
            interval_curve(now, marks, simulated, shell.mode()), theme=None, key="interval", config=_PICTURE
        )


def _levers(run: dict[str, Any], rates: Answer, found: Observed) -> None:
    if found.rates is None:
        return
    with panel(
        "levers", "What would each change give back?", rates, unit="by form (c), one change at a time"
    ):
        st.html(lever_table(levers(exact(found.rates), run["ranks"])))


def main() -> None:
    """The page."""
    run = shell.run_of_page()
    goes_on = run is not None and run["status"] in ("running", "stalled")
    st.fragment(draw, run_every=_REFRESH_S if goes_on or run is None else None)()


main()
