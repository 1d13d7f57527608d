"""Texts from other machines reach a terminal and an address bar without doing anything there."""

import io
import sys

import pyarrow as pa
import pytest
import streamlit as st

from rankscope.app.state import where
from rankscope.app.tables import write_table


def test_control_characters_never_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", out)
    hostile = "\x1b[31mred\x1b[0m \x9b2J \u202eback\nnext"
    write_table(pa.table({"name": [hostile]}), "table", None)
    shown = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert not set("\x1b\x9b\u202e") & set(shown)
    assert "red" in shown
    assert "⏎next" in shown


@pytest.mark.parametrize("text", ["--5", "²", "", "1e3", "9" * 30, "٣"])
def test_an_unreadable_number_in_the_address_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(st, "query_params", {"run": "r", "attempt": text})
    assert where().attempt is None


def test_a_number_in_the_address_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "query_params", {"run": "r", "attempt": "-5", "incident": "2"})
    assert (where().attempt, where().incident) == (-5, 2)
