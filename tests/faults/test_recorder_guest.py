"""The recorder in processes that fork, spawn, are interrupted, leave at once, or have no place to write."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plain_reader import PlainStream, read_stream, the_stream

from rankscope.ingest import places
from rankscope.ingest.layout import SLOTS, Kind
from rankscope.ingest.pens import fast_pen

_IMPORT_LIMIT_MODULES = ("torch", "numpy", "duckdb", "pyarrow", "streamlit", "pandas", "inspect")
# A finder that hides the pen in C, so that each test runs with either.
_HIDE = """
import sys
class _Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "rankscope.ingest._fast":
            raise ImportError(name)
sys.meta_path.insert(0, _Hidden)
"""
_BEGIN = """
import os, signal, sys, threading, time
import rankscope
recorder = rankscope.init(SPOOL, run="run", hooks=False)
"""


@pytest.fixture(
    params=[
        "python",
        pytest.param("c", marks=pytest.mark.skipif(fast_pen() is None, reason="the pen in C is not built")),
    ]
)
def pen(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(code: str, spool: Path, pen: str = "c", **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `code` after rankscope.init(), in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    hide = _HIDE if pen == "python" else ""
    return subprocess.run(
        [sys.executable, "-c", f"{hide}\nSPOOL = {str(spool)!r}\n{_BEGIN}\n{code}"],
        capture_output=True, text=True, timeout=120, env=inherited | environment, check=False,
    )  # fmt: skip


def scalars(stream: PlainStream) -> list[float]:
    return [record.value for record in stream.of(Kind.SCALAR)]


def streams(spool: Path) -> list[PlainStream]:
    return [read_stream(path) for path in sorted(spool.glob("*/*.0.seg"))]


def test_import_is_light() -> None:
    code = f"import sys, rankscope; print([name for name in {_IMPORT_LIMIT_MODULES} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(Path(places.__file__).parents[2])})  # fmt: skip
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os.abort()"])
def test_what_was_recorded_survives_any_end(tmp_path: Path, pen: str, end: str) -> None:
    run(f"for n in range(1000): recorder.scalar('n', n)\nrecorder.begin('eval')\n{end}", tmp_path, pen)
    stream = the_stream(tmp_path)
    assert scalars(stream) == list(range(1000))
    assert [record.pg for record in stream.of(Kind.SPAN_BEGIN)] == ["eval"]
    assert (stream.closed, stream.holes) == (False, [])


def test_orderly_end_is_told(tmp_path: Path, pen: str) -> None:
    for code in ("", "sys.exit(3)", "raise ValueError"):
        run(code, tmp_path / (code or "end"), pen)
        stream = the_stream(tmp_path / (code or "end"))
        assert stream.closed
        assert stream.of(Kind.CLOCK) or stream.of(Kind.SPAN_END)


def test_forked_child_writes_nothing(tmp_path: Path, pen: str) -> None:
    code = """
span = recorder.span("eval")
with span:
    child = os.fork()
    if child == 0:
        recorder.scalar("n", -1)
        recorder.signal("exit")
        recorder.collective_begin("op", "0", 1)
        again = rankscope.init(SPOOL, run="run", hooks=False)
        assert not again.enabled
        again.scalar("n", -2)
        sys.exit(0) if CHILD == "exit" else os._exit(0)
    os.waitpid(child, 0)
if child:
    recorder.scalar("n", 1)
"""
    for end in ("exit", "_exit"):
        done = run(f"CHILD = {end!r}\n{code}", tmp_path / end, pen)
        assert (done.returncode, done.stderr) == (0, "")
        stream = the_stream(tmp_path / end)
        assert scalars(stream) == [1.0]
        assert (stream.events, stream.dropped, stream.holes) == ([], 0, [])
        assert [record.pg for record in stream.of(Kind.SPAN_END)] == ["init", "eval"]


def test_children_of_a_rank_are_silent_and_those_of_a_launcher_are_not(tmp_path: Path, pen: str) -> None:
    code = """
import subprocess
child = "import rankscope; r = rankscope.init(%r, run='run', hooks=False); r.scalar('n', 5)" % SPOOL
subprocess.run([sys.executable, "-c", child], check=True)
recorder.scalar("n", 1)
"""
    assert run(code, tmp_path / "rank", pen, RANK="2", WORLD_SIZE="4").returncode == 0
    assert [scalars(stream) for stream in streams(tmp_path / "rank")] == [[1.0]]
    as_launcher = _BEGIN.replace("hooks=False", "hooks=False, role='launcher', rank=-1")
    done = subprocess.run(
        [sys.executable, "-c", f"SPOOL = {str(tmp_path / 'launcher')!r}\n{as_launcher}\n{code}"],
        env={name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")},
        check=False,
    )
    assert done.returncode == 0
    assert sorted(scalars(stream) for stream in streams(tmp_path / "launcher")) == [[1.0], [5.0]]


def test_spawned_by_multiprocessing(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(f"""
import multiprocessing, rankscope
def work(n):
    rankscope.init({str(tmp_path / "spool")!r}, run="run", hooks=False).scalar("n", n)
if __name__ == "__main__":
    recorder = rankscope.init({str(tmp_path / "spool")!r}, run="run", hooks=False)
    for method in ("spawn", "fork", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=work, args=(9,))
        process.start()
        process.join()
        assert process.exitcode == 0
    recorder.scalar("n", 1)
""")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    done = subprocess.run([sys.executable, str(script)], env=environment, timeout=120, check=False)
    assert done.returncode == 0
    assert [scalars(stream) for stream in streams(tmp_path / "spool")] == [[1.0]]


def test_signal_handlers_that_record(tmp_path: Path, pen: str) -> None:
    code = """
import itertools
numbers = itertools.count(1)  # handlers interrupt each other too
def handler(*_):
    n = next(numbers)
    recorder.scalar(f"handler {n}", n)
    recorder.signal("exit", message=str(n))
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for n in range(50_000):
    recorder.scalar(f"name {n % 3000}", n)
signal.setitimer(signal.ITIMER_REAL, 0)
print(n + 1, next(numbers) - 1)
"""
    done = run(code, tmp_path, pen)
    assert done.returncode == 0, done.stderr
    written, interrupted = map(int, done.stdout.split())
    stream = the_stream(tmp_path)
    assert (stream.holes, stream.dropped) == ([], 0)
    found = stream.of(Kind.SCALAR)
    assert interrupted > 0
    assert sorted(r.value for r in found if r.name == f"handler {int(r.value)}") == list(
        range(1, interrupted + 1)
    )
    assert [r.value for r in found if r.name == f"name {int(r.value) % 3000}"] == list(range(written))
    assert sorted(int(event["message"]) for event in stream.events) == list(range(1, interrupted + 1))


def test_switched_off(tmp_path: Path, pen: str) -> None:
    code = """
assert not recorder.enabled
for item in recorder.data([1]):
    with recorder.step() as step, recorder.span("eval"):
        step.discard()
        recorder.scalar("loss", 1.0)
        recorder.collective_end(recorder.collective_begin("op", "0", 1))
recorder.signal("exit"); recorder.process_group("0", [0]); recorder.close()
"""
    done = run(code, tmp_path, pen, RANKSCOPE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_rank_without_a_place_to_write_says_so_once_and_trains(tmp_path: Path, pen: str) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    for local_rank, lines in (("0", 1), ("3", 0)):
        done = run(
            "with recorder.step(): print(recorder.enabled)",
            in_the_way / "spool", pen, RANK="3", WORLD_SIZE="4", LOCAL_RANK=local_rank,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "False\n")
        said = done.stderr.splitlines()
        assert len(said) == lines
        assert all(line.startswith("rankscope: not recording, cannot write to") for line in said)


_FILL = f"for n in range({SLOTS} + 5000): recorder.scalar('n', n)\nprint('trained', recorder.dropped)"


def test_limit_on_file_sizes(tmp_path: Path, pen: str) -> None:
    # As a trainer's own limit: exceeding it raises SIGXFSZ, which Python ignores.
    done = run(
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n" + _FILL, tmp_path, pen
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("trained 5")
    stream = the_stream(tmp_path)
    assert stream.dropped >= 5000 and len(stream.of(Kind.SCALAR)) > SLOTS - 100


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small file system")
def test_disk_that_is_really_full(tmp_path: Path, pen: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        done = run(_FILL, disk, pen)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("trained 5")
        stream = the_stream(disk)
        assert stream.dropped >= 5000 and len(stream.of(Kind.SCALAR)) > SLOTS - 100
        assert len(list(disk.glob("*/*"))) == 1  # nothing half-made is left
        # And a second rank that finds it full from the start.
        other = run("print(recorder.enabled)", disk, pen)
        assert (other.returncode, other.stdout) == (0, "False\n")
        assert "No space left" in other.stderr
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("kind", "is_remote"),
    [("ext4", False), ("tmpfs", False), ("nfs4", True), ("fuse.sshfs", True), ("fuse.fuse-overlayfs", False),
     ("lustre", True)],
)  # fmt: skip
def test_network_file_systems_are_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_remote: bool
) -> None:
    monkeypatch.setattr(places, "file_system_of", lambda folder: kind)
    folder, why = places.local_spool(tmp_path / "spool")
    assert (folder != tmp_path / "spool", why) == (is_remote, kind if is_remote else "")


def test_file_system_of_places_that_do_not_exist_yet(tmp_path: Path) -> None:
    assert places.file_system_of(Path("/proc/self")) == "proc"
    assert places.file_system_of(tmp_path / "a" / "b") == places.file_system_of(tmp_path) != ""


@pytest.mark.parametrize(
    "identity",
    [
        {"run": "../../etc/passwd"},
        {"run": "a/b\n\0c" + "x" * 500},
        {"run": "läuft ☃"},
        {"host": "../up"},
        {"rank": 2**40, "world_size": 2**41},
        {"mesh": {"dp": 1}, "replica_group": 3},
    ],
)
def test_unusual_ids_stay_in_the_spool(tmp_path: Path, identity: dict[str, Any]) -> None:
    code = f"""
recorder.close()
import rankscope.ingest.recorder as module
os.environ.pop("RANKSCOPE_PID")
recorder = module.init(SPOOL + "/odd", hooks=False, **{identity!r})
recorder.scalar("n", 1)
"""
    done = run(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (path,) = (tmp_path / "odd").rglob("*.seg")
    assert path.parent.parent == tmp_path / "odd"
    assert scalars(read_stream(path)) == [1.0]


def test_environment_that_is_no_number(tmp_path: Path) -> None:
    done = run("recorder.scalar('n', 1)", tmp_path, RANK="first", WORLD_SIZE="", LOCAL_RANK="-1",
               TORCHELASTIC_RESTART_COUNT="x", REPLICA_GROUP_ID="a")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert the_stream(tmp_path).identity["rank"] == 0


def test_pulse_is_a_sign_of_life(tmp_path: Path) -> None:
    done = run("recorder.step_number = 4; recorder._pulse.wake(); time.sleep(2.5); os._exit(0)", tmp_path)
    assert done.returncode == 0
    clocks = the_stream(tmp_path).of(Kind.CLOCK)
    assert len(clocks) >= 2 and clocks[-1].step == 4
    assert all(abs((c.a - clocks[0].a) - (c.t - clocks[0].t)) < 1e9 for c in clocks)
