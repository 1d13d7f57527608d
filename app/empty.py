"""What a page says when it has nothing to show: what is missing, and the command that brings it.

"Nothing recorded" and "recorded, and the answer is none" are different things, and never look alike.
"""

import streamlit as st

from rankscope.app.markup import div, tag


def empty(what: str, why: str, command: str | None = None) -> None:
    """Say that there is no data, why, and what to run."""
    st.html(
        div(
            "rs rs-empty",
            tag("b", what),
            tag("span", why, class_="rs-muted"),
            tag("pre", command) if command else None,
        )
    )


def none_of(what: str) -> None:
    """Say that it was looked for, and that there is none: a result, not a gap."""
    st.html(div("rs rs-muted", what))


def no_runs(store: str) -> None:
    """The store holds no run yet."""
    empty(
        "No run in this store yet",
        f"{store} is there and holds nothing. Train a small model that fails on purpose, or record your own:",
        "make demo\nrankscope run -- torchrun --nproc-per-node 4 train.py",
    )


def no_such_run(run: str, store: str) -> None:
    """The URL names a run that the store does not hold."""
    empty(
        f"There is no run {run} here",
        f"The store {store} does not hold it. These it holds:",
        "rankscope runs",
    )
