"""Where the rank time went, as one bar that closes to 100 %."""

from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

from rankscope.app import human
from rankscope.app.theme import INK, LEDGER, Mode, layout

_INSIDE = 0.055  # narrower pieces have no room for their own label


def ledger_bar(ledger: pa.Table, mode: Mode) -> go.Figure:
    """One stacked bar over the categories of the ledger.

    Args:
        ledger: category, rank_s, share_ratio.
        mode: theme.
    """
    by_name: dict[str, dict[str, Any]] = {row["category"]: row for row in ledger.to_pylist()}
    figure = go.Figure()
    for name, category in LEDGER.items():
        row = by_name.get(name)
        if row is None or not row["share_ratio"]:
            continue
        label = (
            f"{category.label} {human.percent(row['share_ratio'])}" if row["share_ratio"] >= _INSIDE else ""
        )
        if row["share_ratio"] < 0.14 and label:
            label = human.percent(row["share_ratio"], 0)
        figure.add_bar(
            y=[""],
            x=[row["share_ratio"] * 100],
            orientation="h",
            name=category.label,
            text=[label],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="none",
            textfont={"size": 12, "color": ink_on(category.color)},
            marker={
                "color": category.color,
                "line": {"width": 1, "color": INK[mode].panel},
                "pattern": {
                    "shape": "/" if name == "unexplained" else "",
                    "fillmode": "overlay",
                    "fgcolor": "#7D8794",
                    "size": 5,
                    "solidity": 0.25,
                },
            },
            hovertemplate=(
                f"<b>{category.label}</b> %{{x:.2f}} %<br>{human.seconds(row['rank_s'])} of rank time"
                f"<br>{category.meaning}<extra></extra>"
            ),
        )
    figure.update_layout(
        layout(
            mode,
            height=36,
            barmode="stack",
            bargap=0,
            showlegend=False,
            margin={"l": 0, "r": 0, "t": 0, "b": 0},
            xaxis={"range": [0, 100], "visible": False, "fixedrange": True},
            yaxis={"visible": False, "fixedrange": True},
        )
    )
    return figure


def ink_on(color: str) -> str:
    """Black or white, whichever reads better on `color` (#rrggbb)."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "#10151B" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.42 else "#FFFFFF"
