"""Two reports side by side.

compare(build_report(store, "before"), build_report(store, "after"))["metrics"][0]
"""

from typing import Any

# Numbers that two runs can be compared by; whether more is better, worse, or neither.
METRICS: dict[str, bool | None] = {
    "ett_capacity": True,
    "ett_time": True,
    "step_efficiency": True,
    "time_to_start_s": False,
    "time_to_recover_s": False,
    "failures": False,
    "mttf_h": True,
    "steps_committed": None,
    "steps_lost": False,
    "reference_step_s": False,
    "wall_s": None,
    "ranks": None,
    "attempts": None,
}


def compare(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Differences b − a: metrics as they are, ledger categories as shares of all planned rank time.

    Returns:
        {a, b, metrics [{name, a, b, difference, better}], ledger [{category, a_ratio, b_ratio, difference}]};
        `better` is 'a', 'b', or null where they are equal, unknown, or neither is better.
    """
    return {
        "a": a["run_id"],
        "b": b["run_id"],
        "metrics": [
            _metric(name, more_is_better, a[name], b[name]) for name, more_is_better in METRICS.items()
        ],
        "ledger": [_share(category, a, b) for category in a["ledger_ns"]],
    }


def _metric(name: str, more_is_better: bool | None, a: float | None, b: float | None) -> dict[str, Any]:
    difference = b - a if a is not None and b is not None else None
    better = None
    if difference and more_is_better is not None:
        better = "b" if (difference > 0) == more_is_better else "a"
    return {"name": name, "a": a, "b": b, "difference": difference, "better": better}


def _share(category: str, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    def ratio(report: dict[str, Any]) -> float | None:
        total = report["ledger_total_ns"]
        return report["ledger_ns"][category] / total if total else None

    first, second = ratio(a), ratio(b)
    return {
        "category": category,
        "a_ratio": first,
        "b_ratio": second,
        "difference": None if first is None or second is None else second - first,
    }
