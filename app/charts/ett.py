"""Effective training time: over the run, and against the checkpoint interval."""

import datetime
import math
from collections.abc import Sequence

import plotly.graph_objects as go
import pyarrow as pa

from rankscope.analytics.expected import Rates, best_interval, expected, with_value
from rankscope.analytics.interval import Interval
from rankscope.app import human
from rankscope.app.theme import BAD, GOOD, INK, Mode, layout

_POINTS = 81


def ett_over_time(points: pa.Table, window: str, mode: Mode) -> go.Figure:
    """Cumulative and sliding effective time.

    Args:
        points: time_ns, ett_capacity, ett_time, ett_capacity_window (ratios).
        window: words for the sliding window's length.
        mode: theme.
    """
    ink = INK[mode]
    rows = points.to_pylist()
    x = [
        datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=row["time_ns"] // 1000)
        for row in rows
    ]
    figure = go.Figure()
    for column, name, line, fill in (
        ("ett_capacity_window", f"last {window}", {"color": ink.muted, "width": 1}, "tozeroy"),
        ("ett_time", "so far, of present ranks", {"color": GOOD, "width": 1.5, "dash": "dot"}, None),
        ("ett_capacity", "so far, of all capacity", {"color": GOOD, "width": 2.5}, None),
    ):
        figure.add_scatter(
            x=x,
            y=[None if row[column] is None else row[column] * 100 for row in rows],
            mode="lines",
            name=name,
            line=line,
            fill=fill,
            fillcolor="rgba(128,140,155,0.14)",
            hovertemplate=f"{name} %{{y:.1f}} %<extra></extra>",
        )
    figure.update_layout(
        layout(
            mode,
            height=300,
            margin={"t": 30},
            hovermode="x unified",
            xaxis={"type": "date"},
            yaxis={"ticksuffix": " %", "range": [0, 102]},
        )
    )
    return figure


def interval_curve(
    rates: Rates, marks: Sequence[tuple[str, float]], simulated: Interval | None, mode: Mode
) -> go.Figure:
    """Expected effective time over the checkpoint interval.

    Args:
        rates: without bounds; their interval is the one in use.
        marks: name and interval in seconds of each recommendation.
        simulated: the run's own optimum by simulation, with its interval.
        mode: theme.
    """
    ink = INK[mode]
    now = rates.checkpoint_interval_s.value
    best = best_interval(rates)
    known = [now, *(value for _, value in marks)]
    if 0 < best < math.inf:
        known.append(best)
    low, high = math.log10(min(known) / 6), math.log10(max(known) * 6)
    grid = [10 ** (low + (high - low) * i / (_POINTS - 1)) for i in range(_POINTS)]
    values = [expected(with_value(rates, "checkpoint_interval_s", value)).value * 100 for value in grid]
    figure = go.Figure()
    if simulated is not None:
        figure.add_vrect(
            x0=simulated.low, x1=simulated.high, fillcolor="rgba(0,158,115,0.13)", line_width=0, layer="below"
        )
    figure.add_scatter(
        x=grid,
        y=values,
        mode="lines",
        line={"color": ink.line, "width": 2},
        customdata=[human.seconds(value) for value in grid],
        hovertemplate="every %{customdata}: %{y:.1f} % expected<extra></extra>",
        showlegend=False,
    )
    for symbol, color, name, value in (
        ("circle", BAD, "in use", now),
        *(("line-ns-open", ink.muted, name, value) for name, value in marks),
    ):
        figure.add_scatter(
            x=[value],
            y=[expected(with_value(rates, "checkpoint_interval_s", value)).value * 100],
            mode="markers",
            name=f"{name} {human.seconds(value)}",
            marker={"symbol": symbol, "size": 11, "color": color, "line": {"width": 2}},
            hovertemplate=f"{name}: every {human.seconds(value)}, %{{y:.1f}} %<extra></extra>",
        )
    ticks = [t for t in (0.1, 1, 10, 60, 300, 1800, 7200, 43200, 604800) if 10**low <= t <= 10**high]
    figure.update_layout(
        layout(
            mode,
            height=300,
            margin={"t": 50},
            xaxis={
                "type": "log",
                "title": {"text": "seconds of training between checkpoints"},
                "tickvals": ticks,
                "ticktext": [human.seconds(t) for t in ticks],
            },
            yaxis={"ticksuffix": " %", "nticks": 5},
        )
    )
    return figure
