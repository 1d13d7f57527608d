"""The documented views as a list to open: what each column means, its type and unit."""

from collections.abc import Iterable
from typing import Any

from rankscope.app.markup import Markup, div, span, tag


def schema(rows: Iterable[dict[str, Any]]) -> Markup:
    """Args: rows of v_help: view, column, type, unit, meaning. A row without a column speaks of the view."""
    views: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        views.setdefault(row["view"], []).append(row)
    return div("rs rs-schema", [_view(name, columns) for name, columns in views.items()])


def _view(name: str, rows: list[dict[str, Any]]) -> Markup:
    about = [row["meaning"] for row in rows if not row["column"]]
    columns = [row for row in rows if row["column"]]
    return tag(
        "details",
        tag("summary", span("rs-mono", name), span("rs-faint", f" {len(columns)}") if columns else None),
        [div("rs-muted", text) for text in about],
        [
            div(
                "rs-column",
                div("", span("rs-mono", row["column"]), span("rs-faint", f" {row['type']}".lower())),
                div("rs-muted", row["meaning"], f" ({row['unit']})" if row["unit"] else None),
            )
            for row in columns
        ],
    )
