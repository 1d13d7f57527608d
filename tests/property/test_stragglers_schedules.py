"""Traces made by known schedules: the replay must give back the very step time that made them."""

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.analytics.stragglers import analyse

F, B = "forward", "backward"


def schedule(stage: int, stages: int, chunks: int, microbatches: int) -> list[tuple[str, int, int, int]]:
    """(kind, number, chunk, microbatch) of one stage: 1F1B, interleaved where there are several chunks."""
    total = microbatches * chunks
    if chunks == 1:
        warm_up = min(stages - stage - 1, total)
    else:
        warm_up = min((stages - stage - 1) * 2 + (chunks - 1) * stages, total)

    def of(kind: str, number: int) -> tuple[str, int, int, int]:
        chunk = number % (stages * chunks) // stages
        microbatch = number // (stages * chunks) * stages + number % stages
        if chunks == 1:
            chunk, microbatch = 0, number
        return kind, number, chunk if kind == F else chunks - 1 - chunk, microbatch

    order = [of(F, number) for number in range(warm_up)]
    for number in range(total - warm_up):
        order += [of(F, warm_up + number), of(B, number)]
    return order + [of(B, number) for number in range(total - warm_up, total)]


class Maker:
    """Runs schedules in order, with durations from a function of (dp_rank, stage, kind)."""

    def __init__(self, stages: int, chunks: int, microbatches: int, took: Any) -> None:
        self.stages, self.chunks, self.took = stages, chunks, took
        self.orders = [schedule(stage, stages, chunks, microbatches) for stage in range(stages)]
        self.rows: list[dict[str, Any]] = []

    def row(
        self, rank: int, stage: int, kind: str, number: int, begin: float, end: float, **more: int
    ) -> None:
        self.rows.append(
            {"dp_rank": rank, "stage": stage, "step": 0, "optype": kind, "seq_id": number, "start_ts": begin,
             "duration": end - begin, "mc": -1, "gmc": -1, **more}
        )  # fmt: skip

    def pipeline(self, rank: int) -> list[float]:
        """When each stage is through."""
        done: dict[tuple[str, int, int], float] = {}
        at = [0] * self.stages
        clock = [0.0] * self.stages
        of_kind: dict[tuple[int, str], float] = defaultdict(float)
        last = self.stages * self.chunks - 1
        while any(at[stage] < len(self.orders[stage]) for stage in range(self.stages)):
            moved = False
            for stage in range(self.stages):
                while at[stage] < len(self.orders[stage]):
                    kind, number, chunk, microbatch = self.orders[stage][at[stage]]
                    whole = chunk * self.stages + stage
                    if kind == F:
                        needs = done.get((F, whole - 1, microbatch)) if whole else 0.0
                    else:
                        needs = (
                            done.get((B, whole + 1, microbatch))
                            if whole < last
                            else done.get((F, whole, microbatch))
                        )
                    if needs is None:
                        break
                    moved = True
                    receives = whole > 0 if kind == F else whole < last
                    sends = whole < last if kind == F else whole > 0
                    ready = of_kind[stage, kind]
                    if receives or self.chunks > 1:  # interleaved schedules also record messages to nobody
                        arrived = max(ready, needs) if receives else ready
                        self.row(rank, stage, f"{kind}-recv", number, ready, arrived)
                        needs = max(needs, arrived)
                    begin = max(clock[stage], needs)
                    end = begin + self.took(rank, stage, kind)
                    self.row(rank, stage, f"{kind}-compute", number, begin, end, mc=chunk, gmc=whole)
                    if sends or self.chunks > 1:
                        self.row(rank, stage, f"{kind}-send", number, end, end)
                    done[kind, whole, microbatch] = clock[stage] = of_kind[stage, kind] = end
                    at[stage] += 1
            assert moved, "the schedule waits for itself"
        return clock

    def step(self, ranks: int, separate: bool) -> tuple[pa.Table, float]:
        through = [self.pipeline(rank) for rank in range(ranks)]
        ends = []
        for stage in range(self.stages):
            if ranks == 1:
                ends.append(through[0][stage])
                continue
            begins = [clocks[stage] for clocks in through]
            kind = "separate-grads-all-reduce" if separate else "grads-reduce-scatter"
            ends.append(max(begins) + 0.25)
            for rank, begin in enumerate(begins):
                self.row(rank, stage, kind, 0, begin, ends[-1], mc=0)
        for rank in range(ranks):
            for stage in range(self.stages):
                self.row(rank, stage, "optimizer-clip-main-grad", 0, ends[stage], max(ends) + 0.125)
                self.row(rank, stage, "optimizer", 0, max(ends) + 0.125, max(ends) + 0.625)
        return pa.Table.from_pylist(self.rows), max(ends) + 0.625


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4),
    st.sampled_from([1, 1, 2, 3]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_replay_of_what_happened_is_what_happened(
    stages: int, chunks: int, rounds: int, ranks: int, separate: bool, random: Any
) -> None:
    if stages == 1:
        chunks = 1
    table, took = Maker(stages, chunks, rounds * stages, lambda *_: random.randint(1, 64) / 16).step(
        ranks, separate
    )
    found = analyse(table)
    assert found.step_s == {0: pytest.approx(took)}
    assert len(found.workers) == stages * ranks
    assert set(found.by_stage) == set(range(stages))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_equal_ranks_lose_nothing(stages: int, chunks: int, rounds: int, ranks: int, separate: bool) -> None:
    if stages == 1:
        chunks = 1
    table, _ = Maker(
        stages, chunks, rounds * stages, lambda rank, stage, kind: 1.0 if kind == F else 2.0
    ).step(ranks, separate)
    found = analyse(table)
    assert found.slowdown == pytest.approx(1)
    assert not found.straggling


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.data())
def test_a_slow_worker_is_named(stages: int, ranks: int, data: st.DataObject) -> None:
    slow = (data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, stages - 1)))

    def took(rank: int, stage: int, kind: str) -> float:
        return (1.0 if kind == F else 2.0) * (4 if (rank, stage) == slow else 1)

    found = analyse(Maker(stages, 1, 2 * stages, took).step(ranks, False)[0])
    assert found.straggling
    assert max(found.workers, key=lambda worker: found.workers[worker]) == slow
    assert found.worker_share is not None and found.worker_share > 0.9


def test_steps_and_ranks_may_lack_operations() -> None:
    table, _ = Maker(2, 1, 4, lambda *_: 1.0).step(2, False)
    rows = table.to_pylist()
    second = [{**row, "step": 1} for row in rows if row["optype"] != "optimizer"]
    found = analyse(pa.Table.from_pylist(rows + second))
    assert found.step_s[0] == pytest.approx(found.step_s[1] + 0.5)
