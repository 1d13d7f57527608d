"""The real part: worker processes, a real TCPStore, and the same operations as the model counts."""

import pytest

pytest.importorskip("torch.distributed")

from rankscope.emulation.calibration import published_costs
from rankscope.emulation.model import AllGather, Ring, Scenario, simulate
from rankscope.emulation.real.plan import RealPlan
from rankscope.emulation.real.run import run_real

RANKS = 23


@pytest.mark.training
@pytest.mark.parametrize(
    ("ring", "allgather", "roots"),
    [(Ring.TCPSTORE, AllGather.BIDIRECTIONAL, None), (Ring.MULTI_ROOT, AllGather.RING, 3),
     (Ring.STAGGERED, AllGather.BIDIRECTIONAL, None)],
)  # fmt: skip
def test_real_start_is_complete_and_counts_what_the_model_counts(
    ring: Ring, allgather: AllGather, roots: int | None
) -> None:
    scenario = Scenario(RANKS, ring, allgather, roots=roots)
    result = run_real(RealPlan.of(scenario, timeout_s=300))
    assert result.errors == []
    assert result.complete
    assert result.checked == 3 * RANKS * RANKS  # every chunk at every rank
    assert result.counts == simulate(scenario, published_costs()).counts


@pytest.mark.training
def test_ranks_that_share_connections_form_one_ring() -> None:
    result = run_real(RealPlan.of(Scenario(3_000), shared=True, timeout_s=300))
    assert result.errors == []
    assert result.complete
    assert result.counts.store_sets == result.counts.store_gets == 3_000
    assert result.counts.connects == result.counts.accepts == 3_000
    assert result.shared_connections < 20


@pytest.mark.training
def test_a_rank_that_never_comes_is_named() -> None:
    scenario = Scenario(9, late={4: 600.0})
    result = run_real(RealPlan.of(scenario, timeout_s=8))
    assert not result.complete
    assert any("rank 4 is missing" in error for error in result.errors)
