"""HTML that is safe by construction: text is escaped unless this module made it.

    tag("span", message, class_="rs-muted")     # message may hold anything

Messages of logs, host names and run names come from other machines; they reach a page through `tag` only.
"""

import html
from typing import Any


class Markup(str):
    """HTML that needs no escaping any more."""

    __slots__ = ()

    def __add__(self, other: str) -> "Markup":
        """This and `other` after it; plain text is escaped."""
        return join(self, other)


def safe(value: object) -> Markup:
    """`value` as HTML: escaped, unless it is `Markup` already."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value), quote=True))


def join(*children: object) -> Markup:
    """Pieces one after another. None is nothing; lists and tuples are spread."""
    out: list[str] = []
    for child in children:
        if child is None:
            continue
        out.append(join(*child) if isinstance(child, (list, tuple)) else safe(child))
    return Markup("".join(out))


def tag(name: str, *children: object, **attributes: Any) -> Markup:
    """An element. `class_` is class, `data_tip` is data-tip; None leaves an attribute out."""
    words = [
        f' {key.rstrip("_").replace("_", "-")}="{safe(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return Markup(f"<{name}{''.join(words)}>{join(*children)}</{name}>")


def div(class_: str, *children: object, **attributes: Any) -> Markup:
    """A `<div>`; the most used element here."""
    return tag("div", *children, class_=class_, **attributes)


def span(class_: str, *children: object, **attributes: Any) -> Markup:
    """A `<span>`."""
    return tag("span", *children, class_=class_, **attributes)
