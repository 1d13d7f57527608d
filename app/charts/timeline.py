"""What happened, and when: attempts, ranks and steps over one axis of time, the incidents across them."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

from rankscope.app import human
from rankscope.app.theme import BAD, GOOD, INK, LEDGER, Mode, axis, layout

_ROOMY = 12  # lanes that are drawn tall
_LINES = 40  # more incidents than this are marks, not lines
_TOP, _BOTTOM = 20, 24  # margins, pixels
_REASON = {"failed": ("✕", BAD), "finished": ("✓", GOOD), "running": ("▶", "#56B4E9")}


@dataclass(frozen=True)
class Window:
    """The stretch of time that is drawn, ns since the epoch."""

    t0: int
    t1: int


def _at(ns: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=ns / 1000)


def _ms(ns: int) -> float:
    return ns / 1e6


def timeline(
    lanes: pa.Table,
    names: Sequence[str],
    attempts: Sequence[dict[str, Any]],
    steps: pa.Table,
    incidents: Sequence[dict[str, Any]],
    window: Window,
    mode: Mode,
) -> go.Figure:
    """Three bands over one time axis.

    Args:
        lanes: lane, category, begin_ns, end_ns.
        names: of the lanes, first at the top.
        attempts: rows of queries/attempts.sql.
        steps: attempt, step, end_ns, kept.
        incidents: rows of queries/incidents.sql.
        window: what to show.
        mode: theme.
    """
    figure = go.Figure()
    _attempts(figure, attempts, window, mode)
    _lanes(figure, lanes, names)
    _steps(figure, steps, mode)
    _incidents(figure, incidents, window, mode)

    px = {"attempts": 22, "lanes": len(names) * (18 if len(names) <= _ROOMY else 12), "steps": 110}
    gap = 12
    plot = sum(px.values()) + 2 * gap
    height = plot + _TOP + _BOTTOM
    top = 1.0
    domains = {}
    for name, pixels in px.items():
        domains[name] = [max(top - pixels / plot, 0), top]
        top -= (pixels + gap) / plot
    figure.update_layout(
        layout(
            mode,
            height=height,
            barmode="overlay",
            bargap=0.18,
            margin={"t": _TOP, "b": _BOTTOM, "l": 78, "r": 4},
            dragmode="select",
            selectdirection="h",
            showlegend=False,
            hovermode="closest",
            xaxis={
                "type": "date",
                "range": [_at(window.t0), _at(window.t1)],
                "anchor": "y3",
                "showgrid": True,
                "tickformatstops": [
                    {"dtickrange": [None, 1000], "value": "%H:%M:%S.%L"},
                    {"dtickrange": [1000, 60000], "value": "%H:%M:%S"},
                    {"dtickrange": [60000, 86400000], "value": "%H:%M\n%b %d"},
                    {"dtickrange": [86400000, None], "value": "%b %d"},
                ],
            },
            yaxis=axis(
                mode,
                domain=domains["attempts"],
                fixedrange=True,
                showgrid=False,
                range=[-0.5, 0.5],
                tickvals=[0],
                ticktext=["attempts"],
            ),
        )
    )
    figure.update_layout(
        yaxis2=axis(
            mode,
            domain=domains["lanes"],
            fixedrange=True,
            showgrid=False,
            range=[len(names) - 0.5, -0.5],
            tickvals=list(range(len(names))),
            ticktext=list(names),
            tickfont={"size": 11 if len(names) <= _ROOMY else 9, "color": INK[mode].muted},
        ),
        yaxis3=axis(mode, domain=domains["steps"], fixedrange=True, title={"text": ""}, nticks=4),
    )
    figure.add_annotation(
        text="step",
        xref="paper",
        yref="y3 domain",
        x=0,
        y=1,
        xanchor="left",
        yanchor="top",
        xshift=6,
        showarrow=False,
        font={"size": 11, "color": INK[mode].muted},
    )
    return figure


def _attempts(figure: go.Figure, attempts: Sequence[dict[str, Any]], window: Window, mode: Mode) -> None:
    for row in attempts:
        # Cut to the window, so that the label of an attempt that began earlier is still in sight.
        begin = max(row["began_ns"], window.t0)
        end = min(row["ended_ns"] or window.t1, window.t1)
        if end <= begin:
            continue
        glyph, color = _REASON.get(row["end_reason"], ("·", INK[mode].muted))
        figure.add_bar(
            y=[0],
            x=[_ms(end - begin)],
            base=[_at(begin)],
            orientation="h",
            width=0.8,
            marker={"color": INK[mode].grid, "line": {"width": 1, "color": color}},
            text=[f"{glyph} attempt {row['attempt']}"],
            textposition="inside",
            insidetextanchor="start",
            textangle=0,
            textfont={"size": 11, "color": INK[mode].text},
            constraintext="none",
            hovertemplate=(
                f"<b>attempt {row['attempt']}</b> {row['end_reason']}<br>"
                f"{human.plural(row['world_size'], 'rank')}, "
                f"steps {human.count(row['first_step'])} to {human.count(row['last_step'])}<br>"
                f"{human.count(row['steps_kept'])} kept, {human.count(row['steps_lost'])} lost, "
                f"init {human.seconds(row['init_s'])}<extra></extra>"
            ),
        )


def _lanes(figure: go.Figure, lanes: pa.Table, names: Sequence[str]) -> None:
    by_category: dict[str, list[dict[str, Any]]] = {}
    for row in lanes.to_pylist():
        by_category.setdefault(row["category"], []).append(row)
    for name, category in LEDGER.items():
        rows = by_category.get(name)
        if not rows:
            continue
        figure.add_bar(
            y=[row["lane"] for row in rows],
            x=[_ms(row["end_ns"] - row["begin_ns"]) for row in rows],
            base=[_at(row["begin_ns"]) for row in rows],
            customdata=[
                [names[row["lane"]], human.nanoseconds(row["end_ns"] - row["begin_ns"])] for row in rows
            ],
            orientation="h",
            yaxis="y2",
            width=0.82,
            name=category.label,
            marker={"color": category.color, "line": {"width": 0}},
            hovertemplate=(
                f"<b>{category.label}</b> %{{customdata[0]}}<br>%{{base|%H:%M:%S.%L}} for %{{customdata[1]}}"
                "<extra></extra>"
            ),
        )


def _steps(figure: go.Figure, steps: pa.Table, mode: Mode) -> None:
    by_attempt: dict[int, list[dict[str, Any]]] = {}
    for row in steps.to_pylist():
        by_attempt.setdefault(row["attempt"], []).append(row)
    for attempt, rows in by_attempt.items():
        for kept, color, word in ((True, GOOD, "kept"), (False, BAD, "lost")):
            mine = [row for row in rows if bool(row["kept"]) is kept]
            if not mine:
                continue
            figure.add_scatter(
                x=[_at(row["end_ns"]) for row in mine],
                y=[row["step"] for row in mine],
                yaxis="y3",
                mode="lines+markers" if len(mine) < 60 else "lines",
                line={"color": color, "width": 2},
                marker={
                    "size": 4 if kept else 6,
                    "symbol": "circle" if kept else "x-thin-open",
                    "color": color,
                },
                name=word,
                connectgaps=False,
                hovertemplate=f"step %{{y}} {word}<br>attempt {attempt}, %{{x|%H:%M:%S.%L}}<extra></extra>",
            )


def _incidents(figure: go.Figure, incidents: Sequence[dict[str, Any]], window: Window, mode: Mode) -> None:
    inside = [row for row in incidents if window.t0 <= row["began_ns"] <= window.t1]
    if len(inside) > _LINES:
        figure.add_scatter(
            x=[_at(row["began_ns"]) for row in inside],
            y=[0] * len(inside),
            mode="markers",
            marker={"symbol": "x-thin-open", "size": 9, "color": BAD, "line": {"width": 1.5}},
            customdata=[[f"incident {row['incident_id']}: {_cause(row)}"] for row in inside],
            hovertemplate="%{customdata[0]}<br>%{x|%H:%M:%S}<extra></extra>",
        )
        return
    free_from = 0.0  # share of the width that labels have taken
    for row in inside:
        at = (row["began_ns"] - window.t0) / max(window.t1 - window.t0, 1)
        figure.add_shape(
            type="line",
            xref="x",
            yref="paper",
            x0=_at(row["began_ns"]),
            x1=_at(row["began_ns"]),
            y0=0,
            y1=1,
            line={"color": BAD, "width": 1.5, "dash": "dot"},
        )
        late = at > 0.85
        if (at - 0.16 if late else at) >= free_from:
            free_from = at + (0.0 if late else 0.16)
            figure.add_annotation(
                x=_at(row["began_ns"]),
                y=1,
                xref="x",
                yref="paper",
                yanchor="bottom",
                xanchor="right" if late else "left",
                showarrow=False,
                text=f"✕ {_cause(row)}",
                font={"size": 11, "color": INK[mode].text},
                xshift=-3 if late else 0,
            )


def _cause(row: dict[str, Any]) -> str:
    kind = (row["kind"] or "unknown").replace("_", " ")
    return kind if row["root_rank"] is None else f"rank {row['root_rank']}, {kind}"
