"""Views beside the ledger: recovery's parts, inputs of the expected ratio, failures, lateness, liveness."""

import time
from collections.abc import Iterator

import duckdb
import pytest
from facts import EPOCH_NS, FactBuilder, empty_store


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_store() as con:
        yield con


def _two_attempts(run_id: str, host: str = "host-0") -> FactBuilder:
    facts = FactBuilder(run_id, ranks=2)
    facts.attempt(0)
    facts.attempt(1)
    for rank in range(2):
        facts.process(0, rank, spawn=0, end=21 + rank, exit_code=-15 if rank else -9, host=host)
        facts.steps(0, rank, begin=5, count=5, seconds=3)
        facts.step(0, rank, 5, 20, None)
        facts.process(1, rank, spawn=30, end=60, exit_code=0, host=host)
        facts.steps(1, rank, begin=36, count=8, seconds=3, first=4)
        for begin in (11, 17):
            facts.span(0, rank, "checkpoint_save", begin, begin + 0.5 + rank / 2, step=int((begin - 5) / 3))
    return facts


def test_recovery_in_parts(store: duckdb.DuckDBPyConnection) -> None:
    _two_attempts("parts").write(store)
    parts = store.execute(
        "SELECT part, seconds FROM v_restart_cost WHERE run_id = 'parts' ORDER BY ordinal"
    ).fetchall()
    # Failed at 21, all gone at 22, new processes at 30, first step at 36, step 5 done again at 42.
    assert parts == [("detect", 0), ("teardown", 1), ("restart", 8), ("init", 6), ("redo", 6)]


def test_inputs_of_the_expected_ratio(store: duckdb.DuckDBPyConnection) -> None:
    _two_attempts("inputs").write(store)
    row = store.execute(
        "SELECT failures, observed_s, nodes, restart_s, checkpoint_interval_s, checkpoint_write_s, "
        "checkpoints, mttf_h FROM v_ettr_inputs WHERE run_id = 'inputs'"
    ).fetchone()
    assert row == (1, 60, 1, 15, 6, 1, 2, pytest.approx(60 / 3600))


def test_causes_in_the_published_names(store: duckdb.DuckDBPyConnection) -> None:
    facts = _two_attempts("xid")
    facts.signal(0, 0, "xid", 20.5, failure_kind="hardware", message="Xid 79", observer="kernel")
    facts.rows["signal"][-1]["attrs"] = '{"cause": "faulty_gpu"}'
    facts.write(store)
    causes = store.execute(
        "SELECT kind, cause, failures FROM v_failure_cause WHERE run_id = 'xid'"
    ).fetchall()
    assert causes == [("hardware", "faulty_gpu", 1)] or causes == [("crash", "faulty_gpu", 1)]


def test_failures_by_host_and_node_day(store: duckdb.DuckDBPyConnection) -> None:
    _two_attempts("hosts", host="bad-host").write(store)
    row = store.execute(
        "SELECT host, failures, node_days * 86400, failures_per_1000_node_days "
        "FROM v_host_failure WHERE run_id = 'hosts'"
    ).fetchone()
    assert row == ("bad-host", 1, pytest.approx(22 + 30), pytest.approx(1000 / (52 / 86400)))
    rate = store.execute(
        "SELECT nodes, failures, mttf_h * 3600 FROM v_failure_rate WHERE run_id = 'hosts'"
    ).fetchone()
    assert rate == (1, 1, pytest.approx(60))


def test_restarts_that_do_not_advance(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("storm")
    for attempt, resumed in enumerate([0, 10, 10, 10, 20]):
        begin = 100 * attempt
        facts.attempt(attempt)
        facts.process(attempt, 0, spawn=begin, end=begin + 90, exit_code=-9)
        facts.steps(attempt, 0, begin=begin + 5, count=12, seconds=3, first=resumed)
    facts.write(store)
    rows = store.execute(
        "SELECT resumed_at, advanced, restarts_in_hour, restarts_without_advance, since_previous_s "
        "FROM v_restart WHERE run_id = 'storm' ORDER BY attempt"
    ).fetchall()
    assert rows == [
        (10, True, 1, 0, 100),
        (10, False, 2, 1, 100),
        (10, False, 3, 2, 100),
        (20, True, 4, 0, 100),
    ]


def test_lateness_from_roll_ups(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("late", ranks=3)
    facts.attempt(0)
    for rank in range(3):
        facts.process(0, rank, spawn=0, end=30, exit_code=0, mesh={"dp": rank})
        facts.steps(0, rank, begin=5, count=4, seconds=3)
        for step in range(4):
            arrival = 5 + 3 * step + (1, 1.25, 2)[rank]
            facts.rollup(0, rank, step, arrival, 5 + 3 * step + 2.5)
    facts.write(store)
    rows = store.execute(
        "SELECT rank, late_mean_ns / 1e9, basis FROM v_lateness WHERE run_id = 'late' ORDER BY rank"
    ).fetchall()
    assert rows == [(0, -0.25, "rollup"), (1, 0, "rollup"), (2, 0.75, "rollup")]
    imposed = store.execute(
        "SELECT rank, imposed_ns / 1e9, waited_ns / 1e9, last_arrivals, mesh ->> 'dp' FROM v_imposed_wait "
        "WHERE run_id = 'late' ORDER BY rank"
    ).fetchall()
    assert imposed == [(0, 0, 4, 0, "0"), (1, 0, 3, 0, "1"), (2, 4 * 0.75 * 2, 0, 4, "2")]


def test_start_up_phases_are_exclusive(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("start")
    facts.attempt(0)
    facts.process(0, 0, spawn=0, end=40, exit_code=0)
    for name, begin, end in (
        ("spawn", 0, 2),
        ("import", 2, 5),
        ("process_group", 5, 9),
        ("store", 6, 7),
        ("model", 9, 14),
        ("checkpoint_load", 10, 12),
        ("communicator", 16, 17),
    ):
        facts.span(0, 0, "init", begin, end, name=name)
    facts.step(0, 0, 0, 15, 20)
    facts.steps(0, 0, begin=20, count=4, seconds=3, first=1)
    facts.write(store)
    phases = store.execute(
        "SELECT phase, duration_s FROM v_init_rank WHERE run_id = 'start' ORDER BY ordinal"
    ).fetchall()
    assert phases == [
        ("spawn", 2),
        ("import", 3),
        ("store", 1),
        ("process_group", 3),
        ("communicator", 1),
        ("model", 3),
        ("checkpoint_load", 2),
        ("first_step", 1),
        ("other", 1),
    ]
    total = store.execute(
        "SELECT sum(ns) / 1e9 FROM v_ledger WHERE run_id = 'start' AND category = 'init'"
    ).fetchone()
    assert total == (17,) == (sum(seconds for _, seconds in phases),)


def test_a_run_that_commits_nothing_is_stalled_and_one_without_a_sign_is_silent(
    store: duckdb.DuckDBPyConnection,
) -> None:
    now_s = (time.time_ns() - EPOCH_NS) / 1e9
    later = now_s + 3600  # however long this test takes, that is no sign of the past
    for run_id, last in (("stuck", later), ("silent", now_s - 100), ("lively", later)):
        facts = FactBuilder(run_id)
        facts.attempt(0)
        begin = now_s - 500
        facts.process(0, 0, spawn=begin, last=last)
        facts.steps(0, 0, begin=begin + 5, count=4, seconds=3)
        if run_id == "lively":
            facts.step(0, 0, 4, later - 4, later - 1)
        facts.write(store)
    status = dict(
        store.execute("SELECT run_id, status FROM v_run WHERE status IN ('stalled', 'running')").fetchall()
    )
    assert status == {"stuck": "stalled", "silent": "stalled", "lively": "running"}
    state = dict(store.execute("SELECT run_id, state FROM v_liveness").fetchall())
    assert state == {"stuck": "stuck", "silent": "silent", "lively": "training"}
