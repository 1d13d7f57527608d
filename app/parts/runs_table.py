"""The table of runs: one line a run, its rank time as a small bar."""

from typing import Any

from rankscope.app import human
from rankscope.app.markup import Markup, div, join, safe, span, tag
from rankscope.app.parts.words import EFFECTIVE, FAILURES, TIME_TO_RECOVER, TIME_TO_START, status, tip
from rankscope.app.state import href
from rankscope.app.theme import LEDGER


def ledger_bar(shares: dict[str, float]) -> Markup:
    """Rank time by category as a bar; grey and empty when nothing is known."""
    total = sum(shares.values())
    if not total:
        return div("rs-bar", title="no rank time recorded")
    pieces = [
        tag("i", style=f"width:{shares[name] / total:.3%};background:{category.color}")
        for name, category in LEDGER.items()
        if shares.get(name)
    ]
    words = ", ".join(
        f"{category.label} {human.percent(shares[name] / total)}"
        for name, category in LEDGER.items()
        if shares.get(name)
    )
    return div("rs-bar", pieces, title=words, role="img", aria_label=words)


def runs_table(
    runs: list[dict[str, Any]], ledgers: dict[str, dict[str, float]], causes: dict[str, dict[str, Any]]
) -> Markup:
    """One row a run.

    Args:
        runs: rows of queries/runs.sql, newest first.
        ledgers: run_id -> category -> share.
        causes: run_id -> row of queries/runs_causes.sql.
    """
    head = tag(
        "tr",
        tag("th", "Status"),
        tag("th", "Run"),
        tag("th", "Ranks", class_="rs-n"),
        tag("th", tip("Time to Start", TIME_TO_START), class_="rs-n"),
        tag("th", tip("Failures", FAILURES), ", first cause"),
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
            tag(
                "tbody",
                [_row(run, ledgers.get(run["run_id"], {}), causes.get(run["run_id"])) for run in runs],
            ),
            class_="rs-table",
        ),
    )


def _row(run: dict[str, Any], ledger: dict[str, float], cause: dict[str, Any] | None) -> Markup:
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
        tag("td", _failures(run["failures"], cause), class_="rs-when"),
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
        tag("td", human.day(run["began_ns"]), class_="rs-when", title=human.moment(run["began_ns"])),
        tag("td", human.seconds(run["wall_s"]), class_="rs-n"),
        data_href=address,
    )


def _failures(count: int | None, cause: dict[str, Any] | None) -> Markup:
    number = tag("b", human.count(count)) if count else safe(human.count(count))
    if cause is None:
        return number
    kind = (cause["kind"] or "unknown").replace("_", " ")
    words = kind if cause["root_rank"] is None else f"rank {cause['root_rank']}, {kind}"
    return join(number, span("rs-muted", f" · {words}"))
