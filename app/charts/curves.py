"""Curves over steps: what the trainer logged, and how long steps took."""

import plotly.graph_objects as go
import pyarrow as pa

from rankscope.app.theme import BAD, INK, Mode, layout

_DASH = ("solid", "dash", "dot", "dashdot")


def _by_attempt(table: pa.Table) -> dict[int, list[dict[str, float]]]:
    grouped: dict[int, list[dict[str, float]]] = {}
    for row in table.to_pylist():
        grouped.setdefault(row["attempt"], []).append(row)
    return grouped


def scalar(points: pa.Table, name: str, mode: Mode) -> go.Figure:
    """One logged value over steps, a line an attempt, earlier attempts faint.

    Args:
        points: attempt, step, mean, low, high.
        name: of the scalar.
        mode: theme.
    """
    grouped = _by_attempt(points)
    last = max(grouped, default=0)
    figure = go.Figure()
    for attempt, rows in grouped.items():
        figure.add_scatter(
            x=[row["step"] for row in rows],
            y=[row["mean"] for row in rows],
            mode="lines+markers" if len(rows) == 1 else "lines",
            name=f"attempt {attempt}",
            line={
                "color": INK[mode].line if attempt == last else INK[mode].muted,
                "width": 2 if attempt == last else 1.4,
            },
            hovertemplate=f"step %{{x:,}}: {name} %{{y:.5g}}<br>attempt {attempt}<extra></extra>",
        )
    figure.update_layout(
        layout(
            mode,
            height=300,
            margin={"t": 26},
            showlegend=len(grouped) > 1,
            xaxis={"title": {"text": "step"}},
            yaxis={"nticks": 6},
        )
    )
    return figure


def step_times(slices: pa.Table, reference_s: float | None, mode: Mode) -> go.Figure:
    """Step time over steps: median rank, 95th percentile, slowest.

    Args:
        slices: attempt, step, p50_s, p95_s, max_s, max_rank.
        reference_s: the run's reference step.
        mode: theme.
    """
    ink = INK[mode]
    figure = go.Figure()
    for place, (attempt, rows) in enumerate(_by_attempt(slices).items()):
        steps = [row["step"] for row in rows]
        figure.add_scatter(
            x=steps,
            y=[row["max_s"] for row in rows],
            mode="lines",
            name="slowest rank",
            legendgroup="max",
            showlegend=place == 0,
            line={"color": BAD, "width": 1},
            customdata=[row["max_rank"] for row in rows],
            hovertemplate="step %{x:,}: slowest %{y:.3g} s, rank %{customdata}<br>"
            f"attempt {attempt}<extra></extra>",
        )
        figure.add_scatter(
            x=steps,
            y=[row["p95_s"] for row in rows],
            mode="lines",
            name="95th percentile",
            legendgroup="p95",
            showlegend=place == 0,
            line={"color": ink.muted, "width": 1, "dash": "dot"},
            hovertemplate=f"step %{{x:,}}: p95 %{{y:.3g}} s<br>attempt {attempt}<extra></extra>",
        )
        figure.add_scatter(
            x=steps,
            y=[row["p50_s"] for row in rows],
            mode="lines",
            name="median rank",
            legendgroup="p50",
            showlegend=place == 0,
            line={"color": ink.line, "width": 2},
            hovertemplate=f"step %{{x:,}}: median %{{y:.3g}} s<br>attempt {attempt}<extra></extra>",
        )
    if reference_s:
        figure.add_hline(
            y=reference_s,
            line={"color": ink.muted, "width": 1, "dash": "dash"},
            annotation_text="reference",
            annotation_position="bottom right",
            annotation_font={"size": 11, "color": ink.muted},
        )
    figure.update_layout(
        layout(
            mode,
            height=300,
            margin={"t": 26},
            xaxis={"title": {"text": "step"}},
            yaxis={"ticksuffix": " s", "rangemode": "tozero", "nticks": 6},
        )
    )
    return figure
