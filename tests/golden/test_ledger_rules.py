"""METRICS §1: each category of the time ledger on the smallest run that has it. Seconds of rank time."""

from collections.abc import Iterator

import duckdb
import pytest
from facts import FactBuilder, empty_store, ledger


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_store() as con:
        yield con


def _written(store: duckdb.DuckDBPyConnection, facts: FactBuilder) -> dict[str, float]:
    facts.write(store)
    found = ledger(store, facts.run_id)
    total = store.execute(
        "SELECT ledger_total_ns FROM v_run WHERE run_id = $run", {"run": facts.run_id}
    ).fetchone()
    assert total is not None and round(sum(found.values()) * 1e9) == int(total[0])
    return found


def _one_rank(run_id: str, end: float = 20, exit_code: int = 0) -> FactBuilder:
    """A rank that starts at 0, steps from 5 on and ends at 20."""
    facts = FactBuilder(run_id)
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=end, exit_code=exit_code)
    return facts


def test_queue_is_time_without_an_allocation(store: duckdb.DuckDBPyConnection) -> None:
    facts = _one_rank("queue", end=20, exit_code=-9)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    facts.attempt(1, queued=21, allocated=28)
    facts.process(1, 0, spawn=30, end=41, exit_code=0)
    facts.steps(1, 0, begin=32, count=3, seconds=3, first=5)
    assert _written(store, facts) == {
        "init": 7,
        "productive": 24,
        "queue": 7,
        "restart": 3,
    }
    row = store.execute("SELECT ett_capacity FROM v_run WHERE run_id = 'queue'").fetchone()
    assert row == (pytest.approx(24 / (41 - 7)),)  # the queue is taken off


def test_the_first_moment_is_the_allocation(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("allocated")
    facts.attempt(0, allocated=-10)
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    assert _written(store, facts) == {"init": 15, "productive": 15}
    row = store.execute("SELECT time_to_start_s FROM v_run WHERE run_id = 'allocated'").fetchone()
    assert row == (15,)


def test_absent_while_others_go_on_and_restart_when_nobody_does(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("absent", ranks=2)
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=-9)
    facts.process(0, 1, spawn=0, end=24, exit_code=-15)
    for rank in range(2):
        facts.steps(0, rank, begin=5, count=5, seconds=3)
    facts.attempt(1)
    for rank in range(2):
        facts.process(1, rank, spawn=30, end=35, exit_code=0)
        facts.steps(1, rank, begin=32, count=1, seconds=3, first=5)
    assert _written(store, facts) == {
        "absent": 4,  # rank 0, until rank 1 ended too
        "restart": 12,  # both, from there to the new processes
        "init": 14,
        "productive": 36,
        "unexplained": 4,  # rank 1, alive and idle
    }


def test_a_late_rank_is_missed_from_the_first_step_on(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("late", ranks=2)
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    facts.process(0, 1, spawn=8, end=20, exit_code=0)
    facts.steps(0, 1, begin=11, count=3, seconds=3, first=2)
    assert _written(store, facts) == {"init": 5 + 5 + 3, "absent": 3, "productive": 24}


def test_a_silent_rank_is_unexplained(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("silent", ranks=2)
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    assert _written(store, facts) == {"init": 5, "productive": 15, "unexplained": 20}
    row = store.execute("SELECT ranks_silent FROM v_coverage WHERE run_id = 'silent'").fetchone()
    assert row == (1,)


def test_detect_until_somebody_saw_it(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("detect", ranks=2)
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=22, exit_code=1)
    facts.process(0, 1, spawn=0, end=22, exit_code=-15)
    for rank in range(2):
        facts.steps(0, rank, begin=5, count=4, seconds=3)
        facts.step(0, rank, 4, 17, 18 if rank == 0 else 20, status="error", committed=False)
    facts.signal(0, 0, "exception", 18, message="ValueError: bad batch")
    facts.signal(0, 1, "collective_error", 20, message="Connection closed by peer")
    assert _written(store, facts) == {
        "init": 10,
        "productive": 24,
        "lost": 2,  # the step in flight, up to the failure
        "detect": 4 + 2,  # the failed rank to its process' end, the other to its own error at 20
        "unexplained": 2,  # the other, from its error to its end
    }


@pytest.mark.parametrize("category", ["quorum", "reconfigure", "heal"])
def test_waiting_to_go_on_together(store: duckdb.DuckDBPyConnection, category: str) -> None:
    facts = _one_rank(category, end=22)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    facts.span(0, 0, category, 3, 4)  # at its start, before its first step
    facts.span(0, 0, category, 20, 22)
    assert _written(store, facts) == {"init": 4, category: 3, "productive": 15}


def test_lost_is_what_remains_of_a_step_thrown_away(store: duckdb.DuckDBPyConnection) -> None:
    facts = _one_rank("lost", end=25, exit_code=-9)
    facts.steps(0, 0, begin=5, count=3, seconds=3)
    facts.step(0, 0, 3, 14, 17, committed=False)  # not committed
    facts.span(0, 0, "data_wait", 17, 18, step=4)
    facts.span(0, 0, "checkpoint_save", 19, 20)  # inside the step that is lost
    facts.step(0, 0, 4, 18, None)  # in flight when the process was killed at 25
    assert _written(store, facts) == {"init": 5, "productive": 9, "lost": 3 + 1 + 7}
    reasons = store.execute(
        "SELECT step, lost_reason FROM v_step WHERE run_id = 'lost' AND NOT kept ORDER BY step"
    ).fetchall()
    assert reasons == [(3, "not committed"), (4, "in flight")]


def test_init_includes_the_warm_up_of_the_first_step(store: duckdb.DuckDBPyConnection) -> None:
    facts = _one_rank("warm-up", end=22)
    facts.step(0, 0, 0, 5, 10)
    facts.steps(0, 0, begin=10, count=4, seconds=3, first=1)
    assert _written(store, facts) == {"init": 5 + 2, "productive": 15}


def test_a_run_with_nothing_but_a_start(store: duckdb.DuckDBPyConnection) -> None:
    facts = _one_rank("only-init", end=20, exit_code=1)
    assert _written(store, facts) == {"init": 20}


def test_checkpoint_eval_and_data_wait_come_off_the_step(store: duckdb.DuckDBPyConnection) -> None:
    facts = _one_rank("inside", end=26)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    facts.span(0, 0, "data_wait", 8, 9, step=1)
    facts.span(0, 0, "checkpoint_save", 13, 14)
    facts.span(0, 0, "checkpoint_save", 14, 20, thread=3)  # another thread blocks nobody
    facts.span(0, 0, "eval", 20, 26)
    facts.span(0, 0, "data_wait", 25, 26)  # inside the evaluation
    assert _written(store, facts) == {"init": 5, "productive": 13, "data_wait": 1, "checkpoint": 1, "eval": 6}
    row = store.execute("SELECT ett_capacity FROM v_run WHERE run_id = 'inside'").fetchone()
    assert row == (pytest.approx(14 / 26),)


def test_straggler_wait_is_for_the_last_to_arrive(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("straggler", ranks=3)
    facts.attempt(0)
    facts.group(0, "world", [0, 1, 2])
    facts.clock("host-1", 100)  # rank 1's clock runs 100 s ahead
    for rank, ahead in ((0, 0), (1, 100), (2, 0)):
        facts.process(0, rank, spawn=ahead, end=20 + ahead, exit_code=0, host=f"host-{rank}")
        facts.steps(0, rank, begin=5 + ahead, count=5, seconds=3)
        facts.collective(0, rank, 0, (6, 7, 5)[rank] + ahead, 7.5 + ahead)
        # Buckets of one backward: the first is hidden behind its compute, the last has nothing left.
        facts.collective(0, rank, 1, (8.5, 10, 8.5)[rank] + ahead, 10.1 + ahead, is_async=True)
        facts.collective(0, rank, 2, (9.5, 10.5, 9.5)[rank] + ahead, 10.7 + ahead, is_async=True)
        if rank:  # not all were seen in it: it does not count
            facts.collective(0, rank, 3, (0, 12, 13)[rank] + ahead, 13.5 + ahead)
    assert _written(store, facts) == {"init": 15, "straggler_wait": 1 + 2 + 1 + 1, "productive": 40}
    last = store.execute(
        "SELECT rank, imposed_ns / 1e9, last_arrivals FROM v_imposed_wait "
        "WHERE run_id = 'straggler' ORDER BY imposed_ns DESC LIMIT 1"
    ).fetchone()
    assert last == (1, 2 * (1 + 1.5 + 1), 3)  # after the second last, for two others


def test_stall_is_the_excess_of_a_very_long_step(store: duckdb.DuckDBPyConnection) -> None:
    facts = _one_rank("stall", end=36)
    facts.steps(0, 0, begin=5, count=4, seconds=3)
    facts.step(0, 0, 4, 17, 27)
    facts.step(0, 0, 5, 27, 36)  # exactly three reference steps is no stall
    facts.span(0, 0, "checkpoint_save", 22, 24)  # explains part of it
    assert _written(store, facts) == {"init": 5, "productive": 12 + 3 + 9, "stall": 5, "checkpoint": 2}


def test_unexplained_is_shown(store: duckdb.DuckDBPyConnection) -> None:
    facts = _one_rank("unexplained", end=30)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    assert _written(store, facts) == {"init": 5, "productive": 15, "unexplained": 10}


def test_a_run_that_goes_on_counts_its_open_step_for_now(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("open")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, last=16)
    facts.steps(0, 0, begin=5, count=3, seconds=3)
    facts.step(0, 0, 3, 14, None)
    assert _written(store, facts) == {"init": 5, "productive": 11}
    row = store.execute(
        "SELECT steps_committed, steps_lost, failures, time_to_start_s FROM v_run WHERE run_id = 'open'"
    ).fetchone()
    assert row == (3, 0, 0, 5)


def test_planned_ranks_follow_the_latest_launch(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("resized", ranks=3)
    facts.attempt(0, world_size=3)
    for rank in range(3):
        facts.process(0, rank, spawn=0, end=20, exit_code=-9 if rank == 2 else -15)
        facts.steps(0, rank, begin=5, count=5, seconds=3)
    facts.attempt(1, world_size=2)
    for rank in range(2):
        facts.process(1, rank, spawn=24, end=35, exit_code=0)
        facts.steps(1, rank, begin=26, count=3, seconds=3, first=5)
    assert sum(_written(store, facts).values()) == 3 * 20 + 2 * 15


def test_two_launches_of_one_run_with_a_pause(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("pause")
    facts.attempt(0, launch="monday")
    facts.process(0, 0, spawn=0, end=20, exit_code=0)
    facts.steps(0, 0, begin=5, count=5, seconds=3)
    facts.attempt(1, launch="tuesday")
    facts.process(1, 0, spawn=120, end=131, exit_code=0)
    facts.steps(1, 0, begin=122, count=3, seconds=3, first=5)
    assert _written(store, facts) == {"init": 7, "productive": 24, "restart": 100}
    row = store.execute("SELECT failures, attempts, status FROM v_run WHERE run_id = 'pause'").fetchone()
    assert row == (0, 2, "finished")


_RULES = (
    test_queue_is_time_without_an_allocation,
    test_the_first_moment_is_the_allocation,
    test_absent_while_others_go_on_and_restart_when_nobody_does,
    test_a_late_rank_is_missed_from_the_first_step_on,
    test_detect_until_somebody_saw_it,
    test_lost_is_what_remains_of_a_step_thrown_away,
    test_init_includes_the_warm_up_of_the_first_step,
    test_checkpoint_eval_and_data_wait_come_off_the_step,
    test_straggler_wait_is_for_the_last_to_arrive,
    test_stall_is_the_excess_of_a_very_long_step,
)


@pytest.fixture
def all_rules() -> Iterator[duckdb.DuckDBPyConnection]:
    """A store with the runs of all rules, whatever other tests ran before."""
    with empty_store() as con:
        for rule in _RULES:
            rule(con)
        yield con


def test_every_interval_leads_to_its_records(all_rules: duckdb.DuckDBPyConnection) -> None:
    unfounded = all_rules.execute(
        """
        SELECT i.run_id, i.category, i.begin_ns FROM v_ledger_interval i
        WHERE i.category <> 'unexplained' AND NOT EXISTS (
            SELECT 1 FROM v_ledger_source s
            WHERE s.run_id = i.run_id AND s.rank = i.rank AND s.category = i.category
              AND s.begin_ns <= i.begin_ns AND s.end_ns > i.begin_ns)
        """
    ).fetchall()
    assert unfounded == []
    sourceless = all_rules.execute(
        "SELECT DISTINCT category FROM v_ledger_source WHERE source_id IS NULL ORDER BY category"
    ).fetchall()
    assert [row[0] for row in sourceless] == ["absent", "detect", "init", "queue", "restart"]  # no one record
