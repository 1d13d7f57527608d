"""Reports as one terminal screen: rich renderables of plain data, nothing read from a store here."""

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rankscope.app.theme import LEDGER, STATUS

_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "info": "cyan"}
_BAR = 40  # characters of the ledger's bar
_INCIDENTS = 5  # shown at most; --json has all


def seconds(value: float | None) -> str:
    """A duration as people say it: 0.31 s, 12.4 s, 3 min 05 s, 2 h 07 min, 12 d 03 h."""
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    if value < 3600:
        return f"{int(value) // 60} min {int(value) % 60:02d} s"
    if value < 86_400:
        return f"{int(value) // 3600} h {int(value) % 3600 // 60:02d} min"
    return f"{int(value) // 86_400} d {int(value) % 86_400 // 3600:02d} h"


def percent(value: float | None) -> str:
    """A ratio in per cent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def count(value: float | None) -> str:
    """A number, thousands apart."""
    return "–" if value is None else f"{value:,}"


def status_text(status: str) -> Text:
    """Glyph and word of a run's status, in its colour."""
    glyph, word, tone = STATUS[status]
    return Text(f"{glyph} {word}", style=_STYLES.get(tone, ""))


def report_screen(report: dict[str, Any]) -> RenderableType:
    """One run: header, ledger, start-up, incidents, coverage."""
    parts: list[RenderableType] = [_header(report), _facts(report), _ledger(report)]
    if report["init"]["phases"]:
        parts.append(_init(report["init"]))
    parts.append(_incidents(report["incidents"]))
    parts.append(_coverage(report))
    return Panel(Group(*parts), title=_title(report), title_align="left")


def _title(report: dict[str, Any]) -> Text:
    return Text.assemble((report["run_id"], "bold"), "  ", status_text(report["status"]))


def _header(report: dict[str, Any]) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    for _ in range(4):
        table.add_column(ratio=1)
    groups = f" in {report['replica_groups']} groups" if report["replica_groups"] else ""
    table.add_row(
        _tile(
            "Time to Start",
            seconds(report["time_to_start_s"]),
            f"{count(report['ranks'])} ranks{groups}, {_plural(report['attempts'], 'attempt')}",
        ),
        _tile(
            "Time to Recover",
            seconds(report["time_to_recover_s"]),
            f"worst {seconds(report['time_to_recover_max_s'])}",
        ),
        _tile(
            "Failures",
            count(report["failures"]),
            _mttf_words(report),
            "red" if report["failures"] else "green",
        ),
        _tile(
            "Effective time",
            percent(report["ett_capacity"]),
            f"{percent(report['ett_time'])} without absent time",
        ),
    )
    return table


def _facts(report: dict[str, Any]) -> Text:
    parts = (
        f"{seconds(report['wall_s'])} from {report['began'] or '–'}",
        f"{count(report['steps_committed'])} steps kept, {count(report['steps_lost'])} lost",
        f"reference step {seconds(report['reference_step_s'])}",
    )
    return Text("; ".join(parts), style="dim")


def _tile(name: str, value: str, detail: str, style: str = "") -> Text:
    return Text.assemble((name, "dim"), "\n", (value, f"bold {style}".strip()), "\n", (detail, "dim"))


def _mttf_words(report: dict[str, Any]) -> str:
    if report["mttf_ci95_h"] is None:
        return ""
    low, high = report["mttf_ci95_h"]
    if report["mttf_h"] is None:
        return f"MTTF over {seconds(low * 3600)} (95 %)"
    return f"MTTF {seconds(report['mttf_h'] * 3600)} (95 %: {seconds(low * 3600)} to {seconds(high * 3600)})"


def _ledger(report: dict[str, Any]) -> Table:
    table = Table(
        title=f"Where {report['ledger_total_rank_s']:,.1f} rank seconds went",
        title_justify="left",
        box=None,
        show_header=False,
        padding=(0, 1),
        title_style="bold",
    )
    total = report["ledger_total_ns"]
    for category, look in LEDGER.items():
        ns = report["ledger_ns"][category]
        if not ns:
            continue
        share = ns / total
        filled = max(1, round(share * _BAR))
        table.add_row(
            Text("■ " + look.label, style=look.color),
            f"{ns / 1e9:,.1f}",
            percent(share),
            Text("█" * filled, style=look.color),
            Text("counts as effective" if look.effective else "", style="dim"),
        )
    table.columns[1].justify = table.columns[2].justify = "right"
    return table


def _init(init: dict[str, Any]) -> Table:
    table = Table(
        title=f"Start-up: {seconds(init['total_s'])} on the slowest rank, {init['slowest_rank']}",
        box=None,
        title_justify="left",
        title_style="bold",
        padding=(0, 1),
    )
    table.add_column("phase")
    for name in ("p50", "p99", "max", "slowest rank"):
        table.add_column(name, justify="right")
    for phase in init["phases"]:
        table.add_row(
            phase["name"],
            seconds(phase["p50_s"]),
            seconds(phase["p99_s"]),
            seconds(phase["max_s"]),
            str(phase["max_rank"]),
        )
    return table


def _incidents(incidents: list[dict[str, Any]]) -> RenderableType:
    if not incidents:
        return Text("✓ no failures", style="green")
    parts: list[RenderableType] = []
    for incident in incidents[:_INCIDENTS]:
        state = "recovered" if incident["recovered"] else "not recovered from"
        parts.append(
            Text.assemble(
                (f"✕ incident {incident['id']}  ", "red"),
                (incident["verdict"], "bold"),
                (f"  {incident['kind']}, confidence {percent(incident['confidence'])}, {state}", "dim"),
            )
        )
        took = ", ".join(
            f"{name} {seconds(incident[key])}"
            for name, key in (
                ("detected in", "detect_s"),
                ("quorum", "quorum_s"),
                ("reconfigured in", "reconfigure_s"),
                ("restarted in", "restart_s"),
                ("healed in", "heal_s"),
                ("stall", "stall_s"),
            )
            if incident[key] is not None
        )
        parts.append(Text(f"    {_plural(incident['steps_lost'], 'step')} lost; {took}", style="dim"))
        for piece in incident["evidence"][:4]:
            message = " ".join((piece["message"] or "").split())[:100]
            who = "" if piece["rank"] is None else f"rank {piece['rank']}: "
            parts.append(Text(f"    {piece['role']:<10} {who}{piece['kind']} {message}", style="dim"))
    if len(incidents) > _INCIDENTS:
        parts.append(Text(f"… and {len(incidents) - _INCIDENTS} more: see --json", style="dim"))
    return Group(*parts)


def _coverage(report: dict[str, Any]) -> Text:
    coverage = report["coverage"]
    whole = coverage["ranks_reporting"] == coverage["ranks_expected"] and not coverage["dropped"]
    text = (
        f"{'●' if whole else '◐'} coverage: {count(coverage['ranks_reporting'])} of "
        f"{count(coverage['ranks_expected'])} ranks, {count(coverage['dropped'])} records dropped"
    )
    if coverage["errors"]:
        text += f", {count(coverage['errors'])} damaged"
    return Text(text, style="dim" if whole else "yellow")


def runs_table(runs: list[dict[str, Any]], width: int) -> Table:
    """All runs, a row each; fewer columns on a terminal under 110 characters."""
    columns: dict[str, Callable[[dict[str, Any]], str | Text]] = {
        "run": lambda run: Text(run["run_id"]),
        "status": lambda run: status_text(run["status"]),
        "began": lambda run: (run["began"] or "–")[:16].replace("T", " "),
        "ranks": lambda run: count(run["ranks"]),
        "attempts": lambda run: count(run["attempts"]),
        "failures": lambda run: count(run["failures"]),
        "start": lambda run: seconds(run["time_to_start_s"]),
        "recover": lambda run: seconds(run["time_to_recover_s"]),
        "effective": lambda run: percent(run["ett_capacity"]),
        "kept": lambda run: count(run["steps_committed"]),
        "lost": lambda run: count(run["steps_lost"]),
        "wall": lambda run: seconds(run["wall_s"]),
    }
    if width < 110:
        for name in ("began", "attempts", "recover", "kept"):
            del columns[name]
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < 2 or name == "began" else "right", overflow="fold")
    for run in runs:
        table.add_row(*(show(run) for show in columns.values()))
    return table


def comparison_table(comparison: dict[str, Any]) -> Table:
    """Two runs: metrics, then the ledger's shares."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("")
    for name in (comparison["a"], comparison["b"], "difference"):
        table.add_column(Text(name), justify="right")
    table.add_column("better")
    for metric in comparison["metrics"]:
        show = _form_of(metric["name"])
        difference = metric["difference"]
        sign = "" if difference is None else "+" if difference > 0 else "−" if difference < 0 else "±"
        better = comparison[metric["better"]] if metric["better"] else ""
        table.add_row(
            metric["name"],
            show(metric["a"]),
            show(metric["b"]),
            sign + show(None if difference is None else abs(difference)),
            Text(better, style="green"),
        )
    table.add_section()
    for row in comparison["ledger"]:
        if row["a_ratio"] or row["b_ratio"]:
            points = None if row["difference"] is None else f"{100 * row['difference']:+.1f} points"
            look = LEDGER[row["category"]]
            table.add_row(
                Text("■ " + look.label, style=look.color),
                percent(row["a_ratio"]),
                percent(row["b_ratio"]),
                points or "–",
                "",
            )
    return table


def _form_of(metric: str) -> Callable[[float | None], str]:
    if metric.endswith("_s"):
        return seconds
    if metric.endswith("_h"):
        return lambda hours: seconds(None if hours is None else hours * 3600)
    return percent if metric.startswith("ett_") or metric.endswith("efficiency") else count


def _plural(number: int | None, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
