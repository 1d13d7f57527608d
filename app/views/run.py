"""One run on one page: the verdict, the numbers, where the time went, what happened when, and why."""

import datetime
from typing import Any

import streamlit as st

from rankscope.app import empty, human, shell
from rankscope.app.charts import curves
from rankscope.app.charts.init import init_waterfall
from rankscope.app.charts.ledger import ledger_bar
from rankscope.app.charts.timeline import Window, timeline
from rankscope.app.db import Answer, ask
from rankscope.app.lanes import pick
from rankscope.app.parts import run_tiles
from rankscope.app.parts.incident import incident
from rankscope.app.shell import panel
from rankscope.app.state import put, where

_INCIDENTS = 500  # of a run that are looked at
_LONG_NS = 2 * 3600 * 10**9
_FEW = 5  # choices that are shown side by side
_MARKS = 3600  # of the lanes; the whole figure stays under 5,000
_CONFIG = {"displaylogo": False, "modeBarButtons": [["resetScale2d", "toImage"]]}
_PICTURE = {"displaylogo": False, "modeBarButtons": [["toImage"]]}


# While a run goes on each part draws itself anew; what costs more to draw does so less often, since the
# training may run on this very machine.
_TOP_S, _TIMELINE_S, _REST_S = 2.0, 4.0, 8.0


def _asked() -> tuple[dict[str, Any], dict[str, Any]] | None:
    run = shell.run_of_page()
    return None if run is None else (run, {"as_of": run["as_of_ns"], "run": run["run_id"]})


def draw_top() -> None:
    """Header, verdict, numbers, ledger."""
    found = _asked()
    if found is None:
        return
    run, asked = found
    incidents = ask("incidents", **asked, limit=_INCIDENTS)
    first_attempt = ask("init_phases", **asked, attempt=0)

    shell.run_header(run, "Overview")
    st.html(run_tiles.verdict(run, incidents.rows()))
    states = _states(run, asked, incidents.rows())
    st.html(run_tiles.tiles(run, first_attempt.rows(), states.rows()))
    _ledger(run, asked)
    if run["status"] != st.session_state["drawn_status"]:
        st.rerun()  # the run ended or came back: begin or stop refreshing


def _picked(run: dict[str, Any], incidents: list[dict[str, Any]]) -> list[int]:
    roots = [row["root_rank"] for row in incidents if row["root_rank"] is not None]
    return pick(run["ranks"] or 0, where().ranks, roots)


def _states(run: dict[str, Any], asked: dict[str, Any], incidents: list[dict[str, Any]]) -> Answer:
    """State of the run over time: by the minute where it ran for hours, else finer, from the ranks picked."""
    t0, t1 = run["began_ns"], run["began_ns"] + max(run["wall_ns"], 1)
    picked = _picked(run, incidents)
    if run["wall_ns"] > _LONG_NS or not picked:
        return ask("ribbon", **asked, buckets=400, t0=t0, t1=t1)
    return ask("lanes", **asked, picked=picked, lanes=1, buckets=400, t0=t0, t1=t1)


def draw_timeline() -> None:
    """Attempts, ranks, steps and incidents over time; and the incident itself."""
    found = _asked()
    if found is not None:
        run, asked = found
        incidents = ask("incidents", **asked, limit=_INCIDENTS).rows()
        _timeline(run, asked, incidents)
        _incident(run, asked, incidents)


def draw_rest() -> None:
    """Start-up, loss, step times."""
    found = _asked()
    if found is not None:
        run, asked = found
        left, right = st.columns(2, gap="small")
        with left:
            _init(run, asked)
        with right:
            _scalar(asked)
        _step_times(run, asked)


def _ledger(run: dict[str, Any], asked: dict[str, Any]) -> None:
    ledger = ask("ledger", **asked)
    with panel("ledger", "Where did the rank time go?", ledger, unit="share of ranks × wall"):
        if not ledger.table.num_rows:
            empty.none_of("No rank has spent any time yet.")
            return
        st.plotly_chart(
            ledger_bar(ledger.table, shell.mode()),
            theme=None,
            key="ledger-bar",
            config=_PICTURE,
        )
        st.html(run_tiles.ledger_figures(ledger.rows(), run))


def _timeline(run: dict[str, Any], asked: dict[str, Any], incidents: list[dict[str, Any]]) -> None:
    here = where()
    whole = Window(run["began_ns"], max(run["began_ns"] + run["wall_ns"], run["began_ns"] + 1))
    window = Window(here.t0, here.t1) if here.t0 is not None and here.t1 is not None else whole
    picked = _picked(run, incidents)
    if not picked:
        with panel("timeline", "What happened, and when?"):
            empty.none_of("No rank is known of this run.")
        return
    answer = ask(
        "lanes",
        **asked,
        picked=picked,
        lanes=len(picked),
        buckets=_MARKS // len(picked),
        t0=window.t0,
        t1=window.t1,
    )
    some = "" if len(picked) == run["ranks"] else f"{len(picked)} of {human.count(run['ranks'])} ranks; "
    unit = f"{some}UTC, colours as above; drag across to look closer"
    with panel("timeline", "What happened, and when?", answer, unit=unit):
        if window != whole and st.button(
            "Show the whole run", icon=":material/zoom_out_map:", key="zoom-out"
        ):
            put(t0=None, t1=None)
            st.rerun()
        figure = timeline(
            answer.table,
            [f"rank {rank:,}" for rank in picked],
            ask("attempts", **asked).rows(),
            ask("steps", **asked, points=900, t0=window.t0, t1=window.t1).table,
            incidents,
            window,
            shell.mode(),
        )
        # The key holds the window: another window is another chart, and its selection starts empty.
        key = f"timeline-{here.t0}-{here.t1}"
        st.plotly_chart(
            figure, theme=None, key=key, on_select=lambda: _zoom(key), selection_mode=["box"], config=_PICTURE
        )


def _zoom(key: str) -> None:
    boxes = st.session_state[key]["selection"]["box"]
    if not boxes:
        return
    t0, t1 = sorted(_nanoseconds(x) for x in boxes[0]["x"])
    if t1 - t0 > 1000:
        put(t0=t0, t1=t1)


def _nanoseconds(moment: Any) -> int:
    when = datetime.datetime.fromisoformat(str(moment)).replace(tzinfo=datetime.UTC)
    since = when - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return since // datetime.timedelta(microseconds=1) * 1000


def _incident(run: dict[str, Any], asked: dict[str, Any], incidents: list[dict[str, Any]]) -> None:
    if not incidents:
        with panel("incident", "What failed, and why?"):
            empty.none_of(
                "No failure was seen in what the ranks recorded."
                if run["failures"] == 0
                else "Not known yet."
            )
        return
    numbers = {row["incident_id"]: row for row in incidents}
    wanted = where().incident
    chosen = wanted if wanted in numbers else run_tiles.worst(incidents)["incident_id"]
    evidence = ask("evidence", **asked, incident=chosen, limit=60)
    touched = ask("incident_ranks", **asked, incident=chosen, limit=6)
    words = human.plural(incidents[0]["incidents"], "incident")
    with panel("incident", "What failed, and why?", evidence, unit=words):
        if len(incidents) > 1:
            picked = st.pills(
                "Incident",
                list(numbers)[:40],
                default=chosen,
                label_visibility="collapsed",
                key="incident-pick",
                format_func=lambda i: f"{i} · rank {numbers[i]['root_rank']} · {numbers[i]['kind']}",
            )
            if picked is not None and picked != chosen:
                put(incident=picked)
                st.rerun()
        st.html(incident(numbers[chosen], touched.rows(), evidence.rows(), run["ranks"]))


def _init(run: dict[str, Any], asked: dict[str, Any]) -> None:
    attempts = run["attempts"] or 1
    attempt = where().attempt
    attempt = attempt if attempt is not None and 0 <= attempt < attempts else 0
    phases = ask("init_phases", **asked, attempt=attempt)
    with panel("init", "What did start-up wait for?", phases, unit="median to slowest rank", stretch=True):
        if attempts > 1:
            picked = st.segmented_control(
                "Attempt",
                list(range(min(attempts, 12))),
                default=attempt,
                key="attempt-pick",
                label_visibility="collapsed",
                format_func=lambda a: f"attempt {a}",
            )
            if picked is not None and picked != attempt:
                put(attempt=picked)
                st.rerun()
        if not phases.table.num_rows:
            empty.none_of("No start-up phase was recorded for this attempt.")
            return
        st.plotly_chart(
            init_waterfall(phases.table, shell.mode()),
            theme=None,
            key="init",
            config=_PICTURE,
        )


def _scalar(asked: dict[str, Any]) -> None:
    names = [row["name"] for row in ask("scalar_names", **asked).rows()]
    if not names:
        with panel("scalar", "Is it learning?", stretch=True):
            empty.empty(
                "No value was logged",
                "Log one from the trainer, rank 0 is enough:",
                'rec.scalar("loss", loss.item())',
            )
        return
    chosen = st.session_state.get("scalar-name")
    name = str(chosen) if chosen in names else names[0]
    points = ask("scalar", **asked, scalar=name, points=600)
    with panel("scalar", "Is it learning?", points, unit=f"{name} over steps", stretch=True):
        if 1 < len(names) <= _FEW:
            st.segmented_control(
                "Value", names, default=name, required=True, key="scalar-name", label_visibility="collapsed"
            )
        elif len(names) > _FEW:
            st.selectbox("Value", names, key="scalar-name", label_visibility="collapsed")
        st.plotly_chart(
            curves.scalar(points.table, name, shell.mode()), theme=None, key="scalar", config=_CONFIG
        )


def _step_times(run: dict[str, Any], asked: dict[str, Any]) -> None:
    slices = ask("step_times", **asked, points=500)
    with panel("steps", "How even are the steps?", slices, unit="seconds a kept step, over its ranks"):
        if not slices.table.num_rows:
            empty.none_of("No step has ended yet.")
            return
        reference = run["reference_step_ns"]
        st.plotly_chart(
            curves.step_times(slices.table, reference / 1e9 if reference else None, shell.mode()),
            theme=None,
            key="step-times",
            config=_CONFIG,
        )


def wait_for_run() -> None:
    """Say that the run is not there, until it is."""
    if shell.run_of_page() is not None:
        st.rerun()
    shell.say_what_is_missing()


def main() -> None:
    """The page, in parts that refresh at their own pace."""
    run = shell.run_of_page()
    if run is None:
        st.fragment(wait_for_run, run_every=_TOP_S)()
        return
    st.session_state["drawn_status"] = run["status"]
    goes_on = run["status"] in ("running", "stalled")
    st.fragment(draw_top, run_every=_TOP_S if goes_on else None)()
    st.fragment(draw_timeline, run_every=_TIMELINE_S if goes_on else None)()
    st.fragment(draw_rest, run_every=_REST_S if goes_on else None)()


main()
