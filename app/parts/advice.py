"""What to change first, in words and as a table of what each change would give back."""

from collections.abc import Sequence

from rankscope.analytics.expected import Rates, approximation_a, approximation_b, expected
from rankscope.analytics.levers import Lever
from rankscope.analytics.reliability import Mttf
from rankscope.app import human
from rankscope.app.markup import Markup, div, span, tag
from rankscope.app.parts.words import tip


def advice_line(words: str, notes: Sequence[str]) -> Markup:
    """The sentence for the person who decides, with what it leans on."""
    return div(
        "rs rs-verdict",
        span("rs-verdict-mark", "→"),
        div("rs-verdict-say", words),
        div("rs-verdict-more", "; ".join(notes) + ".") if notes else None,
    )


def lever_table(levers: Sequence[Lever]) -> Markup:
    """One row a lever, the one that gives most first."""
    most = max((lever.gpu_hours_per_day for lever in levers), default=0)

    def row(lever: Lever) -> Markup:
        write = _a_day if lever.name == "failures_per_day" else human.seconds
        share = max(lever.gpu_hours_per_day, 0) / most if most > 0 else 0
        return tag(
            "tr",
            tag("td", lever.words[0].upper() + lever.words[1:]),
            tag("td", f"{write(lever.now)} → {write(lever.then)}", class_="rs-n"),
            tag("td", f"{human.percent(lever.ettr_now)} → {human.percent(lever.ettr_then)}", class_="rs-n"),
            tag("td", f"{max(lever.gpu_hours_per_day, 0):,.1f}", class_="rs-n"),
            tag("td", div("rs-bar", tag("i", style=f"width:{share:.1%};background:#009E73"))),
        )

    return div(
        "rs",
        tag(
            "table",
            tag(
                "thead",
                tag(
                    "tr",
                    tag("th", "Change"),
                    tag("th", "From … to", class_="rs-n"),
                    tag("th", "Expected effective time", class_="rs-n"),
                    tag("th", "Rank-hours a day", class_="rs-n"),
                    tag("th", ""),
                ),
            ),
            tag("tbody", [row(lever) for lever in levers]),
            class_="rs-table",
        ),
    )


def _a_day(value: float | None) -> str:
    if value is None:
        return human.UNKNOWN
    return f"{value:,.0f} a day" if value >= 100 else f"{value:.3g} a day"


def expected_tiles(run: dict[str, object], rates: Rates | None, rate: Mttf | None) -> Markup:
    """Observed beside expected.

    Args:
        run: a row of v_run.
        rates: None where too little is known.
        rate: of the failures.
    """
    tiles = [
        _tile("Effective, all capacity", human.percent(_ratio(run["ett_capacity"])), "observed", CAPACITY),
        _tile("Effective, present ranks", human.percent(_ratio(run["ett_time"])), "observed", TIME),
    ]
    if rates is None:
        tiles.append(_tile("Expected", human.UNKNOWN, "too little is known", EXPECTED))
    else:
        value = expected(rates)
        tiles.append(
            _tile(
                "Expected",
                human.percent(value.value),
                f"between {human.percent(value.low, 0)} and {human.percent(value.high, 0)}",
                f"{EXPECTED} Here (a) {human.percent(approximation_a(rates))}, "
                f"(b) {human.percent(approximation_b(rates))}.",
            )
        )
    if rate is None or rate.value is None:
        low = f"at least {human.seconds(rate.low * 3600)} (95 %)" if rate else "not known"
        tiles.append(_tile("Mean time to failure", human.UNKNOWN, low, MTTF, "left"))
    else:
        tiles.append(
            _tile(
                "Mean time to failure",
                human.seconds(rate.value * 3600),
                f"95 %: {human.seconds(rate.low * 3600)} to {human.seconds(rate.high * 3600)}",
                MTTF,
                "left",
            )
        )
    tiles.append(
        _tile(
            "Step efficiency",
            human.percent(_ratio(run["step_efficiency"])),
            "how even steps are",
            STEP,
            "left",
        )
    )
    return div("rs rs-card", div("rs-tiles", tiles))


CAPACITY = (
    "Rank time in steps that were kept, over all planned rank time but the queue. Lost capacity counts."
)
TIME = "The same over the time of ranks that were there: blind to lost capacity."
EXPECTED = (
    "What this run's own failure rate, restart time, checkpoint interval and write time lead to expect, "
    "form (c) of arXiv 2410.21680, with the least and the most within their bounds; (a) and (b) as checks. "
    "It knows nothing of stragglers, slow data or the first start."
)
MTTF = "Running time over failures, with the 95 % interval of a time-terminated observation."
STEP = "Sum of min(duration, reference) over the sum of durations of kept steps."


def _ratio(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _tile(name: str, value: str, note: str, definition: str, side: str = "") -> Markup:
    unknown = " rs-unknown" if value == human.UNKNOWN else ""
    return div(
        "rs-tile",
        div("rs-tile-name", tip(name, definition, side)),
        div(f"rs-tile-value{unknown}", value),
        div("rs-tile-note", note),
    )
