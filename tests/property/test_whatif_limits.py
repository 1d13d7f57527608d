"""The what-if engine where the answer is known: closed forms, limits, curves."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.analytics.checkpoint_interval import young
from rankscope.analytics.scenario import draw
from rankscope.analytics.whatif import Failures, Scenario, curve, replay, simulate
from rankscope.ingest.vocabulary import LedgerCategory as C

FLEET = Scenario(groups=12, gpus=98304, mtbf_s=1080, stall_s=180, restart_s=600)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.integers(0, 60), st.integers(0, 200), st.integers(0, 600), st.integers(0, 100))
def test_periodic_closed_form(groups: int, detect: int, stall: int, away: int, rejoin: int) -> None:
    """1 − (D + J + (A − D)/n)/M: stall D within absence A, rejoin stall J, M between failures."""
    mtbf = 1800
    scenario = Scenario(
        groups=groups, days=1.25, mtbf_s=mtbf, arrivals="periodic", detect_s=detect, stall_s=stall,
        restart_s=stall + away, rejoin_stall_s=rejoin,
    )  # fmt: skip
    stalled = detect + stall
    expected = 1 - (stalled + rejoin + away / groups) / mtbf
    assert simulate(scenario).isolated.ett_capacity.mean == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("again", [True, False])
def test_exponential_synchronous_limits(again: bool) -> None:
    """e^(−R/M) where recovery can fail as well; M/(M + R) where it cannot."""
    found = simulate(replace(FLEET, failures_during_recovery=again), 100, seed=4).synchronous
    expected = math.exp(-600 / 1080) if again else 1080 / 1680
    assert found.ett_capacity.mean == pytest.approx(expected, abs=4e-3)


def test_no_failures_no_loss() -> None:
    result = simulate(replace(FLEET, mtbf_s=1e12), 4, seed=0)
    assert result.isolated.ett_capacity.mean == result.synchronous.ett_capacity.mean == 1
    assert result.failures == 0


def test_one_group_is_its_own_synchronous_twin() -> None:
    scenario = replace(FLEET, groups=1, checkpoint_interval_s=600, checkpoint_write_s=10)
    result = simulate(scenario, 10, seed=1)
    assert result.isolated == result.synchronous


def test_many_groups_hardly_lose_capacity_but_stall_all_the_same() -> None:
    result = simulate(replace(FLEET, groups=1000, days=5), 20, seed=1).isolated
    assert result.share(C.ABSENT) < 0.001
    assert result.share(C.QUORUM) == pytest.approx(1 - math.exp(-180 / 1080), abs=0.01)


def test_enough_spares_are_as_good_as_endless_ones_and_none_means_waiting_for_the_repair() -> None:
    endless = simulate(FLEET, 5, seed=2)
    assert simulate(replace(FLEET, spare_hosts=10**4, repair_s=86400), 5, seed=2).isolated == endless.isolated
    none = simulate(replace(FLEET, spare_hosts=0, repair_s=3600, groups=100), 20, seed=2).isolated
    # Little's law: failures × (repair + restart) are away, as long as a group seldom fails twice at a time.
    assert none.share(C.ABSENT) == pytest.approx(1 - math.exp(-4200 / 1080 / 100), rel=0.03)


def test_detection_is_seen_by_both() -> None:
    result = simulate(replace(FLEET, arrivals="periodic", detect_s=60))
    assert result.synchronous.share(C.DETECT) == pytest.approx(60 / 1080)
    assert result.isolated.share(C.DETECT) == pytest.approx(60 / 1080 * 11 / 12)


def test_simulated_checkpoint_optimum_is_youngs() -> None:
    scenario = Scenario(days=30, mtbf_s=7200, restart_s=60, checkpoint_write_s=20)
    intervals = np.geomspace(150, 2000, 40).tolist()
    best = max(curve(scenario, "checkpoint", intervals), key=lambda point: point.synchronous.mean)
    assert best.value == pytest.approx(young(20, 7200), rel=0.35)


def test_a_switch_takes_two_groups_at_once() -> None:
    scenario = Scenario(groups=4, days=1, stall_s=60, restart_s=600)
    both = Failures(np.array([3600.0, 3600.0]), np.array([0.1, 0.3]))
    ledger = replay(scenario, both).isolated.ledger_ns
    assert ledger[C.ABSENT] == 2 * 600 * 10**9
    assert ledger[C.QUORUM] == 2 * 60 * 10**9  # the two others wait once
    assert replay(scenario, both).synchronous.ledger_ns[C.RESTART] == 600 * 10**9


def test_each_failure_may_have_its_own_detection_and_repair() -> None:
    scenario = Scenario(groups=2, days=1, restart_s=100, spare_hosts=0)
    hang = Failures(
        np.array([1000.0, 9000.0]), np.array([0.0, 0.5]), np.array([600.0, 2.0]), np.array([50.0, 3000.0])
    )
    ledger = replay(scenario, hang).isolated.ledger_ns
    assert ledger[C.DETECT] == 602 * 10**9  # of the other group
    assert ledger[C.ABSENT] == (700 + 3100) * 10**9


@pytest.mark.parametrize(
    ("over", "points", "rises"),
    [
        ("mtbf", [600, 1200, 2400, 4800], True),
        ("restart", [60, 300, 600, 1200], False),
        ("detection", [0, 30, 60, 120], False),
        ("size", [8192, 32768, 98304], False),
        ("groups", [1, 2, 4, 8, 16], True),
    ],
)
def test_curves_go_the_way_they_must(over: str, points: list[float], rises: bool) -> None:
    found = curve(FLEET, over, points)  # type: ignore[arg-type]
    assert [point.value for point in found] == points
    means = [point.isolated.mean for point in found]
    assert means == sorted(means, reverse=not rises)
    assert all(point.isolated.p5 <= point.isolated.mean <= point.isolated.p95 for point in found)


def test_a_curve_says_what_the_full_simulation_says() -> None:
    (point,) = curve(FLEET, "groups", [12])
    full = simulate(FLEET, 100, seed=9)
    assert point.isolated.mean == pytest.approx(full.isolated.ett_capacity.mean, abs=0.01)
    assert point.synchronous.mean == pytest.approx(full.synchronous.ett_capacity.mean, abs=0.02)
    width = full.isolated.ett_capacity.p95 - full.isolated.ett_capacity.p5
    assert point.isolated.p95 - point.isolated.p5 == pytest.approx(width, rel=0.8)


@pytest.mark.parametrize("name", ["groups", "mtbf_s", "restart_s", "least_groups", "checkpoint_interval_s"])
def test_what_makes_no_sense_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Scenario(**{name: -1})  # type: ignore[arg-type]


def test_a_run_is_the_same_in_any_company() -> None:
    few, more = (simulate(replace(FLEET, days=2), runs, seed=3) for runs in (1, 40))
    alone = few.isolated.ett_capacity.mean
    assert few.isolated.ett_capacity.p5 == alone
    drawn = [draw(replace(FLEET, days=2), runs, seed=3) for runs in (range(40), range(7, 8))]
    width = min(drawn[0].time_s.shape[1], drawn[1].time_s.shape[1])
    assert (drawn[0].time_s[7, :width] == drawn[1].time_s[0, :width]).all()
    assert more.runs == 40 and few.runs == 1
