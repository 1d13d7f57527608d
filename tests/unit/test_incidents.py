"""Incidents from evidence: who failed first, who only fell with it, and which ends are no failure."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from facts import FactBuilder, empty_store, ns


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_store() as con:
        yield con


def _incidents(store: duckdb.DuckDBPyConnection, facts: FactBuilder) -> list[dict[str, Any]]:
    facts.write(store)
    result = store.execute(
        "SELECT * FROM v_incident WHERE run_id = $run ORDER BY incident_id", {"run": facts.run_id}
    )
    return result.to_arrow_table().to_pylist()


def _attempt(
    facts: FactBuilder, attempt: int, codes: list[int | None], begin: float = 0, **launch: Any
) -> None:
    """Four steps for each rank, then its exit code, a moment after another."""
    facts.attempt(attempt, **launch)
    for rank, code in enumerate(codes):
        facts.process(
            attempt, rank, spawn=begin, end=begin + 20 + rank / 100, exit_code=code, host=f"host-{rank}"
        )
        facts.steps(attempt, rank, begin=begin + 5, count=4, seconds=3, first=4 * attempt)


def test_a_killed_rank_and_its_collateral(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("killed", ranks=3)
    _attempt(facts, 0, [-15, -15, -9])
    facts.signal(0, 0, "collective_error", 19.9, message="Connection closed by peer")
    facts.signal(0, 1, "injected", 10, message="killed rank 1")  # a lie, to see that nobody looks
    _attempt(facts, 1, [0, 0, 0], begin=30)
    (incident,) = _incidents(store, facts)
    assert incident["root_rank"] == 2 and incident["root_host"] == "host-2" and incident["kind"] == "crash"
    assert incident["verdict"] == "rank 2 on host-2 was ended by SIGKILL"
    assert incident["recovered"] and incident["recovered_ns"] == ns(38)
    assert incident["began_ns"] == ns(19.9)  # no later than the first error that it caused
    assert incident["held_ranks"] == [0, 1, 2] == incident["restarted_ranks"]
    roles = store.execute(
        "SELECT role, rank, kind FROM v_evidence WHERE run_id = 'killed' ORDER BY ordinal"
    ).fetchall()
    assert roles[0] == ("root", 2, "exit")
    assert {role for role, rank, _ in roles if rank != 2} == {"collateral"}
    assert "injected" not in {kind for _, _, kind in roles}


def test_the_exception_and_not_the_errors_that_it_caused(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("exception", ranks=3)
    _attempt(facts, 0, [1, 1, 1])
    facts.signal(0, 0, "collective_error", 18.2, message="Connection reset by peer")
    facts.signal(0, 0, "exception", 18.3, message="RuntimeError: [gloo] Connection closed by peer")
    facts.signal(0, 1, "exception", 18, message="ValueError: negative learning rate")
    facts.signal(0, 2, "exception", 17.9, message="DistBackendError: NCCL communicator was aborted")
    (incident,) = _incidents(store, facts)
    assert incident["root_rank"] == 1 and incident["kind"] == "exception"
    assert incident["verdict"] == "rank 1 on host-1 failed: ValueError: negative learning rate"
    assert not incident["recovered"] and incident["recovered_ns"] is None


def test_watchdogs_that_abort_are_collateral(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("watchdog", ranks=3)
    _attempt(facts, 0, [-6, -11, -6])
    for rank in (0, 2):
        facts.signal(0, rank, "watchdog", 17, message="Watchdog caught collective operation timeout")
    (incident,) = _incidents(store, facts)
    assert incident["root_rank"] == 1 and incident["verdict"].endswith("SIGSEGV")


def test_nobody_stands_out_where_all_saw_the_same(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("network", ranks=3)
    _attempt(facts, 0, [1, 1, 1])
    for rank in range(3):
        facts.signal(0, rank, "collective_error", 18 + rank / 10, message="Connection timed out")
    (incident,) = _incidents(store, facts)
    assert incident["root_rank"] is None and incident["kind"] == "unknown" and incident["confidence"] < 0.5


def test_out_of_memory_is_told_apart(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("memory", ranks=2)
    _attempt(facts, 0, [-15, -9])
    facts.signal(
        0,
        1,
        "launcher",
        20,
        failure_kind="out_of_memory",
        message="killed by the memory cgroup",
        observer="launcher",
    )
    (incident,) = _incidents(store, facts)
    assert incident["root_rank"] == 1 and incident["kind"] == "out_of_memory"


@pytest.mark.parametrize(
    ("run_id", "codes"),
    [("clean", [0, 0]), ("interrupted", [-2, -2]), ("ctrl-c", [130, 130]), ("ended", [-15, -15])],
)
def test_ends_that_somebody_asked_for_are_no_failure(
    store: duckdb.DuckDBPyConnection, run_id: str, codes: list[int | None]
) -> None:
    facts = FactBuilder(run_id, ranks=2)
    _attempt(facts, 0, codes)
    facts.signal(0, None, "nccl_warn", 8, message="a harmless warning", observer="log")
    assert _incidents(store, facts) == []
    row = store.execute("SELECT status, failures FROM v_run WHERE run_id = $run", {"run": run_id}).fetchone()
    assert row == ("finished", 0)


def test_a_planned_end_is_no_failure(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("planned", ranks=2)
    _attempt(facts, 0, [-9, -9])
    facts.signal(0, None, "launcher", 19, failure_kind="planned", message="pre-empted", observer="launcher")
    assert _incidents(store, facts) == []


def test_a_sigterm_that_the_launcher_answered_with_a_restart_is_one(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("terminated", ranks=2)
    _attempt(facts, 0, [-15, -15])
    _attempt(facts, 1, [0, 0], begin=30)
    (incident,) = _incidents(store, facts)
    assert (
        incident["root_rank"] == 0 and incident["confidence"] < 0.5
    )  # the first to go, and no more is known


def test_broken_off_without_a_word(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("lights-out", ranks=2)
    facts.attempt(0)
    for rank in range(2):
        facts.process(0, rank, spawn=0, last=18, complete=True)
        facts.steps(0, rank, begin=5, count=4, seconds=3)
        facts.step(0, rank, 4, 17, None)
    (incident,) = _incidents(store, facts)
    assert incident["kind"] == "unknown" and incident["root_rank"] is None and incident["steps_lost"] == 1
    assert store.execute("SELECT status FROM v_run WHERE run_id = 'lights-out'").fetchone() == ("failed",)


def test_one_replica_group_fails_and_the_others_go_on(store: duckdb.DuckDBPyConnection) -> None:
    facts = FactBuilder("groups", ranks=3)
    facts.attempt(0)
    for rank in range(3):
        facts.process(
            0,
            rank,
            spawn=0,
            end=20 if rank == 1 else 60,
            exit_code=-9 if rank == 1 else 0,
            replica_group=rank,
        )
        facts.steps(0, rank, begin=5, count=4, seconds=3)
        facts.step(0, rank, 4, 17, None if rank == 1 else 21, committed=False)
    facts.process(0, 1, spawn=30, end=60, exit_code=0, replica_group=1, incarnation=1)
    facts.span(0, 1, "heal", 33, 36, incarnation=1)
    for rank in (0, 2):
        facts.signal(0, rank, "collective_error", 20.1, message="connection closed")
        facts.span(0, rank, "quorum", 21, 26)
        facts.steps(0, rank, begin=26, count=11, seconds=3, first=4)
    facts.steps(0, 1, begin=38, count=7, seconds=3, first=8, incarnation=1)
    (incident,) = _incidents(store, facts)
    assert (incident["root_rank"], incident["replica_group"]) == (1, 1)
    assert incident["restarted_ranks"] == [1] and incident["held_ranks"] == [0, 1, 2] and incident["isolated"]
    assert incident["quorum_s"] == 5 and incident["heal_s"] == 3 and incident["restart_s"] == 10
    assert incident["stall_s"] == 9  # survivors: 17 -> 29, less a step of 3 s
    assert incident["steps_lost"] == 1 and incident["recovered_ns"] == ns(41)
    lost = store.execute("SELECT steps_lost, steps_committed FROM v_run WHERE run_id = 'groups'").fetchone()
    assert lost == (1, 15)
