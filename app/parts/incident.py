"""One incident: the cause in words, whom it held up, what each phase of it took, and the evidence."""

from collections.abc import Sequence
from typing import Any

from rankscope.app import human
from rankscope.app.markup import Markup, div, span, tag
from rankscope.app.parts.run_tiles import sentence
from rankscope.app.theme import LEDGER

_PHASES = (
    ("detect_s", "detect", LEDGER["detect"].color),
    ("quorum_s", "quorum", LEDGER["quorum"].color),
    ("reconfigure_s", "reconfigure", LEDGER["reconfigure"].color),
    ("restart_s", "restart", LEDGER["restart"].color),
    ("heal_s", "heal", LEDGER["heal"].color),
)
_ROLE = {
    "root": ("✕", "root cause", "bad"),
    "collateral": ("→", "collateral", "none"),
    "context": ("·", "context", "none"),
}


def incident(row: dict[str, Any], evidence: Sequence[dict[str, Any]], ranks: int) -> Markup:
    """Args: a row of v_incident, its evidence in order, and the ranks of the run."""
    return div("rs rs-incident", _cause(row, ranks), _evidence(row, evidence))


def _cause(row: dict[str, Any], ranks: int) -> Markup:
    facts: list[tuple[str, object]] = [
        ("Kind", row["kind"].replace("_", " ") if row["kind"] else None),
        ("Replica group", row["replica_group"]),
        ("Confidence", human.percent(row["confidence"], 0)),
        (
            "Stopped at",
            f"{row['pg']} #{human.count(row['seq'])}"
            if row["pg"] is not None and row["seq"] is not None
            else None,
        ),
        ("Missing", human.rank_list(row["missing_ranks"]) if row["missing_ranks"] else None),
        ("Held up", _share(row["held_ranks"], ranks)),
        ("Restarted", _share(row["restarted_ranks"], ranks)),
        ("Steps lost", human.count(row["steps_lost"])),
        ("Began", f"{human.moment(row['began_ns'])} UTC"),
        ("Recovered", _recovery(row)),
    ]
    return div(
        "",
        tag("h3", _title(row)),
        div("", sentence(row["verdict"])),
        _phases(row),
        tag(
            "dl",
            [tag("dt", name) + tag("dd", value) for name, value in facts if value is not None],
            class_="rs-kv",
        ),
    )


def _title(row: dict[str, Any]) -> str:
    if row["root_rank"] is None:
        return "Root cause not known"
    return f"Rank {row['root_rank']}" + (f" on {row['root_host']}" if row["root_host"] else "")


def _share(ranks: list[int] | None, of: int) -> str | None:
    if ranks is None:
        return None
    if not ranks:
        return "none"
    return f"{human.rank_list(ranks)} · {human.percent(len(ranks) / of if of else None, 0)}"


def _recovery(row: dict[str, Any]) -> str:
    if row["recovered_ns"] is None:
        return "not yet" if row["recovered"] is None else "no"
    return f"after {human.seconds((row['recovered_ns'] - row['began_ns']) / 1e9)}"


def _phases(row: dict[str, Any]) -> Markup | None:
    known = [(word, row[name], color) for name, word, color in _PHASES if row[name]]
    if not known:
        return None
    total = sum(value for _, value, _ in known)
    return div(
        "rs-phases",
        [
            tag(
                "i",
                f"{word} {human.seconds(value)}",
                style=f"flex:{max(value / total, 0.02):.4f} 1 0;background:{color}",
                title=f"{word} {human.seconds(value)}",
            )
            for word, value, color in known
        ],
    )


def _evidence(incident_row: dict[str, Any], evidence: Sequence[dict[str, Any]]) -> Markup:
    if not evidence:
        return div("rs-muted", "No evidence was recorded for this incident.")
    return tag("ul", [_piece(incident_row, row) for row in evidence], class_="rs-evidence")


def _piece(incident_row: dict[str, Any], row: dict[str, Any]) -> Markup:
    glyph, word, tone = _ROLE.get(row["role"], ("·", row["role"], "none"))
    after = (row["time_ns"] - incident_row["began_ns"]) / 1e9 if row["time_ns"] is not None else None
    who = f"rank {row['rank']}" if row["rank"] is not None else None
    where = [who, row["host"], f"seen by {row['observer']}" if row["observer"] else None, row["source_path"]]
    return tag(
        "li",
        span("", span(f"rs-status rs-{tone}", tag("i", glyph), word)),
        span("rs-said", tag("b", f"{who}: ") if who else None, row["message"]),
        span("rs-muted", ("+" if after and after > 0 else "") + human.seconds(after)),
        span(
            "rs-source",
            " · ".join(filter(None, (row["kind"].replace("_", " "), *where[1:]))),
            span("", f" · weight {row['weight']:.2f}") if row["weight"] else None,
        ),
    )
