"""The results of a bench as the page docs/performance.md: figures, and ratios of figures of the same run."""

from typing import Any

EVENTS = ("collective", "span by hand", "with span", "with step", "scalar")


def page(found: dict[str, Any]) -> str:
    """The page as Markdown."""
    machine, recorder = found["machine"], found["recorder"]
    pens = [pen for pen in ("c", "python") if pen in recorder]
    best = recorder[pens[0]]
    parts = [
        "# What it costs",
        "<!-- Made by `python -m tests.bench --docs`: do not edit. -->",
        f"Measured in one run, {machine['when']}, on {machine['cores']} cores ({machine['cpu']}), Python "
        f"{machine['python']}, Linux {machine['kernel']}. Other work on the machine: load average "
        f"{machine['load_before']:.1f} before, {machine['load_after']:.1f} after. Each ratio is of two "
        "figures of this run. `make bench` measures anew.",
        "## A record, on the thread that makes it",
        _table(
            ["event", *(f"{_pen(pen)}, {what}" for pen in pens for what in ("median", "p99"))],
            [
                [name, *(_ns(recorder[pen]["tight"][name][key]) for pen in pens for key in _KEYS)]
                for name in EVENTS
            ]
            + [
                [
                    "collective, in a busy training loop",
                    *(_ns(recorder[pen]["busy"][key]) for pen in pens for key in _KEYS),
                ],
                [
                    "(reading the clock around nothing)",
                    *(_ns(recorder[pen]["empty call"][key]) for pen in pens for key in _KEYS),
                ],
            ],
        ),
        "Per record, the reading of the clock around it included; a span, a step and a collective are two "
        "records. The busy loop copies memory and competes with another Python thread for the GIL. The pen "
        "in C is used where it was built, the one in Python everywhere else.",
        "## Against what others take to log one number",
        _peers(best, found["peers"]),
        "Durable: from the first event until the last is on disk and the tool has closed its run; ours until "
        "all are committed rows of a store. Peers run with their defaults, offline, each in its own process.",
    ]
    if "step" in found:
        step = found["step"]
        pairs = ", ".join(f"{ratio:+.1%}" for ratio in step["pairs_ratio"])
        parts += [
            "## A DDP step",
            f"Two ranks on gloo, a model of 8 layers, {step['records_a_step']:.0f} records a step and rank: "
            f"{step['slow_down_ratio']:+.2%} between the medians of {len(step['pairs_ratio'])} trainings "
            f"without and as many with the recorder, in turn (pair by pair: {pairs}). What differs between "
            "pairs is the noise of this measurement; a slow-down smaller than that cannot be told from none.",
        ]
    if "collector" in found:
        collector = found["collector"]
        parts += [
            "## The collector",
            f"{collector['events_per_s']:,.0f} records/s from segments to committed rows "
            f"({collector['records']:,.0f} records in {collector['seconds']:.1f} s), at most "
            f"{collector['peak_rss_mb']:.0f} MB of memory.",
        ]
    return "\n\n".join(parts) + "\n"


_KEYS = ("median_ns", "p99_ns")


def _peers(best: dict[str, Any], peers: dict[str, dict[str, Any]]) -> str:
    ours, durable = best["tight"]["scalar"], best["durable"]["store_events_per_s"]
    rows = [["Rankscope", _ns(ours["median_ns"]), _ns(ours["p99_ns"]), "1", f"{durable:,.0f}", "1"]]
    for name, peer in peers.items():
        if "missing" in peer:
            rows.append([name, f"missing: {peer['missing']}", "", "", "", ""])
            continue
        rows.append(
            [
                f"{name} {peer['version']}", _ns(peer["median_ns"]), _ns(peer["p99_ns"]),
                f"{peer['median_ns'] / ours['median_ns']:,.0f} ×", f"{peer['events_per_s']:,.0f}",
                f"{durable / peer['events_per_s']:,.0f} ×",
            ]
        )  # fmt: skip
    head = ["", "median", "p99", "ours is cheaper by", "durable, events/s", "ours is faster by"]
    return _table(head, rows)


def _pen(pen: str) -> str:
    return {"c": "in C", "python": "in Python"}[pen]


def _ns(value: float) -> str:
    return f"{value:,.0f} ns" if value < 10_000 else f"{value / 1000:,.1f} µs"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
