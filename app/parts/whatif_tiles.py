"""The outcome of a scenario in four numbers."""

from rankscope.analytics.whatif import Band, Result
from rankscope.app import human
from rankscope.app.markup import Markup, div
from rankscope.app.parts.words import tip

_ISOLATED = "Share of all capacity in productive steps when replica groups go on without one that failed."
_SYNCHRONOUS = "The same fleet and the same failures, when every failure stops all of it."
_GAIN = "Difference of the two, times GPUs, times 24 hours."
_FAILURES = "In the length of the scenario, on average."


def whatif_tiles(result: Result) -> Markup:
    """With groups, without, what isolation gives back, and the failures they met."""
    gain = result.gpu_hours_gained_per_day
    return div(
        "rs rs-card",
        div(
            "rs-tiles",
            _tile("With replica groups", result.isolated.ett_capacity, _ISOLATED),
            _tile("Synchronous", result.synchronous.ett_capacity, _SYNCHRONOUS),
            _plain("Isolation gives back", f"{gain:,.0f}", "GPU-hours a day", _GAIN),
            _plain("Failures", human.count(result.failures), f"in {result.scenario.days:g} days", _FAILURES),
        ),
    )


def _tile(name: str, band: Band, definition: str) -> Markup:
    note = (
        f"5 to 95 % of runs: {human.percent(band.p5)} to {human.percent(band.p95)}"
        if band.p95 > band.p5
        else "of all capacity"
    )
    return _plain(name, human.percent(band.mean), note, definition)


def _plain(name: str, value: str, note: str, definition: str) -> Markup:
    return div(
        "rs-tile",
        div("rs-tile-name", tip(name, definition)),
        div("rs-tile-value", value),
        div("rs-tile-note", note),
    )
