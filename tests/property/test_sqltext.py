"""Values written into SQL mean what they mean as parameters, whatever is in them and around them."""

import math

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.ingest.sqltext import bind, literal

hostile = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=60),
    st.sampled_from(
        [
            "'", "''", "\\'", "'; DROP TABLE t; --", "$a", "$$", "$x$ $a $x$", "/* $a */", "-- $a", '"$a"',
            "E'\\'", "\\", "%s", "?", "$1", "\n", "\u2028", "é$aé", "', $b, '", "'::BLOB", "\ufeff", "😀'",
        ]
    ),
)  # fmt: skip
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats().map(lambda number: math.nan if math.isnan(number) else number),  # its sign says nothing
    hostile,
    st.binary(max_size=20),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=4),
    st.lists(hostile, min_size=1, max_size=3),
)
# Places where a parameter may stand, among things that only look like one.
pieces = st.sampled_from(
    [
        "$a", "$b", "$long_name", "$from", "($a)", "[$a]", "-- $a\n$b", "/* $a 'x */ $b", "'$a'", "''''",
        '"$q"',
        "$tag$ $a ' $tag$", "$$ '$b $$", "E'\\' $a'", "concat($a::VARCHAR, '$b')", "$a::VARCHAR",
        "coalesce($b, $a) IS NULL",
        "'é' || $a::VARCHAR", "CASE WHEN $a IS NULL THEN 1 ELSE 2 END",
    ]
)  # fmt: skip


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, min_size=1, max_size=6), values, values)
def test_bound_text_gives_what_parameters_give(parts: list[str], a: object, b: object) -> None:
    sql = "SELECT " + ", ".join(f"{part}\n" for part in parts)
    sql = sql.replace('"$q"', '(SELECT "$q" FROM (SELECT 1 AS "$q"))')
    given_values = {"a": a, "b": b, "long_name": a, "from": b}
    with duckdb.connect() as con:
        names = set().union(*(statement.named_parameters for statement in duckdb.extract_statements(sql)))
        try:
            expected = con.execute(sql, {name: given_values[name] for name in names}).fetchall()
        except duckdb.Error:
            with pytest.raises(duckdb.Error):
                con.execute(bind(sql, given_values)).fetchall()
            return
        assert same(con.execute(bind(sql, given_values)).fetchall(), expected)


@settings(max_examples=300, deadline=None)
@given(values)
def test_literal_is_the_value(value: object) -> None:
    with duckdb.connect() as con:
        found = con.execute(f"SELECT {literal(value)}").fetchone()
    assert found is not None
    assert same(found[0], value)


def test_what_has_no_literal() -> None:
    with pytest.raises(ValueError, match="NUL"):
        literal("a\0b")
    with pytest.raises(TypeError):
        literal(object())
    with pytest.raises(KeyError):
        bind("SELECT $missing", {})
