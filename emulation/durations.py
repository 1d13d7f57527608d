"""Durations as people write them on a command line: 30s, 5ms, 2m, 1.5h, 3d."""

import re

from rankscope.ingest.errors import UserError

_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "": 1.0}
_FORM = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(us|µs|ms|s|m|h|d|)")


def seconds(text: str, option: str) -> float:
    """Seconds of '5ms', '2m', '0.5' (seconds without a unit).

    Raises:
        UserError: it is no duration; the message names `option`.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{option} {text}: give a duration like 5us, 20ms, 3s, 2m, 1h or 1d", status=2)
    return float(match[1]) * _UNITS[match[2]]
