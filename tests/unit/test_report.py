"""The report: DESIGN's keys, JSON as it is, reasons for nulls, and the terminal's screens."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from facts import FactBuilder, empty_store

from rankscope.analytics.comparison import compare
from rankscope.analytics.report import build_report, list_runs, rank_list
from rankscope.app.cli import main
from rankscope.ingest.errors import UserError
from rankscope.ingest.store import Store
from rankscope.ingest.vocabulary import LedgerCategory

KEYS = (
    "run_id status ranks replica_groups attempts wall_s time_to_start_s time_to_recover_s failures mttf_h "
    "mttf_ci95_h steps_committed steps_lost ett_time ett_capacity ledger ledger_total_rank_s ledger_ns "
    "ledger_total_ns coverage init incidents notes"
)
INCIDENT_KEYS = (
    "id began kind verdict confidence root_rank root_host replica_group evidence missing_ranks pg seq "
    "held_ranks restarted_ranks detect_s quorum_s reconfigure_s restart_s heal_s stall_s recovered"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run that lost a rank, and an earlier one that did not."""
    path = tmp_path_factory.mktemp("report") / "runs.duckdb"
    with empty_store(str(path)) as con:
        calm = FactBuilder("calm")
        calm.attempt(0)
        calm.process(0, 0, spawn=0, end=20, exit_code=0)
        calm.steps(0, 0, begin=5, count=5, seconds=3)
        calm.write(con)
        broken = FactBuilder("broken", ranks=2)
        for attempt, begin in ((0, 100), (1, 130)):
            broken.attempt(attempt)
            for rank in range(2):
                code = 0 if attempt else (-9, -15)[rank]
                broken.process(attempt, rank, spawn=begin, end=begin + 20 + rank, exit_code=code)
                broken.span(attempt, rank, "init", begin, begin + 2 + rank, name="import")
                broken.steps(attempt, rank, begin=begin + 5, count=4, seconds=3, first=2 * attempt)
        broken.write(con)
    return path


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as store:
        yield store


def test_the_keys_of_the_design(store: Store) -> None:
    report = build_report(store, "latest")
    assert report["run_id"] == "broken"
    assert set(KEYS.split()) <= set(report)
    assert set(report["coverage"]) >= {"ranks_expected", "ranks_reporting", "dropped"}
    assert set(report["init"]) == {"total_s", "slowest_rank", "phases"}
    assert {key for phase in report["init"]["phases"] for key in phase} == {
        "name",
        "p50_s",
        "p99_s",
        "max_s",
        "max_rank",
    }
    (incident,) = report["incidents"]
    assert set(INCIDENT_KEYS.split()) <= set(incident)
    assert incident["root_rank"] == 0 and incident["evidence"][0]["role"] == "root"
    assert report["attempts"] == 2 and report["failures"] == 1 and report["steps_lost"] == 2
    assert report["init"]["slowest_rank"] in (0, 1) and report["init"]["total_s"] == 5


def test_the_ledger_closes_in_integers(store: Store) -> None:
    report = build_report(store, "broken")
    assert list(report["ledger_ns"]) == [category.value for category in LedgerCategory]
    assert sum(report["ledger_ns"].values()) == report["ledger_total_ns"] == 2 * 51 * 10**9
    assert report["ledger_total_ns"] == report["ranks"] * report["wall_ns"]
    assert all(isinstance(ns, int) for ns in report["ledger_ns"].values())
    assert report["ledger_total_rank_s"] == pytest.approx(sum(report["ledger"].values()))


def test_json_says_the_same_and_nulls_have_reasons(store: Store) -> None:
    for run in ("calm", "broken"):
        report = build_report(store, run)
        assert json.loads(json.dumps(report, allow_nan=False)) == report
        missing = {key for key, value in report.items() if value is None}
        assert missing <= set(report["notes"])
        for incident in report["incidents"]:
            for key, value in incident.items():
                assert value is not None or f"incidents[{incident['id']}].{key}" in report["notes"], key
    assert build_report(store, "calm")["notes"]["mttf_h"].startswith("nothing failed")


def test_a_run_that_is_not_there(store: Store) -> None:
    with pytest.raises(UserError, match="broken, calm"):
        build_report(store, "nobody")


def test_an_empty_store_has_no_latest(tmp_path: Path) -> None:
    path = tmp_path / "empty.duckdb"
    empty_store(str(path)).close()
    with Store.open(path) as store, pytest.raises(UserError, match="no run in"):
        build_report(store, "latest")


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [([], []), ([3, 1], [1, 3]), (list(range(65)), ["0-64"]), ([*range(4096), 5000], ["0-4095", "5000"])],
)
def test_long_lists_of_ranks_are_ranges(ranks: list[int], expected: list[Any]) -> None:
    assert rank_list(ranks) == expected


def test_runs_are_listed_oldest_first(store: Store) -> None:
    runs = list_runs(store)
    assert [run["run_id"] for run in runs] == ["calm", "broken"]
    assert {"status", "ranks", "replica_groups", "attempts", "ett_capacity"} <= set(runs[0])


def test_comparison_says_which_is_better(store: Store) -> None:
    comparison = compare(build_report(store, "broken"), build_report(store, "calm"))
    metrics = {metric["name"]: metric for metric in comparison["metrics"]}
    assert metrics["failures"]["better"] == "b" and metrics["failures"]["difference"] == -1
    assert metrics["ett_capacity"]["better"] == "b" and metrics["ranks"]["better"] is None
    assert metrics["mttf_h"]["difference"] is None
    assert sum(row["b_ratio"] for row in comparison["ledger"]) == pytest.approx(1)


@pytest.mark.parametrize(
    "command", [["report", "broken"], ["report"], ["runs"], ["compare", "broken", "calm"]]
)
def test_commands_in_words_and_in_json(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*command, "--store", str(path)]) == 0
    words = capsys.readouterr().out
    assert "broken" in words and ("SIGKILL" in words or command[0] != "report")
    assert len(words.splitlines()) <= 50  # one screen
    assert main([*command, "--store", str(path), "--json"]) == 0
    json.loads(capsys.readouterr().out)


def test_a_missing_run_is_one_line_and_status_1(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nobody", "--store", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
