"""Whatever is recorded is read again, by a reader that shares nothing with the writer but layout.py."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_reader import the_stream

from rankscope.ingest.layout import Kind
from rankscope.ingest.pens import fast_pen
from rankscope.ingest.segment import SegmentWriter

texts = st.text(max_size=200)
int64 = st.integers(-(2**63), 2**63 - 1)
KINDS = [kind for kind in Kind if kind not in (Kind.STRING, Kind.EVENT, Kind.COLL_ROLLUP, Kind.COLL_ROLLUP2)]
records = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "t": int64,
        "a": int64,
        "b": int64,
        "c": int64,
        "d": int64,
        "name": texts,
        "pg": texts,
        "step": st.integers(-(2**31), 2**31 - 1),
        "attr": texts,
        "tag": st.integers(0, 2**16 - 1),
        "flags": st.integers(0, 255),
    }
)
json_values = st.recursive(
    st.none() | st.booleans() | int64 | texts | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
events = st.dictionaries(texts, json_values, max_size=5)


def plain(text: str) -> str:
    """A text without what UTF-8 cannot say."""
    return text.encode(errors="replace").decode()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(records | events, max_size=30), st.booleans())
def test_round_trip(actions: list[dict[str, Any]], fast: bool) -> None:
    with TemporaryDirectory() as folder:
        spool = Path(folder)
        writer = SegmentWriter(
            spool / "run", "h-1-2", {"run_id": "run"}, fast=fast and fast_pen() is not None
        )
        expected: list[dict[str, Any]] = []
        for action in actions:
            if "kind" in action and isinstance(action["kind"], Kind):
                named = {key: writer.intern(action[key]) for key in ("name", "pg", "attr")}
                slot = writer.record(**(action | named))
                assert slot >= 0
                expected.append(action | {key: plain(action[key]) for key in named} | {"slot": slot})
            else:
                writer.event(action)
        stream = the_stream(spool)
        assert [
            {key: getattr(found, key) for key in wanted}
            for found, wanted in zip(stream.records, expected, strict=True)
        ] == expected
        assert stream.events == [action for action in actions if not isinstance(action.get("kind"), Kind)]
        assert (stream.holes, stream.dropped) == ([], 0)
