"""Header of a run: the verdict in words, the numbers that matter with their definitions, the state ribbon."""

from collections.abc import Sequence
from typing import Any

from rankscope.app import human
from rankscope.app.markup import Markup, div, span, tag
from rankscope.app.parts.words import EFFECTIVE, FAILURES, STEPS, TIME_TO_RECOVER, TIME_TO_START, tip
from rankscope.app.theme import LEDGER


def tiles(run: dict[str, Any], phases: Sequence[dict[str, Any]], states: Sequence[dict[str, Any]]) -> Markup:
    """The numbers of a run.

    Args:
        run: a row of v_run.
        phases: rows of queries/init_phases.sql of its first attempt.
        states: rows of queries/lanes.sql with one lane over the whole run.
    """
    slowest = max(phases, key=lambda row: row["max_s"] or 0, default=None)
    start_note = (
        f"slowest: {slowest['phase'].replace('_', ' ')}, rank {slowest['max_rank']}"
        if slowest
        else "no phases recorded"
    )
    failures = run["failures"]
    if not failures:
        recover_note = "no failure seen" if failures == 0 else "not known"
    elif run["time_to_recover_s"] is None:
        recover_note = "not recovered yet"
    else:
        recover_note = (
            f"worst {human.seconds(run['time_to_recover_max_s'])}" if failures > 1 else "one failure"
        )
    numbers = div(
        "rs-tiles",
        _tile("Time to Start", human.seconds(run["time_to_start_s"]), start_note, TIME_TO_START),
        _tile("Time to Recover", human.seconds(run["time_to_recover_s"]), recover_note, TIME_TO_RECOVER),
        _tile(
            "Number of Failures",
            human.count(failures),
            f"in {human.seconds(run['wall_s'])}, {human.plural(run['attempts'], 'attempt')}",
            FAILURES,
        ),
        _tile(
            "Effective training time",
            human.percent(run["ett_capacity"]),
            f"{human.percent(run['ett_time'])} of present ranks' time",
            EFFECTIVE,
        ),
        _tile(
            "Steps kept",
            human.count(run["steps_committed"]),
            f"{human.count(run['steps_lost'])} lost and done again" if run["steps_lost"] else "none lost",
            STEPS,
            side="left",
        ),
    )
    return div("rs rs-card", numbers, _ribbon(states, run["began_ns"], run["began_ns"] + run["wall_ns"]))


def _tile(name: str, value: str, note: str, definition: str, side: str = "") -> Markup:
    unknown = " rs-unknown" if value == human.UNKNOWN else ""
    return div(
        "rs-tile",
        div("rs-tile-name", tip(name, definition, side)),
        div(f"rs-tile-value{unknown}", value),
        div("rs-tile-note", note),
    )


def verdict(run: dict[str, Any], incidents: Sequence[dict[str, Any]]) -> Markup:
    """What happened to the run, in one sentence, and what it cost in a second."""
    if not incidents:
        words = {
            "running": ("No failure so far.", ""),
            "finished": ("Finished without a failure.", "rs-verdict-good"),
            "stalled": (
                "No step commits any more, and no failure was seen: the run is stalled.",
                "rs-verdict-bad",
            ),
        }.get(
            run["status"],
            ("The run ended without success, and no evidence of a cause was recorded.", "rs-verdict-bad"),
        )
        mark = {"finished": "✓", "running": "▶"}.get(run["status"], "‖")
        return div(
            f"rs rs-verdict {words[1]}", span("rs-verdict-mark", mark), div("rs-verdict-say", words[0])
        )
    bad = worst(incidents)
    others = bad["incidents"] - 1
    held = bad["others_held"]
    cost = [
        f"{human.plural(held, 'other rank')} held up" if held else None,
        f"{human.plural(bad['steps_lost'], 'step')} lost" if bad["steps_lost"] else None,
        f"seen after {human.seconds(bad['detect_s'])}" if bad["detect_s"] else None,
        f"back after {human.seconds((bad['recovered_ns'] - bad['began_ns']) / 1e9)}"
        if bad["recovered_ns"]
        else "not recovered",
    ]
    return div(
        "rs rs-verdict rs-verdict-bad",
        span("rs-verdict-mark", "✕"),
        div("rs-verdict-say", sentence(bad["verdict"])),
        span("rs-muted", f"and {human.plural(others, 'more incident')}") if others else span(""),
        div("rs-verdict-more", "; ".join(filter(None, cost)) + "."),
    )


def sentence(text: str | None) -> str:
    """Text with a capital and a full stop."""
    if not text:
        return "The cause is not known."
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def worst(incidents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The incident to speak of first: one that is not over, else the one that took longest."""
    return max(incidents, key=lambda row: (row["recovered"] is False, _cost(row)))


def _cost(row: dict[str, Any]) -> float:
    return float((row["recovered_ns"] or row["began_ns"]) - row["began_ns"])


def _ribbon(pieces: Sequence[dict[str, Any]], t0: int, t1: int) -> Markup:
    """State of the run over time: what most of its ranks did.

    Args:
        pieces: category, begin_ns, end_ns of one lane, in order.
        t0: begin of the ribbon, ns since the epoch.
        t1: its end.
    """
    total = max(t1 - t0, 1)
    out: list[Markup] = []
    at = t0
    for row in pieces:
        if row["begin_ns"] > at:
            out.append(tag("i", style=f"width:{(row['begin_ns'] - at) / total:.4%}"))
        category = LEDGER[row["category"]]
        out.append(
            tag(
                "i",
                style=f"width:{(row['end_ns'] - row['begin_ns']) / total:.4%};background:{category.color}",
                title=f"{category.label}, {human.moment(row['begin_ns'], with_date=False)} for "
                f"{human.nanoseconds(row['end_ns'] - row['begin_ns'])}",
            )
        )
        at = row["end_ns"]
    return div("rs-ribbon", out, role="img", aria_label="state of the run over time")


def ledger_figures(rows: Sequence[dict[str, Any]], run: dict[str, Any]) -> Markup:
    """The ledger as figures, with the check that it closes.

    Args:
        rows: category, ns, rank_s, share_ratio.
        run: a row of v_run.
    """
    by_name = {row["category"]: row for row in rows}
    lines = [
        div(
            "rs-ledger-row",
            span(
                "rs-swatch" + (" rs-hatch" if name == "unexplained" else ""),
                style=f"background-color:{category.color}",
            ),
            span("", tip(category.label, category.meaning)),
            span("rs-n rs-muted", human.seconds(by_name[name]["rank_s"])),
            span("rs-n", human.percent(by_name[name]["share_ratio"])),
        )
        for name, category in LEDGER.items()
        if name in by_name and (by_name[name]["ns"] or name == "unexplained")
    ]
    total = sum(row["ns"] for row in rows)
    useful = sum(
        by_name[name]["ns"] for name, category in LEDGER.items() if category.effective and name in by_name
    )
    return div(
        "rs",
        div("rs-ledger", lines),
        div(
            "rs-ledger-sum",
            span(
                "",
                "sum ",
                tag("b", f"{total:,} ns"),
                f" = {human.seconds(total / 1e9)} of rank time = 100\u2009%",
            ),
            span(
                "",
                "effective ",
                tag("b", human.percent(useful / total if total else None)),
                " (productive, straggler wait, data wait)",
            ),
            span("", f"{human.plural(run['ranks'], 'rank')} × {human.seconds(run['wall_s'])} wall"),
        ),
    )
