"""METRICS §2: effective training time as published, and where peers' figures differ, by how much and why.

Sources: P arXiv 2602.00277 (44 % -> 80 %; the talk on it says 50 % -> 90 %), S notes on it, R and M
ml-goodput-measurement 0.2.3 read and run, D derived.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pytest
from facts import FactBuilder, empty_store, ledger


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_store() as con:
        yield con


def _ett(store: duckdb.DuckDBPyConnection, facts: FactBuilder) -> tuple[float, float]:
    """(ett_time, ett_capacity)"""
    facts.write(store)
    row = store.execute(
        "SELECT ett_time, ett_capacity FROM v_run WHERE run_id = $run", {"run": facts.run_id}
    ).fetchone()
    assert row is not None and row[1] <= row[0] <= 1
    return row


def test_synchronous_18_minute_cycle_with_10_minutes_recovery(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("synchronous")
    for cycle in range(2):
        facts.attempt(cycle)
        begin = cycle * 18 * 60
        facts.process(cycle, 0, spawn=begin, end=begin + 8 * 60, exit_code=-9)
        facts.steps(cycle, 0, begin=begin, count=8, seconds=60, first=8 * cycle)
    facts.attempt(2)
    facts.process(2, 0, spawn=36 * 60, end=36 * 60, exit_code=0)
    ett_time, ett_capacity = _ett(store, facts)
    assert ett_capacity == pytest.approx((18 - 10) / 18)  # 44.4 %: P 44 %, arithmetic S
    assert ett_time == ett_capacity


def _twelve_groups(run_id: str, rejoin_stall_s: float) -> FactBuilder:
    """One group of twelve fails: 3 min stall, 7 min at 11/12, rejoin, 8 min full."""
    facts = FactBuilder(run_id, ranks=12)
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=0, exit_code=-9, replica_group=0)
    facts.process(0, 0, spawn=600, end=1080, exit_code=0, replica_group=0, incarnation=1)
    for rank in range(1, 12):
        facts.process(0, rank, spawn=0, end=1080, exit_code=0, replica_group=rank)
        facts.span(0, rank, "quorum", 0, 180)
        facts.steps(0, rank, begin=180, count=21, seconds=20)
    for rank in range(12):
        incarnation = 1 if rank == 0 else 0
        if rejoin_stall_s:
            category = "heal" if rank == 0 else "quorum"
            facts.span(0, rank, category, 600, 600 + rejoin_stall_s, incarnation=incarnation)
        begin = 600 + rejoin_stall_s
        count = round((480 - rejoin_stall_s) / 20)
        facts.steps(0, rank, begin=begin, count=count, seconds=20, first=21, incarnation=incarnation)
    return facts


def test_twelve_groups_with_one_away_for_ten_minutes(store: duckdb.DuckDBPyConnection) -> None:
    ett_time, ett_capacity = _ett(store, _twelve_groups("groups", 0))
    assert ett_capacity == pytest.approx((7 * 11 / 12 + 8) / 18)  # 80.1 %: P 80 %, arithmetic S
    assert ett_time == pytest.approx(173 / 206)  # 84.0 %: the absent ten minutes of one group taken off
    assert ledger(store, "groups")["absent"] == 600
    assert ett_capacity != pytest.approx((18 - 3) / 18, abs=0.02)  # 83.3 %: the reading to avoid


def test_the_same_with_the_stall_at_rejoin(store: duckdb.DuckDBPyConnection) -> None:
    _, ett_capacity = _ett(store, _twelve_groups("groups-rejoin", 100))
    assert ett_capacity == pytest.approx(0.708, abs=5e-4)  # D


@dataclass(frozen=True)
class Peer:
    """What ml-goodput-measurement 0.2.3 says of the same run (R, M), in seconds."""

    productive: float
    wasted: float
    infrastructure: float
    other: float


def test_five_steps_of_three_seconds(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("five-steps")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    ett_time, _ = _ett(store, facts)
    assert ett_time == 0.75  # R, M: the peer says the same


def _restarted(run_id: str, resumed_at: int) -> FactBuilder:
    """Start-up 5 s, steps 0-4 of 3 s, gap 5 s, start-up 5 s, three steps again, 2 s more: 41 s."""
    facts = FactBuilder(run_id)
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=-9)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    facts.attempt(1)
    facts.process(1, 0, spawn=25, end=41, exit_code=0)
    facts.steps(1, 0, begin=30, count=3, seconds=3, first=resumed_at)
    return facts


def test_restart_from_a_checkpoint_beside_the_peer(store: duckdb.DuckDBPyConnection) -> None:
    _ett(store, _restarted("resumed-at-2", 2))
    ours = ledger(store, "resumed-at-2")
    assert ours == {"productive": 15, "lost": 9, "init": 10, "restart": 5, "unexplained": 2}  # D
    peer = Peer(productive=12, wasted=6, infrastructure=8, other=15)
    step = 3
    # It has no end for the last step, so that one is no step to it: it falls to 'other'.
    assert peer.productive == ours["productive"] - step
    # To it the step in flight at the crash is infrastructure; to us it is lost work.
    assert peer.wasted == ours["lost"] - step
    assert peer.infrastructure == ours["restart"] + step
    # It counts start-up under 'other' here, with the last step and what nobody explains.
    assert peer.other == ours["init"] + ours["unexplained"] + step
    assert sum(ours.values()) == peer.productive + peer.wasted + peer.infrastructure + peer.other == 41


def test_resume_at_step_zero_loses_everything_before(store: duckdb.DuckDBPyConnection) -> None:
    _ett(store, _restarted("resumed-at-0", 0))
    ours = ledger(store, "resumed-at-0")
    assert ours["lost"] == 15  # D: all of the first segment
    peer_wasted = 0  # R: it takes a resume at 0 for a new job and finds nothing wasted
    assert peer_wasted != ours["lost"]
    assert ours["productive"] == 9
    lost = store.execute(
        "SELECT steps_lost, steps_committed FROM v_run WHERE run_id = 'resumed-at-0'"
    ).fetchone()
    assert lost == (5, 3)


def test_ett_mfu_halves_what_ran_at_half_speed(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("mfu")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=100, exit_code=0)
    facts.steps(0, 0, begin=20, count=80, seconds=1)
    for step in range(80):
        facts.scalar(0, 0, step, "mfu", 0.5 if step < 40 else 0.25, 20 + step)
    _, ett_capacity = _ett(store, facts)
    row = store.execute("SELECT ett_mfu, mfu_reference FROM v_run WHERE run_id = 'mfu'").fetchone()
    assert ett_capacity == pytest.approx(0.80)
    assert row == (pytest.approx(0.60), 0.5)  # D


def test_step_efficiency_measures_evenness_alone(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("uneven")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=40, exit_code=0)
    facts.steps(0, 0, begin=5, count=4, seconds=2)
    facts.step(0, 0, 4, 13, 17)
    facts.step(0, 0, 5, 17, 18)
    _ett(store, facts)
    row = store.execute("SELECT step_efficiency FROM v_run WHERE run_id = 'uneven'").fetchone()
    assert row == (pytest.approx((4 * 2 + 2 + 1) / (4 * 2 + 4 + 1)),)


def test_batches_committed_agree_with_the_ledger(store: duckdb.DuckDBPyConnection) -> None:
    """The cross-check with torchft's count: batches x reference / (N x wall)."""
    _ett(store, _twelve_groups("batches", 0))
    row = store.execute(
        """
        SELECT ett_capacity, (SELECT count(*) FROM v_step s WHERE s.run_id = r.run_id AND s.kept)
                             * reference_step_ns / (ranks * wall_ns) AS by_batches
        FROM v_run r WHERE run_id = 'batches'
        """
    ).fetchone()
    assert row is not None and row[1] == pytest.approx(row[0], rel=0.03)


def test_sliding_hour_and_so_far(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("hours")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=3 * 3600, exit_code=0)
    facts.steps(0, 0, begin=3600, count=60, seconds=60)  # idle before, busy for an hour, idle after
    _ett(store, facts)
    hours = store.execute(
        "SELECT max(ett_capacity_hour), arg_max(ett_capacity, bucket_ns), count(*) "
        "FROM v_ett_hour WHERE run_id = 'hours'"
    ).fetchone()
    assert hours is not None
    assert hours[0] == pytest.approx(1, abs=0.02) and hours[1] == pytest.approx(1 / 3, abs=1e-6)
    assert hours[2] == 181  # minutes touched
