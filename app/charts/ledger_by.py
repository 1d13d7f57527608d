"""Where the rank time went, member by member: attempts, ranks, hosts, replica groups or causes."""

from typing import Any

import plotly.graph_objects as go

from rankscope.app import human
from rankscope.app.theme import LEDGER, Mode, layout

_BAR_PX = 19


def ledger_by(rows: list[dict[str, Any]], mode: Mode, *, of_run: bool = False) -> go.Figure:
    """One stacked bar a member, each closing to 100 % of the member's time.

    Args:
        rows: member, number, host, category, rank_s, share_ratio; members in order.
        mode: theme.
        of_run: shares are of the run's time instead, and bars do not close.
    """
    members = list(dict.fromkeys(row["member"] for row in rows))
    figure = go.Figure()
    for name, category in LEDGER.items():
        mine = [row for row in rows if row["category"] == name and row["rank_s"]]
        if not mine:
            continue
        figure.add_bar(
            y=[row["member"] for row in mine],
            x=[(row["share_ratio"] or 0) * 100 for row in mine],
            customdata=[[row["number"], row["host"], name, human.seconds(row["rank_s"])] for row in mine],
            orientation="h",
            name=category.label,
            marker={"color": category.color, "line": {"width": 0}},
            hovertemplate=f"<b>{category.label}</b> %{{x:.2f}} %<br>"
            "%{y}, %{customdata[3]}<extra></extra>",
        )
    figure.update_layout(
        layout(
            mode,
            height=70 + _BAR_PX * max(len(members), 2),
            barmode="stack",
            bargap=0.22,
            margin={"t": 34, "b": 8, "l": 8, "r": 12},
            clickmode="event+select",
            xaxis={"ticksuffix": " %", "rangemode": "tozero", **({} if of_run else {"range": [0, 100]})},
            yaxis={
                "categoryorder": "array",
                "categoryarray": members,
                "autorange": "reversed",
                "showgrid": False,
                "dtick": max(len(members) // 40, 1),
            },
            legend={"itemwidth": 30, "traceorder": "normal"},
        )
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
    return figure
