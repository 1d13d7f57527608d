"""What if: the same failures with other rates, restarts, checkpoints, detection, groups and sizes."""

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from rankscope.analytics.whatif import Over, Point, Result, Scenario, curve, simulate
from rankscope.app import human, shell
from rankscope.app.charts.whatif import whatif_curve, whatif_ledger
from rankscope.app.db import ask
from rankscope.app.markup import div
from rankscope.app.parts.whatif_tiles import whatif_tiles
from rankscope.app.rates import mean
from rankscope.app.shell import panel

_MINUTE = 60.0
_SECONDS = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600)
_LONG = (
    10,
    20,
    30,
    60,
    120,
    180,
    300,
    420,
    600,
    900,
    1080,
    1800,
    3600,
    7200,
    14400,
    28800,
    86400,
    172800,
    604800,
)
_SIZES = (*(2**k for k in range(2, 17)), 98_304, 131_072)
_GROUPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_CURVE_POINTS = 25
_RUNS = 24  # of the simulation behind the tiles
_SOURCE = (
    "arXiv 2602.00277: 98,304 GPUs, a failure each 18 min, 10 min to recover; with 12 replica groups a stall "
    "of 3 min. Published: 44 % synchronous, 80 % with groups."
)
_PUBLISHED: dict[str, Any] = {
    "gpus": 98_304, "groups": 12, "mtbf": 1080, "detect": 0, "restart": 600, "stall": 180, "checkpoint": 0,
    "write": 0, "arrivals": "periodically",
}  # fmt: skip

_OVER: dict[str, tuple[Over, str]] = {
    "failure rate": ("mtbf", "time between failures"),
    "groups": ("groups", "replica groups"),
    "restart": ("restart", "time to restart"),
    "detection": ("detection", "time to detect"),
    "checkpoint": ("checkpoint", "training between checkpoints"),
    "size": ("size", "GPUs; failures grow with them"),
}


def _words(value: float) -> str:
    return human.seconds(value).replace(
        "\u2009", " "
    )  # the address holds it, and plain blanks look better there


def _or_none(value: float) -> str:
    return "in restart" if value == 0 else _words(value)


def _nearest(options: tuple[int, ...], value: float | None, default: int) -> int:
    return default if not value else min(options, key=lambda option: abs(math.log((option or 1e-9) / value)))


def from_run(row: dict[str, Any]) -> dict[str, Any]:
    """A scenario from a row of queries/rates.sql: what the run showed, the published values for the rest."""
    return {
        **_PUBLISHED,
        "arrivals": "at random",
        "gpus": _nearest(_SIZES, row["ranks"], 4),
        "groups": _nearest(_GROUPS, row["replica_groups"], 1),
        "mtbf": _nearest(_LONG, row["observed_s"] / row["failures"] if row["failures"] else None, 86400),
        "restart": _nearest(_SECONDS, mean(row["restart_s"]) or row["time_to_start_s"], 600),
        "detect": _nearest((0, *_SECONDS), row["detect_s"], 0),
        "stall": 0,
        "checkpoint": _nearest((0, *_LONG), mean(row["gap_s"]), 0),
        "write": _nearest((0, *_SECONDS), mean(row["write_s"]), 0),
    }


def _slider(label: str, options: tuple[int, ...], key: str, write: Callable[[float], str], help: str) -> int:
    chosen: int = st.select_slider(
        label, options, value=_PUBLISHED[key], format_func=write, key=key, bind="query-params", help=help
    )
    return chosen


def _controls() -> Scenario:
    gpus = _slider("GPUs", _SIZES, "gpus", human.count, "Size of the fleet.")
    groups = _slider(
        "Replica groups",
        _GROUPS,
        "groups",
        human.count,
        "Groups that go on without one that failed. 1: none do.",
    )
    mtbf = _slider("Time between failures", _LONG, "mtbf", _words, "Anywhere in the fleet, on average.")
    detect = _slider("Detection", (0, *_SECONDS), "detect", _words, "From the failure until it is noticed.")
    restart = _slider(
        "Restart",
        _SECONDS,
        "restart",
        _words,
        "From noticing until the failed group, or all, train again.",
    )
    stall = _slider(
        "Stall of the survivors",
        (0, *_SECONDS),
        "stall",
        _words,
        "Quorum and reconfiguration, with groups.",
    )
    checkpoint = _slider(
        "Checkpoint interval", (0, *_LONG), "checkpoint", _or_none,
        "Training between saves. 'in restart': lost work is part of the restart time already.",
    )  # fmt: skip
    write = _slider("Blocking save", (0, *_SECONDS), "write", _words, "Time that a save stops training.")
    arrivals = st.segmented_control(
        "Failures come", ["at random", "periodically"], default="periodically", required=True, key="arrivals",
        bind="query-params",
    )  # fmt: skip
    return Scenario(
        gpus=gpus,
        groups=groups,
        mtbf_s=mtbf,
        arrivals="periodic" if arrivals == "periodically" else "exponential",
        detect_s=detect,
        restart_s=restart,
        stall_s=stall,
        checkpoint_interval_s=checkpoint or None,
        checkpoint_write_s=write,
    )


def _points(scenario: Scenario, over: Over) -> tuple[list[float], float, Callable[[float], str]]:
    """Values along a parameter, the scenario's own, and how to write one."""
    if over == "groups":
        return [float(value) for value in _GROUPS], scenario.groups, human.count
    if over == "size":
        per_group = scenario.gpus / scenario.groups
        sizes = [per_group * groups for groups in _GROUPS]
        return sizes, scenario.gpus, human.count
    now = {
        "mtbf": scenario.mtbf_s,
        "restart": scenario.restart_s,
        "detection": scenario.detect_s or 10.0,
        "checkpoint": scenario.checkpoint_interval_s or 600.0,
    }[over]
    span = 10.0
    grid = [now * span ** (2 * i / (_CURVE_POINTS - 1) - 1) for i in range(_CURVE_POINTS)]
    return grid, now, human.seconds


@st.cache_data(show_spinner=False, max_entries=200)
def _curve(scenario: Scenario, over: Over, values: list[float]) -> list[Point]:
    return curve(scenario, over, values)


@st.cache_data(show_spinner=False, max_entries=200)
def _simulate(scenario: Scenario) -> Result:
    return simulate(scenario, runs=_RUNS)


def draw() -> None:
    """Sliders and what follows from them; only this part runs again when one moves."""
    left, right = st.columns([1, 3], gap="small")
    with left, panel("scenario", "Scenario"):
        scenario = _controls()
    with right:
        result = _simulate(scenario)
        st.html(whatif_tiles(result))
        with panel(
            "whatif-ledger", "Where would the time go?", unit=f"{scenario.days:g} days, {result.runs} runs"
        ):
            st.plotly_chart(
                whatif_ledger(result, shell.mode()), theme=None, key="whatif-ledger",
                config={"displayModeBar": False},
            )  # fmt: skip
        with panel("whatif-curve", "How does effective time follow?", unit="mean, and 5 to 95 % of runs"):
            name = st.segmented_control(
                "Over", list(_OVER), default="failure rate", required=True, key="over", bind="query-params",
                label_visibility="collapsed",
            )  # fmt: skip
            over, title = _OVER[name]
            values, now, write = _points(scenario, over)
            st.plotly_chart(
                whatif_curve(_curve(scenario, over, values), now, title, write, shell.mode()),
                theme=None,
                key="whatif-curve",
                config={"displayModeBar": False},
            )


def main() -> None:
    """The page."""
    run = shell.run_of_page()
    if run is not None:
        shell.run_header(run, "What if")
    with st.container(horizontal=True, vertical_alignment="center"):
        if run is not None and st.button("As this run", icon=":material/content_copy:", key="as-run"):
            row = ask("rates", as_of=run["as_of_ns"], run=run["run_id"]).first()
            if row:
                st.session_state.update(from_run(row))
        if st.button(
            "As published: 98,304 GPUs", icon=":material/menu_book:", key="as-published", help=_SOURCE
        ):
            st.session_state.update(_PUBLISHED)
        st.html(
            div("rs rs-muted", "The same failures meet both ways of running. The address holds the scenario.")
        )
    st.fragment(draw)()


main()
