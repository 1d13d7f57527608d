"""Where a person is: the run, attempt, incident, ranks and time window, all of it in the URL.

Any page can be shared by its address. Streamlit drops the query on a change of page, so links between pages
are made here, and carry what still makes sense on the other side.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

import streamlit as st

from rankscope.app.lanes import parse

# Pages by their path in the URL; the file is relative to main.py.
PAGES = {
    "": "views/runs.py",
    "run": "views/run.py",
    "time": "views/time.py",
    "what-if": "views/whatif.py",
    "sql": "views/sql.py",
}


@dataclass(frozen=True)
class Where:
    """What the URL says. Anything missing or unreadable is None: an old link never breaks a page."""

    run: str | None
    attempt: int | None
    incident: int | None
    ranks: tuple[int, ...]  # empty: whichever tell most
    t0: int | None  # ns since the epoch
    t1: int | None


def _number(name: str) -> int | None:
    text = st.query_params.get(name, "")
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None


def where() -> Where:
    """Read the URL."""
    t0, t1 = _number("t0"), _number("t1")
    if t0 is None or t1 is None or t1 <= t0:
        t0 = t1 = None
    return Where(
        run=st.query_params.get("run") or None,
        attempt=_number("attempt"),
        incident=_number("incident"),
        ranks=tuple(parse(st.query_params.get("ranks", ""))),
        t0=t0,
        t1=t1,
    )


def put(**changes: object) -> None:
    """Change the URL of this page; None takes a parameter out."""
    for name, value in changes.items():
        if value is None:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = str(value)


def href(page: str, **params: object) -> str:
    """Address of a page, relative, for links in HTML."""
    query = urlencode({name: value for name, value in params.items() if value is not None})
    return f"{page or './'}{'?' if query else ''}{query}"


def follow(address: str) -> None:
    """Go to an address that `href` made, without loading the whole application anew."""
    parts = urlsplit(address)
    page = parts.path.removeprefix("./")
    if page in PAGES:
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        st.switch_page(PAGES[page], query_params=query)
