"""The pen to use: the one in C where it was built, else the one in Python."""

import json
import threading
from collections.abc import Callable
from typing import Any

from rankscope.ingest.pen import Pen, Place


def fast_pen() -> type[Pen] | None:
    """The pen in C, if it was built."""
    try:
        from rankscope.ingest import _fast  # type: ignore[attr-defined,unused-ignore]
    except ImportError:
        return None
    found: type[Pen] = _fast.Pen
    return found


def make_pen(
    ids: dict[str, int],
    intern: Callable[[str], int],
    place: Callable[[int], Place | None],
    wake: Callable[[], object],
    *,
    fast: bool = True,
) -> Pen:
    """A pen that is not pointed at a file yet; see Pen."""
    kind = (fast_pen() if fast else None) or Pen
    return kind(ids, intern, place, wake, threading.main_thread().ident, describe)


def blunt_pen() -> Pen:
    """A pen that never writes: for processes that do not record."""
    return Pen({}, len, lambda slot: None, bool, None, describe)


def describe(attrs: dict[str, Any]) -> str:
    """Attributes as JSON."""
    return json.dumps(attrs, default=str)
