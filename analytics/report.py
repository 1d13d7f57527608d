"""The verdict on one run as plain data: what `rankscope report --json` prints.

    build_report(store, "latest")["ett_capacity"]

Keys are stable. What is not known is null, with the reason in `notes`.
"""

import datetime
import math
from typing import Any

from rankscope.analytics.reliability import mttf
from rankscope.ingest.errors import UserError
from rankscope.ingest.store import Store
from rankscope.ingest.vocabulary import LedgerCategory

_LONG_LIST = 64  # longer lists of ranks become ranges
_EVIDENCE = 20  # pieces of evidence an incident shows; v_evidence has all


def build_report(store: Store, run_id: str) -> dict[str, Any]:
    """The report on a run; 'latest' is the one that began last.

    Raises:
        UserError: there is no such run.
    """
    run = find_run(store, run_id)
    run_id = run["run_id"]
    notes: dict[str, str] = {}
    ledger_ns = _ledger(store, run_id)
    total_ns = sum(ledger_ns.values())
    report: dict[str, Any] = {
        "run_id": run_id,
        "status": run["status"],
        "origin": run["origin"],
        "ranks": run["ranks"],
        "replica_groups": run["replica_groups"],
        "hosts": run["hosts"],
        "attempts": run["attempts"],
        "began": iso(run["began_ns"]),
        "as_of": iso(run["as_of_ns"]),
        "wall_s": run["wall_s"],
        "wall_ns": run["wall_ns"],
        "time_to_start_s": run["time_to_start_s"],
        "time_to_recover_s": run["time_to_recover_s"],
        "time_to_recover_max_s": run["time_to_recover_max_s"],
        "failures": run["failures"],
        **_mttf(run, notes),
        "steps_committed": run["steps_committed"],
        "steps_lost": run["steps_lost"],
        "reference_step_s": _seconds(run["reference_step_ns"]),
        "step_efficiency": run["step_efficiency"],
        "ett_time": run["ett_time"],
        "ett_capacity": run["ett_capacity"],
        "ett_mfu": run["ett_mfu"],
        "ledger": {category: ns / 1e9 for category, ns in ledger_ns.items()},
        "ledger_total_rank_s": total_ns / 1e9,
        "ledger_ns": ledger_ns,
        "ledger_total_ns": total_ns,
        "coverage": {
            "ranks_expected": run["ranks_expected"],
            "ranks_reporting": run["ranks_reporting"],
            "dropped": run["dropped"],
            "errors": run["errors"],
        },
        "init": _init(store, run_id, notes),
        "incidents": _incidents(store, run_id, notes),
        "notes": notes,
    }
    _explain(report, run, notes)
    return report


def find_run(store: Store, run_id: str) -> dict[str, Any]:
    """The row of v_run; 'latest' is the run that began last, unless one is really called so.

    Raises:
        UserError: there is no such run.
    """
    rows = store.rows("SELECT * FROM v_run WHERE run_id = $run", {"run": run_id})
    if not rows and run_id == "latest":
        rows = store.rows("SELECT * FROM v_run ORDER BY began_ns DESC, run_id DESC LIMIT 1")
        if not rows:
            raise UserError(f"there is no run in {store.url} yet: record one with `rankscope run`")
    if not rows:
        last = store.rows("SELECT run_id FROM v_run ORDER BY began_ns DESC LIMIT 3")
        known = ", ".join(row["run_id"] for row in last) or "none"
        raise UserError(f"there is no run {run_id!r} in {store.url}: the latest there are {known}")
    return rows[0]


def list_runs(store: Store) -> list[dict[str, Any]]:
    """All runs, oldest first: what `rankscope runs --json` prints."""
    return [
        {
            key: row[key]
            for key in (
                "run_id",
                "status",
                "origin",
                "ranks",
                "replica_groups",
                "hosts",
                "attempts",
                "wall_s",
                "time_to_start_s",
                "time_to_recover_s",
                "failures",
                "steps_committed",
                "steps_lost",
                "ett_time",
                "ett_capacity",
                "ranks_expected",
                "ranks_reporting",
            )
        }
        | {"began": iso(row["began_ns"]), "as_of": iso(row["as_of_ns"])}
        for row in store.rows("SELECT * FROM v_run ORDER BY began_ns, run_id")
    ]


def rank_list(ranks: list[int] | None) -> list[int] | list[str]:
    """Ranks as JSON: integers, or ranges like '0-4095' when there are more than 64."""
    ranks = sorted(ranks or [])
    if len(ranks) <= _LONG_LIST:
        return ranks
    return rank_ranges(ranks)


def rank_ranges(ranks: list[int]) -> list[str]:
    """Sorted ranks as ranges: [0, 1, 2, 7] -> ['0-2', '7']."""
    ranges: list[list[int]] = []
    for rank in ranks:
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    return [str(low) if low == high else f"{low}-{high}" for low, high in ranges]


def iso(time_ns: int | None) -> str | None:
    """A time as ISO 8601 in UTC, to the millisecond."""
    if time_ns is None:
        return None
    time = datetime.datetime.fromtimestamp(time_ns / 1e9, datetime.UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _ledger(store: Store, run_id: str) -> dict[str, int]:
    rows = store.rows("SELECT category, ns FROM v_ledger_total WHERE run_id = $run", {"run": run_id})
    found = {row["category"]: int(row["ns"]) for row in rows}
    return {category.value: found.get(category.value, 0) for category in LedgerCategory}


def _mttf(run: dict[str, Any], notes: dict[str, str]) -> dict[str, Any]:
    if not run["wall_s"] or run["failures"] is None:
        notes["mttf_h"] = notes["mttf_ci95_h"] = "the run has not lasted"
        return {"mttf_h": None, "mttf_ci95_h": None}
    estimate = mttf(run["failures"], run["wall_s"] / 3600)
    high = estimate.high if math.isfinite(estimate.high) else None
    if estimate.value is None:
        notes["mttf_h"] = "nothing failed: only a lower bound is known"
        notes["mttf_ci95_h"] = "no upper bound: nothing failed"
    return {"mttf_h": estimate.value, "mttf_ci95_h": [estimate.low, high]}


def _init(store: Store, run_id: str, notes: dict[str, str]) -> dict[str, Any]:
    """Start-up of the first attempt that has any."""
    slowest = store.rows(
        "SELECT attempt, rank, sum(duration_ns) / 1e9 AS total_s FROM v_init_rank WHERE run_id = $run "
        "GROUP BY attempt, rank ORDER BY attempt, total_s DESC, rank LIMIT 1",
        {"run": run_id},
    )
    if not slowest:
        notes["init"] = "no rank has reported its start-up"
        return {"total_s": None, "slowest_rank": None, "phases": []}
    phases = store.rows(
        "SELECT phase AS name, p50_s, p99_s, max_s, max_rank FROM v_init_phase "
        "WHERE run_id = $run AND attempt = $attempt ORDER BY ordinal",
        {"run": run_id, "attempt": slowest[0]["attempt"]},
    )
    return {"total_s": slowest[0]["total_s"], "slowest_rank": slowest[0]["rank"], "phases": phases}


def _incidents(store: Store, run_id: str, notes: dict[str, str]) -> list[dict[str, Any]]:
    evidence: dict[int, list[dict[str, Any]]] = {}
    for row in store.rows(
        "SELECT * FROM v_evidence WHERE run_id = $run AND ordinal <= $most ORDER BY incident_id, ordinal",
        {"run": run_id, "most": _EVIDENCE},
    ):
        evidence.setdefault(row["incident_id"], []).append(
            {key: row[key] for key in ("role", "weight", "kind", "rank", "host", "observer", "message")}
            | {"time": iso(row["time_ns"]), "source": row["source_path"]}
        )
    found = []
    for row in store.rows(
        "SELECT * FROM v_incident WHERE run_id = $run ORDER BY incident_id", {"run": run_id}
    ):
        found.append(
            {"id": row["incident_id"], "attempt": row["attempt"], "began": iso(row["began_ns"])}
            | {
                key: row[key]
                for key in (
                    "kind",
                    "verdict",
                    "confidence",
                    "root_rank",
                    "root_host",
                    "replica_group",
                    "pg",
                    "seq",
                )
            }
            | {key: rank_list(row[key]) for key in ("missing_ranks", "held_ranks", "restarted_ranks")}
            | {
                key: row[key]
                for key in (
                    "detect_s",
                    "quorum_s",
                    "reconfigure_s",
                    "restart_s",
                    "heal_s",
                    "stall_s",
                    "steps_lost",
                    "recovered",
                    "isolated",
                )
            }
            | {"evidence": evidence.get(row["incident_id"], [])}
        )
        _explain_incident(found[-1], notes)
    return found


def _explain_incident(incident: dict[str, Any], notes: dict[str, str]) -> None:
    reasons = {
        "root_rank": "no rank stands out among the evidence",
        "root_host": "no rank stands out, or its host is not known",
        "replica_group": "the run has no replica groups",
        "pg": "no collective was open when it failed, or none was recorded in full",
        "seq": "no collective was open when it failed, or none was recorded in full",
        "quorum_s": "nobody waited for a quorum",
        "reconfigure_s": "no process group was rebuilt",
        "heal_s": "nobody received state",
        "restart_s": "nothing was started again",
        "stall_s": "no step was committed before it, or none since",
    }
    for key, reason in reasons.items():
        if incident[key] is None:
            notes[f"incidents[{incident['id']}].{key}"] = reason


def _explain(report: dict[str, Any], run: dict[str, Any], notes: dict[str, str]) -> None:
    unrecovered = "nothing failed" if not run["failures"] else "no failure has been recovered from"
    reasons = {
        "time_to_start_s": "no step has begun",
        "time_to_recover_s": unrecovered,
        "time_to_recover_max_s": unrecovered,
        "reference_step_s": "no step has been committed",
        "step_efficiency": "no step has been committed",
        "ett_time": "the run has not lasted",
        "ett_capacity": "the run has not lasted",
        "ett_mfu": "the trainer logged no scalar named mfu",
        "wall_s": "nothing has been recorded",
    }
    notes.update({key: reason for key, reason in reasons.items() if report[key] is None})
    silent = (run["ranks_expected"] or 0) - (run["ranks_reporting"] or 0)
    if silent > 0:
        notes["coverage"] = (
            f"{silent} of {run['ranks_expected']} ranks told nothing: their time is unexplained"
        )


def _seconds(value_ns: int | None) -> float | None:
    return None if value_ns is None else value_ns / 1e9
