"""The table of runs: one line a run, its rank time as a small bar."""

from typing import Any

from rankscope.app import human
from rankscope.app.markup import Markup, div, span, tag
from rankscope.app.parts.words import EFFECTIVE, FAILURES, TIME_TO_RECOVER, TIME_TO_START, status, tip
from rankscope.app.state import href
from rankscope.app.theme import LEDGER


def ledger_bar(ns_by_category: dict[str, int]) -> Markup:
    """Rank time by category as a bar; grey and empty when nothing is known."""
    total = sum(ns_by_category.values())
    if not total:
        return div("rs-bar", title="no rank time recorded")
    pieces = [
        tag("i", style=f"width:{ns_by_category[name] / total:.3%};background:{category.color}")
        for name, category in LEDGER.items()
        if ns_by_category.get(name)
    ]
    words = ", ".join(
        f"{category.label} {human.percent(ns_by_category[name] / total)}"
        for name, category in LEDGER.items()
        if ns_by_category.get(name)
    )
    return div("rs-bar", pieces, title=words, role="img", aria_label=words)


def runs_table(runs: list[dict[str, Any]], ledgers: dict[str, dict[str, int]]) -> Markup:
    """Args: runs as in queries/runs.sql, newest first; ledgers: run_id -> category -> ns."""
    head = tag(
        "tr",
        tag("th", "Status"),
        tag("th", "Run"),
        tag("th", "Ranks", class_="rs-n"),
        tag("th", tip("Time to Start", TIME_TO_START), class_="rs-n"),
        tag("th", tip("Failures", FAILURES), class_="rs-n"),
        tag("th", tip("Time to Recover", TIME_TO_RECOVER), class_="rs-n"),
        tag("th", tip("Effective training time", EFFECTIVE), colspan="2"),
        tag("th", "Steps kept", class_="rs-n"),
        tag("th", "Began (UTC)"),
        tag("th", "Duration", class_="rs-n"),
    )
    return div(
        "rs",
        tag(
            "table",
            tag("thead", head),
            tag("tbody", [_row(run, ledgers.get(run["run_id"], {})) for run in runs]),
            class_="rs-table",
        ),
    )


def _row(run: dict[str, Any], ledger: dict[str, int]) -> Markup:
    address = href("run", run=run["run_id"])
    silent = (run["ranks_expected"] or 0) - (run["ranks_reporting"] or 0)
    ranks = human.count(run["ranks"])
    return tag(
        "tr",
        tag("td", status(run["status"])),
        tag(
            "td",
            tag("a", run["run_id"], href=address, title=run["run_id"]),
            span("rs-faint", f"  {run['origin']}") if run["origin"] != "recorded" else None,
            class_="rs-name",
        ),
        tag(
            "td",
            ranks,
            span("rs-faint", f" ({human.count(silent)} silent)") if silent > 0 else None,
            class_="rs-n",
        ),
        tag("td", human.seconds(run["time_to_start_s"]), class_="rs-n"),
        tag("td", human.count(run["failures"]), class_="rs-n"),
        tag("td", human.seconds(run["time_to_recover_s"]), class_="rs-n"),
        tag("td", human.percent(run["ett_capacity"]), class_="rs-n"),
        tag("td", ledger_bar(ledger)),
        tag(
            "td",
            human.count(run["steps_committed"]),
            span("rs-faint", f" −{human.count(run['steps_lost'])}", title="lost")
            if run["steps_lost"]
            else None,
            class_="rs-n",
        ),
        tag("td", human.moment(run["began_ns"])[:16], class_="rs-when"),
        tag("td", human.seconds(run["wall_s"]), class_="rs-n"),
        data_href=address,
    )
