"""Colours, words and the plotly template: one meaning, one colour, on every page and in both themes.

Colours are Okabe and Ito's, which colour-blind people tell apart; tints of one hue belong together. Grey
always means "nothing is known" or "nothing was there".
"""

from dataclasses import dataclass
from typing import Any, Literal

Mode = Literal["light", "dark"]

FONT = "Inter, system-ui, sans-serif"


@dataclass(frozen=True)
class Category:
    """One category of the time ledger, as people see it."""

    label: str
    color: str
    meaning: str
    effective: bool = False


# In the order in which bars stack: what was useful first, what nobody can explain last.
LEDGER: dict[str, Category] = {
    "productive": Category(
        "Productive", "#009E73", "Rest of a step that was committed and never rolled back.", effective=True
    ),
    "straggler_wait": Category(
        "Straggler wait",
        "#5FC7A6",
        "Waiting inside a collective for the last rank to arrive.",
        effective=True,
    ),
    "data_wait": Category("Data wait", "#A9E0CD", "Waiting for a batch.", effective=True),
    "checkpoint": Category("Checkpoint", "#56B4E9", "Blocking part of saving a checkpoint."),
    "eval": Category("Evaluation", "#A8D8F4", "Evaluation."),
    "init": Category(
        "Init", "#0072B2", "Process start until the first step begins, and the warm-up of that step."
    ),
    "restart": Category(
        "Restart", "#E69F00", "The rank has no process and no survivor goes on: everything waits."
    ),
    "detect": Category(
        "Detect",
        "#F0E442",
        "From the failure until somebody saw it; on the failed rank until its process ended.",
    ),
    "quorum": Category("Quorum", "#CC79A7", "Blocked in a call for a quorum."),
    "reconfigure": Category("Reconfigure", "#A6527F", "Rebuilding process groups."),
    "heal": Category("Heal", "#E5B4CD", "A joiner receiving state."),
    "lost": Category(
        "Lost", "#D55E00", "Steps thrown away: not committed, or rolled back to an older checkpoint."
    ),
    "stall": Category("Stall", "#8C3B00", "Excess of a kept step that took over 3 × the reference step."),
    "absent": Category(
        "Absent", "#6B7684", "The rank has no process while its survivors go on: lost capacity."
    ),
    "queue": Category(
        "Queue", "#8E99A6", "No allocation: taken off the wall that effective time divides by."
    ),
    "unexplained": Category("Unexplained", "#B9C0C9", "What no record explains. Shown, never hidden."),
}

NO_DATA = "#B9C0C9"
LOSS = "#0072B2"
BAD = "#D55E00"
GOOD = "#009E73"

# Status of a run: glyph + word + CSS class, never colour alone.
STATUS: dict[str, tuple[str, str, str]] = {
    "running": ("▶", "running", "info"),
    "finished": ("✓", "finished", "good"),
    "failed": ("✕", "failed", "bad"),
    "stalled": ("‖", "stalled", "warn"),
}


@dataclass(frozen=True)
class Ink:
    """Colours of a figure that depend on the theme."""

    text: str
    muted: str
    grid: str
    panel: str
    hover: str
    line: str


INK: dict[Mode, Ink] = {
    "light": Ink("#161B22", "#5A6472", "#E8EBEF", "#FFFFFF", "#FFFFFF", "#0072B2"),
    "dark": Ink("#E3E8EE", "#94A0AE", "#252C36", "#161B22", "#202833", "#56B4E9"),
}


def layout(mode: Mode, *, height: int, **more: Any) -> dict[str, Any]:
    """Layout that every figure shares. `height` in pixels; `more` is merged over it."""
    ink = INK[mode]
    axis = {
        "gridcolor": ink.grid,
        "zeroline": False,
        "linecolor": ink.grid,
        "tickfont": {"size": 11, "color": ink.muted},
        "title": {"font": {"size": 11, "color": ink.muted}, "standoff": 8},
        "automargin": True,
    }
    base: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": ink.text},
        "hoverlabel": {
            "bgcolor": ink.hover,
            "bordercolor": ink.grid,
            "font": {"family": FONT, "size": 12, "color": ink.text},
            "align": "left",
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "bottom",
            "font": {"size": 11, "color": ink.muted},
            "bgcolor": "rgba(0,0,0,0)",
        },
        "xaxis": axis,
        "yaxis": axis,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": ink.muted, "activecolor": ink.text},
        "dragmode": "zoom",
        "uirevision": "keep",  # new data must not undo a person's zoom
        "bargap": 0.25,
    }
    return _merged(base, more)


def _merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in more.items():
        known = out.get(key)
        out[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return out


def axis(mode: Mode, **more: Any) -> dict[str, Any]:
    """A further axis, for figures that have several."""
    return _merged(layout(mode, height=0)["xaxis"], more)
