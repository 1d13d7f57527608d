"""Rings for real: one cycle of all ranks in any order of arrival, and the counts of the model."""

from itertools import pairwise
from time import monotonic

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch_distributed = pytest.importorskip("torch.distributed")

from rankscope.emulation.bootstrap import Ring, RingAllGather  # noqa: E402
from rankscope.emulation.bootstrap.form_ring import join  # noqa: E402
from rankscope.emulation.bootstrap.lookup import PollingLookup  # noqa: E402
from rankscope.emulation.bootstrap.loop import Loop  # noqa: E402
from rankscope.emulation.counts import Counts  # noqa: E402
from rankscope.emulation.model import AllGather, Sizes  # noqa: E402
from rankscope.emulation.model.gather import gather_counts  # noqa: E402
from rankscope.emulation.real.plan import RealPlan, block, chunk_of  # noqa: E402
from rankscope.emulation.real.run import is_one_ring  # noqa: E402

TIMEOUT_S = 60.0


@given(st.data(), st.integers(2, 40), st.booleans(), st.sampled_from(list(Sizes)))
@settings(max_examples=25, deadline=None)
def test_one_cycle_any_order_and_the_counts_of_the_model(
    data: st.DataObject, world: int, both: bool, sizes: Sizes
) -> None:
    order = data.draw(st.permutations(range(world)))
    pauses = data.draw(st.lists(st.sampled_from([0.0, 0.0, 0.002]), min_size=world, max_size=world))
    store, loop = torch_distributed.HashStore(), Loop()
    lookup = PollingLookup(loop, store)

    async def arrive(place: int, rank: int) -> tuple[Ring, list[bytes]]:
        await loop.pause(pauses[place])
        ring = await join(loop, lookup, rank, world, "p", "127.0.0.1", monotonic() + TIMEOUT_S)
        with ring:
            gather = RingAllGather(ring, both=both, sizes=sizes.value, timeout_s=TIMEOUT_S)
            return ring, await gather.gather_on(chunk_of(rank, 0, 50))

    tasks = {rank: loop.spawn(arrive(place, rank)) for place, rank in enumerate(order)}
    loop.run_all()
    loop.close()
    rings = [tasks[rank].value()[0] for rank in range(world)]
    assert is_one_ring(np.array([ring.next.peer for ring in rings]))
    expected = [chunk_of(rank, 0, 50) for rank in range(world)]
    assert all(task.value()[1] == expected for task in tasks.values())

    total = Counts()
    for ring in rings:
        total.add(ring.counts)
    method = AllGather.BIDIRECTIONAL if both else AllGather.RING
    formed = Counts(store_sets=world, store_gets=world, connects=world, accepts=world)
    assert total == formed + gather_counts(world, method, sizes)


@given(st.permutations(range(8)))
def test_only_one_cycle_of_all_is_a_ring(order: list[int]) -> None:
    cycles, seen = 0, set[int]()
    for start in range(8):
        if start not in seen:
            cycles += 1
            rank = start
            while rank not in seen:
                seen.add(rank)
                rank = order[rank]
    assert is_one_ring(np.array(order)) == (cycles == 1)


def test_what_is_no_ring() -> None:
    assert not is_one_ring(np.array([], dtype=np.int64))
    assert not is_one_ring(np.array([1, -1]))
    assert not is_one_ring(np.array([1, 2, 1]))


@given(st.integers(2, 100_000), st.integers(1, 64))
@settings(deadline=None)
def test_workers_share_all_ranks_once(ranks: int, workers: int) -> None:
    blocks = [block(worker, workers, ranks) for worker in range(workers)]
    assert blocks[0].start == 0
    assert blocks[-1].stop == ranks
    assert all(a.stop == b.start for a, b in pairwise(blocks))


@given(st.integers(2, 500), st.lists(st.tuples(st.integers(0, 1), st.floats(0, 5)), max_size=2))
def test_a_plan_survives_its_journey(ranks: int, late: list[tuple[int, float]]) -> None:
    plan = RealPlan(ranks, late=tuple(late), payloads=(1, 2))
    assert RealPlan.from_json(plan.to_json()) == plan
