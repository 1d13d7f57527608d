"""Hosts whose clocks are seconds apart: offsets with intervals, and the right order of what came first."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import MONO_NS, WALL_NS, HandWriter, collect
from hypothesis import given
from hypothesis import strategies as st

from rankscope.ingest.clock_offsets import SAME, Offset, estimate, spread
from rankscope.ingest.layout import Kind
from rankscope.ingest.store import Store

SECOND = 1_000_000_000
SHIFTS_S = (0.0, -3.0, -1.25, 2.0, 3.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.duckdb") as opened:
        yield opened


def record_run(
    spool: Path, shifts_s: tuple[float, ...], *, op: str = "all_reduce", groups: list[list[int]]
) -> None:
    """Ranks, each on a host of its own with a shifted clock, meeting in collectives; the last fails first."""
    chance = random.Random(7)
    writers = [
        HandWriter(spool, rank=rank, host=f"node{rank}", wall_ns=WALL_NS + round(shift * SECOND))
        for rank, shift in enumerate(shifts_s)
    ]
    t = MONO_NS
    for seq in range(40):
        for number, members in enumerate(groups):
            arrivals = {rank: t + chance.randrange(50_000_000) for rank in members}
            last = max(arrivals.values())
            for rank in members:
                end = last + 200_000 + chance.randrange(300_000)
                detail = {"name": op, "pg": str(number), "step": seq, "attr": "float32|[4]|"}
                begun = writers[rank].record(Kind.COLL_BEGIN, arrivals[rank], a=seq, b=16, c=-1, **detail)
                writers[rank].record(Kind.COLL_END, end, a=seq, b=16, c=arrivals[rank], d=begun, **detail)
        t += 100_000_000
    order = list(reversed(range(len(writers))))
    for place, rank in enumerate(order):  # the true order of their last words: highest rank first
        writers[rank].scalar(float(place), t=t + place * 5_000_000, name="last word")
    for writer in writers:
        writer.close()


def clocks(store: Store) -> dict[str, dict[str, int]]:
    return {row["host"]: row for row in store.rows("FROM host_clock")}


@pytest.mark.parametrize(
    "groups", [[[0, 1, 2, 3, 4]], [[0, 1], [1, 2], [2, 3], [3, 4]]], ids=["one", "chain"]
)
def test_offsets_of_seconds_are_found(store: Store, tmp_path: Path, groups: list[list[int]]) -> None:
    record_run(tmp_path / "spool", SHIFTS_S, groups=groups)
    assert collect(store, tmp_path / "spool") == []
    estimate(store.cursor(), "run")
    found = clocks(store)
    assert set(found) == {f"node{rank}" for rank in range(5)}
    for rank, shift in enumerate(SHIFTS_S):
        clock = found[f"node{rank}"]
        assert abs(clock["offset_ns"] - shift * SECOND) < 2_000_000
        assert clock["offset_low_ns"] <= shift * SECOND <= clock["offset_high_ns"]
        assert clock["offset_low_ns"] <= clock["offset_ns"] <= clock["offset_high_ns"]
    by_raw = "SELECT rank FROM scalar WHERE name = 'last word' ORDER BY time_ns"
    by_true = (
        "SELECT s.rank FROM scalar AS s JOIN rank USING (run_id, attempt, rank, incarnation) "
        "JOIN host_clock USING (run_id, host) WHERE name = 'last word' ORDER BY s.time_ns - offset_ns"
    )
    assert [row["rank"] for row in store.rows(by_raw)] != [4, 3, 2, 1, 0]
    assert [row["rank"] for row in store.rows(by_true)] == [4, 3, 2, 1, 0]


def test_without_a_synchronising_collective_the_interval_is_the_scatter(store: Store, tmp_path: Path) -> None:
    record_run(tmp_path / "spool", (0.0, 1.0), op="broadcast", groups=[[0, 1]])
    collect(store, tmp_path / "spool")
    estimate(store.cursor(), "run")
    clock = clocks(store)["node1"]
    assert SECOND - 1_000_000 < clock["offset_low_ns"] <= clock["offset_ns"] <= clock["offset_high_ns"]
    assert clock["offset_high_ns"] < SECOND + 1_000_000


def test_hosts_that_never_met_have_no_offset(store: Store, tmp_path: Path) -> None:
    record_run(tmp_path / "spool", (0.0, 1.0, 2.0), groups=[[0, 1]])
    collect(store, tmp_path / "spool")
    estimate(store.cursor(), "run")
    assert set(clocks(store)) == {"node0", "node1"}


def test_estimate_again_replaces(store: Store, tmp_path: Path) -> None:
    record_run(tmp_path / "spool", (0.0, 1.0), groups=[[0, 1]])
    collect(store, tmp_path / "spool")
    for _ in range(2):
        estimate(store.cursor(), "run")
    assert len(store.rows("FROM host_clock")) == 2


def test_run_on_one_host_has_no_offsets(store: Store, tmp_path: Path) -> None:
    for rank in range(2):
        HandWriter(tmp_path / "spool", rank=rank).scalar(1.0)
    collect(store, tmp_path / "spool")
    estimate(store.cursor(), "run")
    assert store.rows("FROM host_clock") == []


offsets = st.builds(
    lambda low, a, b: Offset(low + a, low, low + a + b, None),
    st.integers(-(10**9), 10**9), st.integers(0, 10**6), st.integers(0, 10**6),
)  # fmt: skip


@given(st.lists(offsets, min_size=1, max_size=20))
def test_offsets_add_up_along_a_chain(chain: list[Offset]) -> None:
    edges = [(str(place), str(place + 1), offset) for place, offset in enumerate(chain)]
    found = spread("0", edges)
    assert found[str(len(chain))].value == sum(offset.value for offset in chain)
    back = spread(
        str(len(chain)), [(str(place), str(place + 1), offset) for place, offset in enumerate(chain)]
    )
    assert back["0"].value == -found[str(len(chain))].value
    assert back["0"].low == -found[str(len(chain))].high
    assert found["0"] == SAME
