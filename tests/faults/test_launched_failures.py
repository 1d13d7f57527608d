"""Runs that fail for real under `rankscope run`: who failed, how, and what the others were doing."""

import sys
from pathlib import Path

import pytest
from launched import OWN_STORE, run_recorded, torchrun

pytest.importorskip("torch")
pytestmark = pytest.mark.training

# In the first attempt rank 0 never joins the fourth all_reduce, so rank 1 is inside it when it is killed.
_KILLED = """
import os, signal, threading
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
for number in range(5):
    if first and number == 3:
        if dist.get_rank() == 0:
            signal.pause()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
"""

_RAISES = """
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(2))
    if dist.get_rank() == 1:
        raise ValueError("the data of rank 1 is bad")
    dist.all_reduce(torch.ones(2))

main()
"""

_BROKEN_HOOK = """
import torch
import torch.distributed as dist
from rankscope.ingest.hooks import distributed

def broken(*args):
    raise RuntimeError("a mistake of ours")

dist.init_process_group("gloo")
distributed.measure = broken
for _ in range(3):
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2, 2]
layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters())
layer(torch.ones(2)).sum().backward()
optimizer.step()
dist.destroy_process_group()
"""


def test_a_killed_rank_leaves_its_last_collective_open(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_KILLED)
    run = run_recorded(tmp_path, *torchrun("train.py", restarts=1), environment=OWN_STORE)
    assert run.status == 0, run.output

    still_open = run.rows("SELECT attempt, rank, op, seq FROM collective WHERE end_ns IS NULL")
    assert still_open == [{"attempt": 0, "rank": 1, "op": "all_reduce", "seq": 3}]
    assert run.value("SELECT count(*) FROM collective WHERE attempt = 1 AND state = 'completed'") == 10

    exits = run.rows(
        "SELECT attempt, rank, exit_code FROM process_exit WHERE observer = 'launcher' ORDER BY ALL"
    )
    assert exits == [
        {"attempt": 0, "rank": 0, "exit_code": -15},
        {"attempt": 0, "rank": 1, "exit_code": -9},
        {"attempt": 1, "rank": 0, "exit_code": 0},
        {"attempt": 1, "rank": 1, "exit_code": 0},
    ]
    signals = run.rows("""
        SELECT rank, failure_kind, attrs ->> 'ended_by' AS ended_by FROM signal
        WHERE kind = 'exit' ORDER BY time_ns""")
    assert signals == [
        {"rank": 1, "failure_kind": "crash", "ended_by": None},
        {"rank": 0, "failure_kind": None, "ended_by": "launcher"},
    ]
    (restart,) = run.rows("SELECT attempt, status FROM span WHERE category = 'restart'")
    assert restart == {"attempt": 1, "status": "ok"}
    rendezvous = run.rows("SELECT attempt FROM span WHERE name = 'rendezvous' ORDER BY attempt")
    assert [row["attempt"] for row in rendezvous] == [0, 1]


def test_an_exception_is_told_by_the_rank_its_file_and_its_launcher(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_RAISES)
    run = run_recorded(tmp_path, *torchrun("train.py"))
    assert run.status == 1
    assert "the data of rank 1 is bad" in run.output

    told = run.rows(
        "SELECT DISTINCT kind, message FROM signal WHERE rank = 1 AND kind IN ('exception', 'error_file')"
    )
    assert {row["kind"] for row in told} == {"exception", "error_file"}
    assert all("the data of rank 1 is bad" in row["message"] for row in told)
    (first,) = run.rows(
        "SELECT rank, failure_kind FROM signal WHERE kind = 'exception' ORDER BY time_ns LIMIT 1"
    )
    assert first == {"rank": 1, "failure_kind": "exception"}
    # The survivor's collective fails under it, unless the launcher ends it before that.
    others = run.rows("SELECT DISTINCT rank FROM signal WHERE kind = 'collective_error'")
    assert others in ([], [{"rank": 0}])
    (launcher,) = run.rows("SELECT exit_code FROM process_exit WHERE rank = -1")
    assert launcher["exit_code"] == 1


def test_a_hook_that_raises_is_off_and_the_training_goes_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_BROKEN_HOOK)
    run = run_recorded(tmp_path, *torchrun("train.py"))
    assert run.status == 0, run.output
    errors = run.rows("SELECT rank, errors, last_error FROM source WHERE rank >= 0 ORDER BY rank")
    assert [(row["rank"], row["errors"]) for row in errors] == [(0, 1), (1, 1)]
    assert all(
        "distributed" in row["last_error"] and "a mistake of ours" in row["last_error"] for row in errors
    )
    assert run.value("SELECT count(*) FROM collective") == 0
    assert run.value("SELECT count(*) FROM span WHERE category = 'step' AND committed") == 2


def test_any_command_passes_its_status_and_its_ranks_are_found(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("""
import sys, torch
layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters())
for _ in range(3):
    layer(torch.ones(2)).sum().backward()
    optimizer.step()
sys.exit(7)
""")
    run = run_recorded(tmp_path, "sh", "-c", f"{sys.executable} train.py")
    assert run.status == 7, run.output
    assert run.value("SELECT count(*) FROM span WHERE category = 'step' AND rank = 0 AND committed") == 3
    exits = run.rows("SELECT rank, exit_code FROM process_exit WHERE observer = 'launcher' ORDER BY rank")
    # How the shell ended is known; of its child, only when.
    assert exits == [{"rank": -1, "exit_code": 7}, {"rank": 0, "exit_code": None}]


def test_a_signal_is_passed_on(tmp_path: Path) -> None:
    script = "import os, signal; os.kill(os.getppid(), signal.SIGTERM); signal.pause()"
    run = run_recorded(tmp_path, sys.executable, "-c", script)
    assert run.status == 128 + 15
    assert run.rows("SELECT exit_code FROM process_exit WHERE observer = 'launcher'") == [{"exit_code": -15}]


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    run = run_recorded(tmp_path, "no-such-command")
    assert run.status == 127
    assert "no-such-command" in run.output
    assert "Traceback" not in run.output
