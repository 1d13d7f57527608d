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
_SHOWN = 3  # pieces of evidence beside those of the root cause that are seen without a click
_ROLE = {
    "root": ("✕", "root cause", "bad"),
    "collateral": ("→", "collateral", "none"),
    "context": ("·", "context", "none"),
}


def incident(
    row: dict[str, Any], touched: Sequence[dict[str, Any]], evidence: Sequence[dict[str, Any]], ranks: int
) -> Markup:
    """One incident.

    Args:
        row: of queries/incidents.sql.
        touched: rows of queries/incident_ranks.sql.
        evidence: rows of queries/evidence.sql.
        ranks: of the run.
    """
    return div("rs rs-incident", _cause(row, touched, ranks), _evidence(row, evidence))


def _cause(row: dict[str, Any], touched: Sequence[dict[str, Any]], ranks: int) -> Markup:
    facts: list[tuple[str, object]] = [
        ("Kind", row["kind"].replace("_", " ") if row["kind"] else None),
        ("Replica group", row["replica_group"]),
        ("Confidence", human.percent(row["confidence"], 0)),
        (
            "Stopped at",
            f"group {row['pg']}, collective {human.count(row['seq'])}"
            if row["pg"] is not None and row["seq"] is not None
            else None,
        ),
        ("Ranks missing", _ranks(touched, "missing", None)),
        ("Ranks held up", _ranks(touched, "held up", ranks)),
        ("Ranks restarted", _ranks(touched, "restarted", ranks)),
        ("Isolated", "yes: it stayed within its replica group" if row["isolated"] else None),
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


def _ranks(touched: Sequence[dict[str, Any]], way: str, of: int | None) -> str | None:
    mine = [row for row in touched if row["way"] == way]
    if not mine:
        return None if of is None else "none"
    words = [
        f"{row['first_rank']:,}" + ("" if row["last_rank"] == row["first_rank"] else f"–{row['last_rank']:,}")
        for row in mine
    ]
    more = " …" if mine[0]["way_ranges"] > len(mine) else ""
    share = f" · {human.percent(mine[0]['way_ranks'] / of, 0)}" if of else ""
    return ", ".join(words) + more + share


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
    first = [row for row in evidence if row["role"] == "root"]
    first += [row for row in evidence if row["role"] != "root"][:_SHOWN]
    rest = [row for row in evidence if row["role"] != "root"][_SHOWN:]
    return div(
        "",
        tag("ul", [_piece(incident_row, row) for row in first], class_="rs-evidence"),
        tag(
            "details",
            tag("summary", f"{human.plural(len(rest), 'more piece')} of evidence, lighter"),
            tag("ul", [_piece(incident_row, row) for row in rest], class_="rs-evidence"),
            class_="rs-more",
        )
        if rest
        else None,
    )


def _piece(incident_row: dict[str, Any], row: dict[str, Any]) -> Markup:
    glyph, word, tone = _ROLE.get(row["role"], ("·", row["role"], "none"))
    after = (row["time_ns"] - incident_row["began_ns"]) / 1e9 if row["time_ns"] is not None else None
    who = f"rank {row['rank']}" if row["rank"] is not None else None
    told = [
        (row["kind"] or "").replace("_", " ") or None,
        row["host"],
        f"seen by {row['observer']}" if row["observer"] else None,
        f"weight {row['weight']} of 100" if row["weight"] else None,
    ]
    path = row["source_path"]
    return tag(
        "li",
        span("", span(f"rs-status rs-{tone}", tag("i", glyph), word)),
        span("rs-said", tag("b", f"{who}: ") if who else None, row["message"]),
        span("rs-muted", ("+" if after and after > 0 else "") + human.seconds(after)),
        span(
            "rs-source",
            " · ".join(filter(None, told)),
            span("", " · ", span("rs-path", path.rsplit("/", 1)[-1], title=path)) if path else None,
        ),
    )
