"""Seeing processes end without reaping them, and reading what they left."""

import json
import os
import queue
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rankscope.ingest.launcher.command import torchrun_arguments
from rankscope.ingest.launcher.environment import prepare
from rankscope.ingest.launcher.exits import Exit, ExitWatch
from rankscope.ingest.launcher.failures import kind_of

WAIT_S = 30


def _started(program: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", "-c", program], stdin=subprocess.PIPE)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("input()", 0),
        ("input(); raise SystemExit(7)", 7),
        ("input(); import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
)
def test_an_exit_is_told_once_and_left_to_its_parent(program: str, code: int) -> None:
    told: queue.Queue[tuple[str, Exit]] = queue.Queue()
    watch: ExitWatch[str] = ExitWatch(lambda worker, exit_: told.put((worker, exit_)))
    child = _started(program)
    before_ns = time.time_ns()
    watch.add(child.pid, "worker 0", lambda: child.returncode)
    child.communicate(b"\n")  # reaps it, perhaps before the watch has read its status
    worker, exit_ = told.get(timeout=WAIT_S)
    assert (worker, exit_.pid, exit_.code) == ("worker 0", child.pid, code)
    assert before_ns <= exit_.time_ns <= time.time_ns()
    assert child.returncode == code
    watch.stop()
    assert told.empty()


def test_one_that_is_long_gone_is_told_too() -> None:
    told: queue.Queue[Exit] = queue.Queue()
    watch: ExitWatch[str] = ExitWatch(lambda worker, exit_: told.put(exit_))
    child = _started("")
    child.communicate()
    watch.add(child.pid, "", lambda: child.returncode)
    assert told.get(timeout=WAIT_S).code == 0
    watch.stop()


def test_stopping_reports_what_has_ended() -> None:
    told: list[Exit] = []
    watch: ExitWatch[str] = ExitWatch(lambda worker, exit_: told.append(exit_))
    children = [_started("input()") for _ in range(3)]
    for child in children:
        watch.add(child.pid, "", lambda child=child: child.returncode)  # type: ignore[misc]
        child.communicate(b"\n")
    watch.stop()
    assert sorted(exit_.pid for exit_ in told) == sorted(child.pid for child in children)


def test_exits_read_like_sentences() -> None:
    assert str(Exit(1, 0, -9)) == "was killed by SIGKILL"
    assert str(Exit(1, 0, 3)) == "exited with code 3"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "out_of_memory"),
        ("RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:2215", "network"),
        ("RuntimeError: [buf.cc] Timed out waiting 1800000ms for recv operation to complete", "hang"),
        ("OSError: [Errno 28] No space left on device", "storage"),
        ("ValueError: the data of rank 1 is bad", "exception"),
    ],
)
def test_texts_tell_the_kind_of_failure(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_torchrun_of_this_interpreter_is_known(tmp_path: Path) -> None:
    other = tmp_path / "torchrun"
    other.write_text("#!/opt/other/bin/python3\n")
    other.chmod(0o755)
    assert torchrun_arguments([str(other), "train.py"]) is None
    ours = tmp_path / "ours" / "torchrun"
    ours.parent.mkdir()
    ours.write_text(f"#!{sys.executable}\n")
    ours.chmod(0o755)
    assert torchrun_arguments([str(ours), "--nproc-per-node", "2", "train.py"]) == [
        "--nproc-per-node", "2", "train.py"
    ]  # fmt: skip
    module = [sys.executable, "-m", "torch.distributed.run", "train.py"]
    assert torchrun_arguments(module) == ["train.py"]
    assert torchrun_arguments([sys.executable, "train.py"]) is None
    assert torchrun_arguments(["no-such-program-anywhere"]) is None


def test_the_environment_makes_children_record(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": "/mine", "RANKSCOPE_PID": "1", "SLURM_JOB_ID": "77"}
    prepare(environment, "a-run", tmp_path)
    prepare(environment, "a-run", tmp_path)  # a run within a run
    boot, *rest = environment["PYTHONPATH"].split(os.pathsep)
    assert (Path(boot) / "sitecustomize.py").exists()
    assert rest == ["/mine"]
    assert environment["RANKSCOPE_LAUNCH_ID"] == "77.0"
    assert environment["RANKSCOPE_RUN"] == "a-run"
    assert "RANKSCOPE_PID" not in environment


def test_a_sitecustomize_that_was_there_still_runs(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import os\nos.environ['THEIRS'] = 'ran'\nmark = 5\n")
    environment = {**os.environ, "PYTHONPATH": str(theirs)}
    prepare(environment, "a-run", tmp_path / "spool")
    environment |= {"RANK": "3", "WORLD_SIZE": "8"}
    program = """
import json, os, sitecustomize
from rankscope.ingest.recorder import current
found = current()
print(json.dumps([os.environ['THEIRS'], sitecustomize.mark, found.identity.rank, found.identity.run_id]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["ran", 5, 3, "a-run"]
