"""Virtual time: the fast forms give what the plain recurrence gives, whatever the ring."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.analytics.init_law import fit_law
from rankscope.emulation.calibration import published_costs
from rankscope.emulation.model import AllGather, Ring, Scenario, Sizes, simulate
from rankscope.emulation.model.formation import parts
from rankscope.emulation.model.rounds import Noise, NoisyRing, Wait, closed_form, sliding_max

WAITS = st.lists(st.sampled_from(list(Wait)), min_size=1, max_size=4)
STARTS = st.lists(st.floats(0, 0.01), min_size=2, max_size=40)
COSTS = published_costs()


def plain(start: np.ndarray, waits: list[Wait], delays: list[np.ndarray]) -> np.ndarray:
    """t'[i] = max over whom it waits for, plus its delay: the definition."""
    t = start.copy()
    for wait, delay in zip(waits, delays, strict=True):
        left, right = wait.value
        waited = t
        if left:
            waited = np.maximum(waited, np.roll(t, 1))
        if right:
            waited = np.maximum(waited, np.roll(t, -1))
        t = waited + delay
    return t


@given(STARTS, WAITS, st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_closed_form_is_the_recurrence(starts: list[float], pattern: list[Wait], repeats: int) -> None:
    start = np.array(starts)
    waits = pattern * repeats
    expected = plain(start, waits, [np.full(len(start), 1e-4)] * len(waits))
    found = closed_form(start, [(wait, repeats) for wait in pattern], 1e-4)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@given(STARTS, WAITS, st.integers(1, 200), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_noisy_rounds_are_the_recurrence(
    starts: list[float], pattern: list[Wait], repeats: int, threads: int
) -> None:
    start = np.array(starts)
    noise = Noise(5e-6, len(start), seed=3)
    ring = NoisyRing(start, noise, 58e-6, threads=threads)
    ring.run(pattern, repeats)
    pool = noise.pool_ticks() + 5_800
    size, ranks = len(pool) - len(start), np.arange(len(start))
    waits = pattern * repeats
    delays = [pool[(k * 7919 % size + ranks) % size] for k in range(len(waits))]
    ticks = np.rint((start - start.min()) * 1e8).astype(np.int64)
    np.testing.assert_allclose(ring.times_s(), start.min() + plain(ticks, waits, delays) / 1e8, atol=1e-8)


def test_stretches_of_threads_meet_exactly() -> None:
    start = np.zeros(20_000)
    start[17] = 0.003
    rings = [NoisyRing(start, Noise(5e-6, len(start), 1), 50e-6, threads=threads) for threads in (1, 2)]
    for ring in rings:
        ring.run([Wait.LEFT, Wait.RIGHT, Wait.BOTH], 500)
    np.testing.assert_array_equal(rings[0].times_s(), rings[1].times_s())


@given(STARTS, st.integers(0, 50), st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_sliding_max_is_a_maximum(values: list[float], left: int, right: int) -> None:
    array = np.array(values)
    expected = [max(array[(i + d) % len(array)] for d in range(-left, right + 1)) for i in range(len(array))]
    np.testing.assert_array_equal(sliding_max(array, left, right), expected)


@given(st.integers(2, 3_000), st.sampled_from(list(Sizes)), st.sampled_from(list(Ring)))
@settings(max_examples=40, deadline=None)
def test_both_ways_is_never_slower(ranks: int, sizes: Sizes, ring: Ring) -> None:
    one = simulate(Scenario(ranks, ring, AllGather.RING, sizes), COSTS)
    both = simulate(Scenario(ranks, ring, AllGather.BIDIRECTIONAL, sizes), COSTS)
    assert both.total_s <= one.total_s + 1e-12
    assert both.counts == one.counts  # the same chunks, other ways


@given(st.integers(2, 2_000), st.sampled_from(list(Ring)), st.sampled_from(list(AllGather)), st.data())
@settings(max_examples=40, deadline=None)
def test_phases_add_up_and_a_late_rank_delays_no_less_than_it_is_late(
    ranks: int, ring: Ring, gather: AllGather, data: st.DataObject
) -> None:
    late = data.draw(st.integers(0, ranks - 1))
    on_time = simulate(Scenario(ranks, ring, gather), COSTS)
    outcome = simulate(Scenario(ranks, ring, gather, late={late: 5.0}), COSTS)
    assert sum(seconds for _, seconds in outcome.front_s()) <= outcome.total_s + 1e-9
    assert 5.0 <= outcome.total_s <= on_time.total_s + 5.0 + 1e-6
    for before, after in zip(outcome.phases, outcome.phases[1:], strict=False):
        assert np.all(after.ends_s >= before.ends_s - 1e-12)


@given(st.integers(1, 5_000), st.integers(1, 50))
@settings(deadline=None)
def test_parts_of_roots_cover_all_ranks(ranks: int, roots: int) -> None:
    edges = parts(ranks, min(roots, ranks))
    sizes = np.diff(edges)
    assert edges[0] == 0
    assert edges[-1] == ranks
    assert sizes.max() - sizes.min() <= 1


@given(
    st.floats(0.01, 100), st.floats(0, 1e-3), st.floats(0, 1e-7), st.integers(3, 8),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_law_meets_what_follows_it(a: float, b: float, c: float, count: int) -> None:
    sizes = [128 * 4**k for k in range(count)]
    law = fit_law(sizes, [a + b * n + c * n * n for n in sizes])
    for n in sizes:
        assert abs(law.predict_s(n) / (a + b * n + c * n * n) - 1) < 0.1
    assert law.growth in ("O(1)", "O(N)", "O(N²)")
