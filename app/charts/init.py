"""What start-up waited for: phase by phase, from the median rank to the slowest."""

import plotly.graph_objects as go
import pyarrow as pa

from rankscope.app import human
from rankscope.app.theme import BAD, INK, LEDGER, Mode, layout

PHASE_NAMES = {
    "launch": "launch",
    "spawn": "spawn",
    "import": "import",
    "rendezvous": "rendezvous",
    "store": "store",
    "process_group": "process groups",
    "communicator": "communicator",
    "model": "model",
    "checkpoint_load": "checkpoint load",
    "first_batch": "first batch",
    "first_step": "first step",
}


def init_waterfall(phases: pa.Table, mode: Mode) -> go.Figure:
    """Phases downwards, each starting where the slowest rank left the one before.

    Args:
        phases: phase, ordinal, p50_s, p99_s, max_s, max_rank, in order.
        mode: theme.
    """
    rows = [row for row in phases.to_pylist() if row["max_s"]]
    ink = INK[mode]
    color = LEDGER["init"].color
    starts: list[float] = []
    at = 0.0
    for row in rows:
        starts.append(at)
        at += row["max_s"]
    names = [PHASE_NAMES.get(row["phase"], row["phase"]) for row in rows]
    figure = go.Figure()
    parts = (
        ("median", [row["p50_s"] for row in rows], starts, 1.0),
        (
            "to p99",
            [max(row["p99_s"] - row["p50_s"], 0) for row in rows],
            [s + row["p50_s"] for s, row in zip(starts, rows, strict=True)],
            0.5,
        ),
        (
            "to the slowest",
            [max(row["max_s"] - row["p99_s"], 0) for row in rows],
            [s + row["p99_s"] for s, row in zip(starts, rows, strict=True)],
            0.22,
        ),
    )
    hover = [
        f"<b>{name}</b><br>median {human.seconds(row['p50_s'])}, p99 {human.seconds(row['p99_s'])}<br>"
        f"slowest {human.seconds(row['max_s'])}, rank {row['max_rank']}"
        for name, row in zip(names, rows, strict=True)
    ]
    for label, widths, bases, opacity in parts:
        figure.add_bar(
            y=names,
            x=widths,
            base=bases,
            orientation="h",
            name=label,
            opacity=opacity,
            marker={"color": color if mode == "light" else "#3B9BD6", "line": {"width": 0}},
            hovertext=hover,
            hovertemplate="%{hovertext}<extra></extra>",
        )
    for start, row, name in zip(starts, rows, names, strict=True):
        right = start + row["max_s"]
        if right < 0.62 * at:
            x, anchor, shift, color_of = right, "left", 5, ink.muted
        elif start > 0.38 * at:
            x, anchor, shift, color_of = start, "right", -5, ink.muted
        else:  # the bar leaves no room beside it
            x, anchor, shift, color_of = start, "left", 5, "#FFFFFF"
        figure.add_annotation(
            x=x,
            y=name,
            xanchor=anchor,
            showarrow=False,
            xshift=shift,
            font={"size": 11, "color": color_of},
            text=f"{human.seconds(row['p50_s'])} … {human.seconds(row['max_s'])} · rank {row['max_rank']}",
        )
    if rows:
        worst = max(range(len(rows)), key=lambda i: rows[i]["max_s"])
        figure.add_scatter(
            x=[starts[worst] + rows[worst]["max_s"]],
            y=[names[worst]],
            mode="markers",
            name="slowest phase",
            showlegend=False,
            marker={"symbol": "line-ns-open", "size": 16, "color": BAD, "line": {"width": 3}},
            hovertext=[hover[worst]],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    figure.update_layout(
        layout(
            mode,
            height=58 + 25 * max(len(rows), 1),
            barmode="overlay",
            bargap=0.35,
            margin={"t": 26, "b": 8, "l": 8, "r": 8},
            yaxis={
                "autorange": "reversed",
                "showgrid": False,
                "fixedrange": True,
                "tickfont": {"size": 12, "color": ink.text},
            },
            xaxis={"ticksuffix": " s", "rangemode": "tozero"},
        )
    )
    return figure
