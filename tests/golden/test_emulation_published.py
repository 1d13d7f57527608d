"""The figures that the emulation has to give: published ones, and those derived from them."""

import pytest

from rankscope.emulation import published
from rankscope.emulation.calibration import (
    all_fits,
    fit_baseline,
    fit_ft_hsdp,
    fit_ncclx,
    fit_store,
    loops_s,
    published_costs,
    round_at,
)
from rankscope.emulation.compare import BASELINE
from rankscope.emulation.findings import find, phase_sums
from rankscope.emulation.model import AllGather, Ring, Scenario, Sizes, simulate
from rankscope.emulation.model.gather import ring_plan, rounds_of

N = 98_304


def test_loops_over_pairs_cost_what_was_published() -> None:
    assert published.RING_LOOP.value == pytest.approx(2.7e-9, rel=0.01)
    assert published.TRANSPORT_LOOP.value == pytest.approx(4.55e-9, rel=0.01)
    assert loops_s(N) == pytest.approx(70.0)


def test_baseline_taken_apart() -> None:
    rounds = [round_at(point) * 1e6 for point in published.series(published.BASELINE)]
    assert rounds == pytest.approx([142, 93, 197], abs=1)


def test_baseline_at_96k_is_predicted_from_8k_and_32k() -> None:
    fit = fit_baseline()
    assert fit.parameters["round_s"] * 1e6 == pytest.approx(117, abs=1)
    (held_out,) = fit.held_out()
    assert held_out.point.ranks == N
    assert held_out.predicted_s == pytest.approx(226, abs=1)
    assert held_out.error_ratio == pytest.approx(-0.15, abs=0.01)


def test_whole_model_predicts_the_baseline_within_30_percent() -> None:
    for point in published.series(published.BASELINE):
        predicted = simulate(BASELINE.scenario(point.ranks), published_costs()).total_s
        assert predicted == pytest.approx(point.seconds, rel=0.30)


def test_ncclx_is_shown_with_its_error() -> None:
    fit = fit_ncclx()
    (held_out,) = fit.held_out()
    assert held_out.error_ratio == pytest.approx(0.375, abs=0.01)
    assert "323, 242, 163" in fit.note


def test_ft_hsdp_points() -> None:
    fit = fit_ft_hsdp()
    # 0.87 ms and 11.9 ns are those of 16,000 and 98,000 ranks; the points are 16,384 and 98,304.
    assert fit.parameters["a_s"] == pytest.approx(0.87e-3, rel=0.05)
    assert fit.parameters["b_s"] == pytest.approx(11.9e-9, rel=0.05)
    by_ranks = {c.point.ranks: c.predicted_s for c in fit.checked}
    assert by_ranks[65_536] == pytest.approx(105, rel=0.03)
    assert by_ranks[22_528] == pytest.approx(25, rel=0.03)


def test_store_clients_fitted_at_4k_miss_96k_by_two() -> None:
    fit = fit_store()
    (held_out,) = fit.held_out()
    assert held_out.point.seconds / held_out.predicted_s == pytest.approx(2.1, abs=0.02)


def test_every_published_figure_has_a_source_and_a_level() -> None:
    for item in (*published.POINTS, *published.FIGURES):
        assert item.source
        assert item.level in ("publisher", "secondary", "derived")
    assert all(fit.checked for fit in all_fits())


def test_store_ring_on_the_wire() -> None:
    outcome = simulate(Scenario(N, Ring.TCPSTORE, AllGather.BIDIRECTIONAL), published_costs())
    assert outcome.counts.store_sets == outcome.counts.store_gets == outcome.counts.store_connections == N
    store = next(phase for phase in outcome.phases if phase.name == "create_store")
    assert "491,520 requests" in store.endpoint


def test_last_rank_waits_14_seconds_since_nccl_2_23() -> None:
    outcome = simulate(Scenario(N, Ring.STAGGERED, AllGather.BRUCK), published_costs())
    known, stagger = outcome.phases[0], outcome.phases[1]
    assert stagger.name == "stagger"
    assert float((stagger.ends_s - known.ends_s)[-1]) == pytest.approx(14.0, abs=0.1)


def test_several_roots_move_the_load_to_the_store() -> None:
    outcome = simulate(Scenario(N, Ring.MULTI_ROOT, AllGather.RING, loops=False), published_costs())
    assert outcome.scenario.root_count == 768
    assert outcome.counts.store_gets == 75_497_472
    assert outcome.counts.root_in == N + 768  # N/R + 1 each
    assert outcome.bottleneck.phase == "root_ids"
    assert outcome.bottleneck.growth == "O(N·R)"


@pytest.mark.parametrize(
    ("method", "rounds"),
    [("ring", 98_303), ("bidirectional", 49_152), ("bruck", 17), ("doubling", 18), ("tree", 34)],
)
def test_rounds(method: str, rounds: int) -> None:
    assert rounds_of(N, AllGather(method)) == rounds


def test_dependent_phases_of_a_ring() -> None:
    assert ring_plan(N, AllGather.RING, Sizes.FIRST).phases == 2 * (N - 1)
    assert ring_plan(N, AllGather.BIDIRECTIONAL, Sizes.FIRST).phases == pytest.approx(1.5 * N, abs=2)
    assert ring_plan(N, AllGather.BIDIRECTIONAL, Sizes.ALONG).phases == N // 2


def test_graph_info_dominates_where_32_ranks_share_10_gbit() -> None:
    scenario = Scenario(N, Ring.TCPSTORE, AllGather.BRUCK, hosts=N // 32, payload_bytes=2320, allgathers=1)
    gather = phase_sums(simulate(scenario, published_costs()))["allgather"]
    assert gather == pytest.approx(5.8, abs=0.1)


def test_what_the_talk_found() -> None:
    found = {finding.name: finding for finding in find(N, published_costs())}
    assert found["root"].text.startswith("The root is the bottleneck")
    assert "next is the AllGather" in found["store_ring"].text
    gains = found["both_ways"].values
    assert gains["first"] == pytest.approx(1.33, abs=0.01)
    assert gains["overlapped"] == pytest.approx(2.0, abs=0.01)
    assert gains["along"] == pytest.approx(2.0, abs=0.01)
    assert max(found["small"].values.values()) < 1.15
    assert "75.5 M key reads, 9.7 GB out" in found["several_roots"].text
    assert found["loops"].values["loops_s"] == pytest.approx(70.0, abs=0.1)
    doubling = found["next"].values["recursive doubling"]
    assert doubling < found["loops"].values["without_s"] / 2


def test_all_methods_come_out_at_98304_ranks() -> None:
    for ring in Ring:
        for allgather in AllGather:
            outcome = simulate(Scenario(N, ring, allgather), published_costs())
            told = outcome.as_dict()
            assert sum(phase["s"] for phase in told["phases"]) == pytest.approx(told["total_s"])
            assert told["bottleneck"]["phase"]
            assert 0 < told["bottleneck"]["share"] <= 1
