"""The collector, and who writes for it, killed with SIGKILL at any moment: nothing lost, nothing twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from handmade import collect

from rankscope.ingest.store import Store

KILLS = 20
RECORDS = 150_000  # a writer: over two borders between segments
# Writes numbered records and, before each wait, says how many are published.
_WRITER = """
import sys, time
from pathlib import Path
from rankscope.ingest.identity import Identity
from rankscope.ingest.layout import Kind
from rankscope.ingest.segment import SegmentWriter
import struct
spool, rank, records = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
identity = Identity.of_this_process("soak", launch_id="L", rank=rank, world_size=2)
writer = SegmentWriter(spool / "soak", identity.stem, identity.as_json())
names = [writer.intern(f"name {n}") for n in range(7)]
for number in range(records):
    bits = struct.unpack("<q", struct.pack("<d", float(number)))[0]
    writer.record(Kind.SCALAR, time.monotonic_ns(), a=bits, name=names[number % 7], step=number)
    if number % 5_000 == 4_999:
        name = writer.intern(f"late {number}")
        writer.event({"type": "signal", "kind": "exit", "message": f"event {number}", "time_ns": number})
        writer.record(Kind.SPAN_BEGIN, time.monotonic_ns(), name=name, pg=name, step=number)
        print(number + 1, flush=True)
        time.sleep(float(sys.argv[4]))
print("done", flush=True)
time.sleep(600)
"""
_COLLECTOR = """
import sys, threading
from pathlib import Path
from rankscope.ingest.collector import Collector
from rankscope.ingest.store import Store
with Store.open(sys.argv[1]) as store, Collector(store, Path(sys.argv[2])) as collector:
    print("up", flush=True)
    collector.run(threading.Event())
"""


def _writer(spool: Path, rank: int, pause_s: float) -> "subprocess.Popen[str]":
    arguments = [str(spool), str(rank), str(RECORDS), str(pause_s)]
    return subprocess.Popen([sys.executable, "-c", _WRITER, *arguments], stdout=subprocess.PIPE, text=True)


def _last_word(writer: "subprocess.Popen[str]") -> list[str]:
    """What a writer said until it was killed."""
    assert writer.stdout is not None
    return writer.stdout.read().split()


@pytest.mark.parametrize("seed", [1])
def test_twenty_kills_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    store_path, spool = tmp_path / "s.duckdb", tmp_path / "s.spool"
    writers = [_writer(spool, rank, pause_s=0.7) for rank in range(2)]
    survived = 0
    for _ in range(KILLS):
        command = [sys.executable, "-c", _COLLECTOR, str(store_path), str(spool)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as collector:
            assert collector.stdout is not None
            assert collector.stdout.readline() == b"up\n"
            time.sleep(moments.uniform(0.0, 0.8))  # wherever it is by then
            survived += collector.poll() is not None
            collector.send_signal(signal.SIGKILL)
    assert survived == 0, "the collector ended by itself"
    # One writer is killed in the middle of its work as well; the other one comes to its end.
    writers[0].kill()
    said = _last_word(writers[0])
    published = int(said[-1]) if said and said[-1] != "done" else RECORDS
    for line in writers[1].stdout or ():
        if line == "done\n":
            break
    writers[1].kill()
    for writer in writers:
        writer.wait()

    with Store.open(store_path) as store:
        assert collect(store, spool) == []
        for rank, least in ((0, published), (1, RECORDS)):
            found = store.rows(
                "SELECT count(*) AS n, count(DISTINCT value) AS distinct_values, min(value) AS low, "
                "max(value) AS high, count(*) FILTER (value <> step) AS wrong, "
                "count(*) FILTER (name <> 'name ' || (step % 7)) AS misnamed "
                "FROM scalar WHERE rank = $rank",
                {"rank": rank},
            )[0]
            assert found["n"] == found["distinct_values"] == found["high"] + 1 >= least
            assert (found["low"], found["wrong"], found["misnamed"]) == (0, 0, 0)
            told = {"rank": rank}
            signals = store.rows("SELECT time_ns FROM signal WHERE rank = $rank ORDER BY time_ns", told)
            numbers = [row["time_ns"] for row in signals]
            assert numbers == list(range(4_999, 5_000 * len(numbers), 5_000))
            assert len(numbers) * 5_000 >= least
            opened = store.rows("SELECT step, name FROM open_span WHERE rank = $rank ORDER BY step", told)
            assert [row["step"] for row in opened] == numbers[: len(opened)]
            assert len(numbers) - len(opened) <= 1  # killed between the two
            assert all(row["name"] == f"late {row['step']}" for row in opened)
        state = store.rows("SELECT complete, dropped, errors FROM source")
        assert state == [{"complete": True, "dropped": 0, "errors": 0}] * 2
    assert list(spool.rglob("*.seg")) == []


def test_second_collector_says_so_and_leaves(tmp_path: Path) -> None:
    store_path, spool = tmp_path / "s.duckdb", tmp_path / "s.spool"
    command = [sys.executable, "-m", "rankscope.app.cli", "collect", "--spool", str(spool), "--store"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    first = subprocess.Popen([*command, str(store_path)], stderr=subprocess.PIPE, text=True, env=environment)
    assert first.stderr is not None
    try:
        assert "collecting from" in first.stderr.readline()
        for other_store, why in (
            (store_path, "open"),
            (tmp_path / "other.duckdb", "another collector reads"),
        ):
            second = subprocess.run(
                [*command, str(other_store)], capture_output=True, text=True, timeout=60, env=environment,
                check=False,
            )  # fmt: skip
            assert second.returncode == 1
            assert len(second.stderr.splitlines()) == 1
            assert why in second.stderr
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 0
