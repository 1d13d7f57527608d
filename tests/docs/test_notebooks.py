"""Notebooks run from top to bottom on a store, and find in it what was put there."""

import json
from pathlib import Path
from typing import Any

import pytest
from facts import FactBuilder, empty_store

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, three attempts: 100 steps of a second, a save of 2 s after every 20, then rank 1 dies.

    It takes 40 s until the first step again; the last attempt ends by itself.
    """
    path = tmp_path_factory.mktemp("notebooks") / "runs.duckdb"
    facts = FactBuilder("three-attempts", ranks=2)
    begin = 0.0
    for attempt in range(3):
        facts.attempt(attempt)
        clock = begin + 30.0
        for rank in range(2):
            clock = begin + 30.0
            for twenty in range(5):
                clock = facts.steps(
                    attempt, rank, begin=clock, count=20, seconds=1, first=100 * attempt + 20 * twenty
                )
                facts.span(
                    attempt, rank, "checkpoint_save", clock, clock + 2, step=100 * attempt + 20 * twenty + 19
                )
                clock += 2
            code = 0 if attempt == 2 else (-9 if rank == 1 else 1)
            facts.process(attempt, rank, spawn=begin, end=clock, exit_code=code)
        begin = clock + 10.0
    con = empty_store(str(path))
    facts.write(con)
    con.close()
    return path


def run_notebook(path: Path) -> dict[str, Any]:
    """The names that its cells leave behind."""
    names: dict[str, Any] = {}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name} cell {number}", "exec"), names)
    return names


def test_effective_time(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKSCOPE_STORE", str(store))
    names = run_notebook(NOTEBOOKS / "effective_time.ipynb")
    assert names["run"]["run_id"] == "three-attempts"
    assert names["run"]["failures"] == 2
    assert sum(row["share"] for row in names["ledger"]) == pytest.approx(1)
    rates = names["rates"]
    assert rates.restart_s.value == pytest.approx(40)
    assert rates.checkpoint_interval_s.value == pytest.approx(20)
    assert rates.checkpoint_write_s.value == pytest.approx(2)
    expectation = names["expectation"]
    assert expectation.low < names["run"]["ett_capacity"] < expectation.high
    assert names["sentence"].startswith("Start with ")
    assert names["again"].failures == 2
    assert names["again"].isolated.ett_capacity.mean > names["again"].synchronous.ett_capacity.mean
    assert [point.value for point in names["points"]] == [2, 8, 32, 128]
    assert "rank-h" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_kept_without_results(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)
