"""The report of a run that was just trained says what was really done to it."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from rankscope.sample_data.progress import Progress, read_progress

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def progress(demo_run: Any) -> list[Progress]:
    return read_progress(demo_run.folder / "progress.jsonl")


@pytest.fixture(scope="module")
def store(demo_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy: Path = demo_run.copy_store(tmp_path_factory.mktemp("truth"))
    return copy


@pytest.fixture(scope="module")
def report(store: Path, cli: Any) -> dict[str, Any]:
    done = cli("report", "latest", "--json", "--store", store)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sql(cli: Any, store: Path, query: str) -> list[dict[str, Any]]:
    done = cli("sql", query, "--store", store, "--format", "json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def test_it_learns(progress: list[Progress]) -> None:
    first = statistics.mean(now.loss for now in progress[:5])
    last = statistics.mean(now.loss for now in progress[-5:])
    assert last < first - 1, "nats a byte"
    assert progress[-1].step == progress[-1].steps


def test_killed_rank_is_the_root_cause_and_the_only_one(report: dict[str, Any], demo_run: Any) -> None:
    (incident,) = report["incidents"]
    assert incident["root_rank"] == demo_run.truth["rank"]
    assert incident["kind"] == "crash"
    assert incident["recovered"] is True
    assert report["failures"] == 1


def test_the_other_ranks_are_collateral(demo_run: Any, cli: Any, store: Path) -> None:
    evidence = sql(
        cli,
        store,
        "SELECT role, rank FROM v_evidence JOIN v_incident USING (run_id, incident_id)"
        " WHERE role IN ('root', 'collateral') AND rank >= 0",
    )
    killed = demo_run.truth["rank"]
    assert {row["rank"] for row in evidence if row["role"] == "root"} == {killed}
    collateral = {row["rank"] for row in evidence if row["role"] == "collateral"}
    assert collateral == {0, 1, 2, 3} - {killed}


def test_all_ranks_had_to_start_again(report: dict[str, Any]) -> None:
    (incident,) = report["incidents"]
    assert incident["restarted_ranks"] == [0, 1, 2, 3]
    assert report["attempts"] == 2
    assert report["status"] == "finished"


def test_lost_steps_are_those_that_were_done_again(report: dict[str, Any], progress: list[Progress]) -> None:
    again = len(progress) - len({now.step for now in progress})
    assert again >= 1, "the fault comes between two checkpoints"
    # The step in flight at the crash is lost as well, though no rank told of it.
    assert again <= report["steps_lost"] <= again + 1
    assert report["steps_committed"] == progress[-1].steps


def test_coverage_is_complete(report: dict[str, Any]) -> None:
    assert report["coverage"] == {
        **report["coverage"],
        "ranks_expected": 4,
        "ranks_reporting": 4,
        "dropped": 0,
    }


def test_ledger_closes_to_the_nanosecond(report: dict[str, Any], cli: Any, store: Path) -> None:
    assert sum(report["ledger_ns"].values()) == report["ledger_total_ns"]
    (run,) = sql(cli, store, "SELECT wall_ns FROM v_run")
    assert report["ledger_total_ns"] == report["ranks"] * run["wall_ns"]
    assert report["ledger_ns"]["lost"] > 0
    assert report["ledger_ns"]["init"] > 0


def test_effective_training_time_is_in_order(report: dict[str, Any]) -> None:
    assert 0 < report["ett_capacity"] <= report["ett_time"] <= 1
    kept = sum(report["ledger_ns"][name] for name in ("productive", "straggler_wait", "data_wait"))
    total = report["ledger_total_ns"] - report["ledger_ns"].get("queue", 0)
    assert math.isclose(report["ett_capacity"], kept / total, abs_tol=1e-9)


def test_start_up_is_taken_apart(report: dict[str, Any]) -> None:
    init = report["init"]
    assert init["slowest_rank"] in range(4)
    phases = {phase["name"]: phase for phase in init["phases"]}
    assert {"spawn", "import", "process_group"} <= phases.keys()
    for phase in phases.values():
        assert 0 <= phase["p50_s"] <= phase["p99_s"] <= phase["max_s"]
    assert 0 < report["time_to_start_s"] < report["wall_s"]
    assert 0 < report["time_to_recover_s"] < report["wall_s"]


def test_loss_reached_the_store(progress: list[Progress], cli: Any, store: Path) -> None:
    rows = sql(
        cli,
        store,
        "SELECT step, value FROM v_scalar WHERE name = 'loss' AND rank = 0 ORDER BY time_ns",
    )
    assert [row["value"] for row in rows] == pytest.approx([now.loss for now in progress], rel=1e-6)


def test_demo_told_one_line_a_phase_and_the_verdict(demo_run: Any) -> None:
    for phase in ("training", "killed", "recovered", "trained", "collected", "done"):
        lines = [line for line in demo_run.output.splitlines() if line[10:].split(" ")[0] == phase]
        assert len(lines) == 1, f"{phase}: {lines}"
    assert f"dash --store {demo_run.store}" in demo_run.output
