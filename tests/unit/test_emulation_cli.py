"""The command `rankscope emulate`, as people and scripts call it."""

import json
from pathlib import Path

import pytest

from rankscope.app.cli import main
from rankscope.app.opening import open_store
from rankscope.emulation.calibration import published_costs
from rankscope.emulation.durations import seconds
from rankscope.emulation.model import AllGather, Costs, Ring, Scenario, simulate
from rankscope.emulation.records import sample
from rankscope.ingest.errors import UserError


def told(capsys: pytest.CaptureFixture[str], *args: str) -> dict:
    assert main(["emulate", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_init_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(
        capsys, "init", "--ranks", "2048", "--ring", "multi-root", "--roots", "16", "--allgather", "bruck"
    )
    for key in (
        "ranks",
        "ring",
        "allgather",
        "total_s",
        "phases",
        "bottleneck",
        "messages",
        "store_ops",
        "calibration",
    ):
        assert key in out
    assert set(out["bottleneck"]) == {"phase", "endpoint", "growth", "share"}
    assert out["ranks"] == 2048
    assert out["ring"] == "multi-root"
    assert out["counts"]["store_gets"] == 2048 * 16
    assert sum(phase["s"] for phase in out["phases"]) == pytest.approx(out["total_s"])


def test_a_slow_rank_is_the_bottleneck_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "init", "--ranks", "512", "--slow-rank", "17:30")
    assert out["bottleneck"]["phase"] == "begin"
    assert "rank 17" in out["bottleneck"]["endpoint"]
    assert out["total_s"] > 30


def test_jitter_slows_every_round(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = told(capsys, "init", "--ranks", "256")
    noisy = told(capsys, "init", "--ranks", "256", "--jitter", "20us")
    assert noisy["total_s"] > quiet["total_s"]
    assert noisy["messages"] == quiet["messages"]


def test_a_full_backlog_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "init", "--ranks", "4096", "--ring", "root", "--backlog", "128")
    assert any("backlog of 128 was full" in note for note in out["notes"])


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["--ranks", "1"], 2, "--ranks 1"),
        (["--ranks", "64", "--roots", "2"], 2, "only with --ring multi-root"),
        (["--ranks", "64", "--slow-rank", "64:1"], 2, "--slow-rank 64:1"),
        (["--ranks", "64", "--slow-rank", "x"], 2, "give RANK:SECONDS"),
        (["--ranks", "64", "--jitter", "fast"], 2, "--jitter fast"),
        (["--ranks", "64", "--hosts", "65"], 2, "--hosts 65"),
        (["--ranks", "64", "--costs", "nowhere.json"], 1, "there is no cost file nowhere.json"),
        (["--ranks", "64", "--real", "--allgather", "bruck"], 2, "with --real"),
        (["--ranks", "64", "--form-only", "--ring", "root"], 2, "--form-only"),
    ],
)
def test_mistakes_are_one_sentence(
    args: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emulate", "init", *args]) == status
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_compare_ranks_methods_and_says_what_it_means(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, "compare", "--ranks", "1024", "--ranks", "4096")
    for ranks in (1024, 4096):
        row = [cell for cell in out["cells"] if cell["ranks"] == ranks]
        assert sorted(cell["place"] for cell in row) == list(range(1, len(row) + 1))
        assert min(row, key=lambda c: c["total_s"])["place"] == 1
    assert {f["name"] for f in out["findings"]} >= {
        "root",
        "store_ring",
        "both_ways",
        "several_roots",
        "loops",
        "next",
    }


def test_published_fits_print_held_out_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "calibrate", "--published"]) == 0
    out = capsys.readouterr().out
    assert "held out" in out
    assert "-14.7%" in out
    assert "arXiv" in out


def test_an_emulated_run_is_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "runs.duckdb"
    out = told(
        capsys, "init", "--ranks", "2000", "--store", str(store), "--run", "big", "--slow-rank", "1234:9"
    )
    with open_store(store) as opened:
        (run,) = opened.rows("SELECT * FROM v_run")
        assert (run["run_id"], run["origin"], run["ranks"]) == ("big", "emulated", 2000)
        assert run["wall_s"] == pytest.approx(out["total_s"], rel=0.01)
        phases = {row["phase"]: row for row in opened.rows("SELECT * FROM v_init_phase")}
        assert {"store", "communicator"} <= phases.keys()
        ranks = {row["rank"] for row in opened.rows("SELECT DISTINCT rank FROM v_init_rank")}
        assert 1234 in ranks
        assert len(ranks) < 1100  # a sample


def test_the_sample_has_the_slowest_of_every_phase() -> None:
    outcome = simulate(Scenario(5_000, Ring.STAGGERED, AllGather.RING, late={77: 3.0}), published_costs())
    chosen = set(sample(outcome))
    assert 77 in chosen
    for phase in outcome.phases:
        assert int(phase.ends_s.argmax()) in chosen


def test_costs_come_back_from_their_file(tmp_path: Path) -> None:
    costs = published_costs()
    costs.save(tmp_path / "costs.json")
    assert Costs.load(tmp_path / "costs.json") == costs
    (tmp_path / "bad.json").write_text('{"name": "x"}')
    with pytest.raises(UserError, match="is not a cost file"):
        Costs.load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("text", "expected"), [("5us", 5e-6), ("20ms", 0.02), ("1.5", 1.5), ("2m", 120), ("1h", 3600)]
)
def test_durations(text: str, expected: float) -> None:
    assert seconds(text, "--x") == pytest.approx(expected)
