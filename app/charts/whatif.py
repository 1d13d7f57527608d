"""What effective time would be: with replica groups and without, along one parameter."""

import math
from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from rankscope.analytics.whatif import Point, Result
from rankscope.app import human
from rankscope.app.charts.ledger import ink_on
from rankscope.app.theme import BAD, GOOD, INK, LEDGER, Mode, layout


def whatif_curve(
    points: Sequence[Point], now: float, axis_title: str, write: Callable[[float], str], mode: Mode
) -> go.Figure:
    """Both ways of running over one parameter, with bands from 5 to 95 % of runs.

    Args:
        points: in order of their value.
        now: the scenario's own value.
        axis_title: what is varied, with its unit.
        write: a value in words.
        mode: theme.
    """
    ink = INK[mode]
    x = [point.value for point in points]
    words = [write(value) for value in x]
    figure = go.Figure()
    for name, color, bands in (
        ("with replica groups", GOOD, [point.isolated for point in points]),
        ("synchronous", BAD, [point.synchronous for point in points]),
    ):
        figure.add_scatter(
            x=[*x, *reversed(x)],
            y=[100 * band.p95 for band in bands] + [100 * band.p5 for band in reversed(bands)],
            fill="toself",
            fillcolor=_wash(color),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=x,
            y=[100 * band.mean for band in bands],
            mode="lines",
            name=name,
            line={"color": color, "width": 2.5, "dash": "solid" if color == GOOD else "dash"},
            customdata=words,
            hovertemplate=f"%{{customdata}}: %{{y:.1f}} % {name}<extra></extra>",
        )
    figure.add_vline(x=now, line={"color": ink.muted, "width": 1, "dash": "dot"})
    figure.add_annotation(
        x=_log10(now), y=1, xref="x", yref="paper", text=f"now {write(now)}", showarrow=False,
        xanchor="left", yanchor="top", xshift=5, font={"size": 11, "color": ink.muted},
    )  # fmt: skip
    step = max(len(x) // 6, 1)
    figure.update_layout(
        layout(
            mode,
            height=380,
            margin={"t": 30},
            xaxis={
                "type": "log",
                "title": {"text": axis_title},
                "tickvals": x[::step],
                "ticktext": words[::step],
            },
            yaxis={"ticksuffix": " %", "range": [0, 102], "title": {"text": "effective training time"}},
        )
    )
    return figure


def whatif_ledger(result: Result, mode: Mode) -> go.Figure:
    """Where group time would go, with groups and without: two bars that close to 100 %."""
    figure = go.Figure()
    outcomes = (("with replica groups", result.isolated), ("synchronous", result.synchronous))
    for name, category in LEDGER.items():
        shares = [outcome.ledger_ns.get(name, 0) / outcome.ledger_total_ns for _, outcome in outcomes]  # type: ignore[call-overload]
        if not any(shares):
            continue
        figure.add_bar(
            y=[words for words, _ in outcomes],
            x=[100 * share for share in shares],
            orientation="h",
            name=category.label,
            text=[human.percent(share) if share > 0.05 else "" for share in shares],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"size": 12, "color": ink_on(category.color)},
            marker={"color": category.color, "line": {"width": 1, "color": INK[mode].panel}},
            hovertemplate=f"<b>{category.label}</b> %{{x:.2f}} %<extra></extra>",
        )
    figure.update_layout(
        layout(
            mode,
            height=150,
            barmode="stack",
            margin={"t": 34, "r": 12},
            xaxis={"range": [0, 100], "ticksuffix": " %"},
            yaxis={"autorange": "reversed", "showgrid": False},
            legend={"traceorder": "normal"},
        )
    )
    return figure


def _wash(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"


def _log10(value: float) -> float:
    return math.log10(value)
