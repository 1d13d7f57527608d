"""A result as text or file: for people, for spreadsheets, for programs."""

import datetime
import decimal
import io
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rankscope.ingest.errors import UserError

# What would move a terminal's cursor, colour it or turn its text around; names come from other machines.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SHOWN = {"\n": "⏎", "\t": " "}


def write_table(table: pa.Table, form: str, out: Path | None) -> None:
    """Write `table` to `out`, or to stdout.

    Args:
        form: 'table', 'csv', 'json' (a list of objects) or 'parquet'.

    Raises:
        UserError: the file cannot be written.
    """
    data = _TO_BYTES[form](table)
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from error


def _as_table(table: pa.Table) -> bytes:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in table.schema:
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        shown.add_column(Text(column.name), justify="right" if numeric else "left", no_wrap=True)
    for row in table.to_pylist():
        # Text, never markup: brackets in a log line are brackets.
        shown.add_row(*(Text(_words(value)) for value in row.values()))
    out = io.StringIO()
    # Wide enough for every column: a terminal wraps or scrolls, a figure cut short is wrong.
    width = Console(width=100_000).measure(shown).maximum if table.num_columns else 1
    Console(file=out, width=max(width, 1), force_terminal=sys.stdout.isatty()).print(shown)
    return out.getvalue().encode()


def _words(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=_plain)
    return _UNSEEN.sub(lambda found: _SHOWN.get(found[0], "\N{REPLACEMENT CHARACTER}"), str(value))


def _as_csv(table: pa.Table) -> bytes:
    for place, column in enumerate(table.schema):
        if pa.types.is_nested(column.type):  # CSV has no lists
            texts = [
                None if value is None else json.dumps(value, default=_plain)
                for value in table.column(place).to_pylist()
            ]
            table = table.set_column(place, column.name, pa.array(texts, pa.string()))
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out)
    return out.getvalue()


def _as_json(table: pa.Table) -> bytes:
    rows = [{name: _finite(value) for name, value in row.items()} for row in table.to_pylist()]
    return (json.dumps(rows, default=_plain, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _as_parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: object) -> object:
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


_TO_BYTES = {"table": _as_table, "csv": _as_csv, "json": _as_json, "parquet": _as_parquet}
