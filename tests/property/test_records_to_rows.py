"""What a recorder writes comes back as rows: any mix of records, of several ranks, read in any portions."""

import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from handmade import MONO_NS, WALL_NS, HandWriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankscope.ingest import collector as collector_module
from rankscope.ingest.collector import Collector
from rankscope.ingest.layout import Flag, Kind
from rankscope.ingest.store import Store

OFFSET = WALL_NS - MONO_NS
texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=120)
times = st.integers(MONO_NS, MONO_NS + 10**12)
steps = st.integers(-1, 10**6)


@st.composite
def actions(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["span", "open", "collective", "scalar", "event", "rollup", "close_oldest"]))
    return {
        "kind": kind,
        "rank": draw(st.integers(0, 2)),
        "t": draw(times),
        "duration": draw(st.integers(0, 10**9)),
        "name": draw(texts),
        "step": draw(steps),
        "flags": draw(st.sampled_from([0, Flag.ERROR, Flag.COMMITTED, Flag.NOT_COMMITTED])),
        "value": draw(st.floats()),
        "number": draw(st.integers(0, 2**40)),
    }


class Model:
    """Writes an action, and remembers which rows it should become."""

    def __init__(self, spool: Path) -> None:
        self.writers = [HandWriter(spool, rank=rank) for rank in range(3)]
        self.open: list[tuple[HandWriter, int, int, dict[str, Any]]] = []
        self.spans: Counter[tuple[Any, ...]] = Counter()
        self.collectives: Counter[tuple[Any, ...]] = Counter()
        self.scalars: Counter[tuple[Any, ...]] = Counter()
        self.signals: Counter[tuple[Any, ...]] = Counter()
        self.rollups: Counter[tuple[Any, ...]] = Counter()
        self._pairs = 0

    def do(self, action: dict[str, Any]) -> None:
        getattr(self, "_" + action["kind"])(self.writers[action["rank"]], action)

    def _step(self, action: dict[str, Any]) -> int | None:
        return action["step"] if action["step"] >= 0 else None

    def _open(self, writer: HandWriter, action: dict[str, Any]) -> None:
        begun = writer.begin("step", t=action["t"], name=action["name"], step=action["step"])
        self.open.append((writer, begun, action["t"], action))

    def _close_oldest(self, _: HandWriter, action: dict[str, Any]) -> None:
        if self.open:
            writer, begun, began, first = self.open.pop(0)
            self._ended(writer, begun, began, first, action)

    def _span(self, writer: HandWriter, action: dict[str, Any]) -> None:
        begun = writer.begin("step", t=action["t"], name=action["name"], step=action["step"])
        self._ended(writer, begun, action["t"], action, action)

    def _ended(
        self, writer: HandWriter, begun: int, began: int, first: dict[str, Any], last: dict[str, Any]
    ) -> None:
        end, flags = began + last["duration"], last["flags"]
        writer.end(begun, "step", t=end, begin=began, name=first["name"], step=first["step"], flags=flags)
        committed = {Flag.COMMITTED: True, Flag.NOT_COMMITTED: False}.get(flags)
        self.spans[
            writer.identity["rank"], first["name"], self._step(first), began + OFFSET, end + OFFSET,
            "error" if flags == Flag.ERROR else "ok", committed,
        ] += 1  # fmt: skip

    def _collective(self, writer: HandWriter, action: dict[str, Any]) -> None:
        detail = {"name": action["name"], "pg": "0", "step": action["step"], "attr": "float32|[4]|train.py:3"}
        begun = writer.record(Kind.COLL_BEGIN, action["t"], a=action["number"], b=16, c=-1, **detail)
        end = action["t"] + action["duration"]
        writer.record(Kind.COLL_END, end, a=action["number"], b=16, c=action["t"], d=begun, **detail)
        self.collectives[
            writer.identity["rank"], action["name"], self._step(action), action["number"],
            action["t"] + OFFSET, end + OFFSET, "float32", "[4]", "train.py:3",
        ] += 1  # fmt: skip

    def _scalar(self, writer: HandWriter, action: dict[str, Any]) -> None:
        writer.scalar(action["value"], step=action["step"], t=action["t"], name=action["name"])
        self.scalars[writer.identity["rank"], action["name"], self._step(action), _key(action["value"])] += 1

    def _event(self, writer: HandWriter, action: dict[str, Any]) -> None:
        writer.event(type="signal", kind="exit", message=action["name"], time_ns=action["number"])
        self.signals[writer.identity["rank"], action["name"], action["number"]] += 1

    def _rollup(self, writer: HandWriter, action: dict[str, Any]) -> None:
        self._pairs += 1
        place = {"pg": "0", "step": action["step"], "attr": self._pairs}
        writer.record(Kind.COLL_ROLLUP, action["t"], a=action["number"], b=2, c=3, d=4, **place)
        writer.record(Kind.COLL_ROLLUP2, action["t"] - 1, a=action["t"] - 2, b=9, **place)
        self.rollups[writer.identity["rank"], self._step(action), action["number"], action["t"] + OFFSET] += 1


def _key(value: float) -> object:
    return "nan" if math.isnan(value) else value


def rows(store: Store, sql: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in store.rows(sql))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(actions(), max_size=60), st.sets(st.integers(0, 60)), st.booleans())
def test_every_record_becomes_its_row_once(script: list[dict[str, Any]], stops: set[int], anew: bool) -> None:
    with TemporaryDirectory() as folder, Store.open(Path(folder, "s.duckdb")) as store:
        spool = Path(folder, "s.spool")
        model = Model(spool)
        reading = Collector(store, spool)
        # The processes seem to live as long as the script goes on.
        original = collector_module.Reading.look_for_process
        collector_module.Reading.look_for_process = lambda self: None  # type: ignore[method-assign]
        try:
            for place, action in enumerate(script):
                model.do(action)
                if place in stops:
                    reading.catch_up()
                    if anew:
                        reading.close()
                        reading = Collector(store, spool)
        finally:
            collector_module.Reading.look_for_process = original  # type: ignore[method-assign]
        reading.close()
        with Collector(store, spool) as last:
            last.catch_up()

        assert (
            rows(store, "SELECT rank, name, step, begin_ns, end_ns, status, committed FROM span")
            == model.spans
        )
        assert (
            rows(
                store,
                "SELECT rank, op, step, seq, enqueue_ns, end_ns, dtype, sizes, site FROM collective",
            )
            == model.collectives
        )
        scalars = (
            "SELECT rank, name, step, CASE WHEN isnan(value) THEN NULL ELSE value END AS value FROM scalar"
        )
        assert (
            Counter(
                (rank, name, step, "nan" if value is None else value)
                for (rank, name, step, value), count in rows(store, scalars).items()
                for _ in range(count)
            )
            == model.scalars
        )
        assert rows(store, "SELECT rank, message, time_ns FROM signal") == model.signals
        assert rows(store, "SELECT rank, step, count, last_end_ns FROM collective_rollup") == model.rollups
        opened = Counter((writer.identity["rank"], began + OFFSET) for writer, _, began, _ in model.open)
        assert rows(store, "SELECT rank, begin_ns FROM open_span") == opened
        read = {row["rank"]: row["next_slot"] for row in store.rows("SELECT rank, next_slot FROM source")}
        assert read == {writer.identity["rank"]: writer.slot for writer in model.writers if writer.slot}
        assert store.rows("SELECT * FROM source WHERE errors > 0 OR dropped > 0 OR NOT complete") == []
