"""Writers and their collector killed at random, again and again: no published event lost, none twice.

    python tests/bench/soak.py [--kills 1000] [--seconds 1800] [--seed 1]

A writer numbers its events and is killed with SIGKILL at any moment; what it had published by then is in its
segments, which are looked at, by a reader of their own, before the collector may delete them. In between, the
collector is killed as well and starts again. At the end each event must be in the store exactly once.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rankscope.ingest.collector import Collector
from rankscope.ingest.layout import HEADER, MARKER_OFFSET, RECORD_SIZE, SLOTS
from rankscope.ingest.store import Store

# Ranks of a world this large keep collectives in their ring, so that it is part of what is killed.
_WRITER = """
import os, sys, rankscope
recorder = rankscope.init(sys.argv[1], run="soak", hooks=False, rank=int(sys.argv[2]), world_size=100_000)
print("up", flush=True)
n = 0
while True:
    recorder.scalar(f"name {n // 1000}", n, step=n % 2_000_000)
    if n % 100 == 0:
        recorder.step_number = n // 100
        token = recorder.collective_begin("all_reduce", "0", n // 100, 4)
        recorder.signal("injected", message=f"event {n}", time_ns=n)
        recorder.collective_end(token)
    n += 1
"""
_COLLECTOR = """
import sys, threading
from pathlib import Path
from rankscope.ingest.collector import Collector
from rankscope.ingest.store import Store
with Store.open(sys.argv[1]) as store, Collector(store, Path(sys.argv[2])) as collector:
    collector.run(threading.Event())
"""
_WRITERS_AT_ONCE = 4
MAX_TORN = 12  # records of one event


@dataclass
class Outcome:
    """What a soak found."""

    writers_killed: int = 0
    collectors_killed: int = 0
    events: int = 0
    lost: int = 0
    doubled: int = 0
    torn: int = 0  # events that were killed half-written, and never were published
    problems: int = 0
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.problems)


def last_published(spool: Path, pid: int) -> int:
    """The last published slot of a stopped writer's stream, -1 without one: the truth for the store."""
    newest = -1
    for path in spool.glob(f"soak/*-{pid}-*.seg"):
        with path.open("rb") as file:
            start = file.read(HEADER.size)
            if len(start) < HEADER.size:
                continue  # stopped while it made its next file: nothing can be in that yet
            head = HEADER.unpack(start)
            header_size, base = head[3], head[6]
            if not head[0].strip(b"\0"):
                continue
            file.seek(header_size)
            data = file.read(SLOTS * RECORD_SIZE)
        for place in range(SLOTS - 1, -1, -1):
            marker = data[place * RECORD_SIZE + MARKER_OFFSET : (place + 1) * RECORD_SIZE]
            if marker == ((base + place + 1) & 0xFFFFFFFF).to_bytes(4, "little"):
                newest = max(newest, base + place)
                break
    return newest


def soak(folder: Path, kills: int, limit_s: float, seed: int) -> Outcome:
    """Kill `kills` processes, a quarter of them collectors, within `limit_s` seconds."""
    moments = random.Random(seed)
    spool, store_path = folder / "s.spool", folder / "s.duckdb"
    outcome, began = Outcome(), time.monotonic()
    rank = 0
    published: dict[int, int] = {}  # by rank: the last slot
    while (outcome.writers_killed + outcome.collectors_killed) < kills and time.monotonic() - began < limit_s:
        writers = []
        for _ in range(min(_WRITERS_AT_ONCE, kills)):
            command = [sys.executable, "-c", _WRITER, str(spool), str(rank)]
            writers.append((rank, subprocess.Popen(command, stdout=subprocess.PIPE)))
            rank += 1
        collector = _collector(store_path, spool)
        for _, writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == b"up\n"
        for number, writer in writers:
            time.sleep(moments.uniform(0.0, 0.15))
            # Stopped first: what is published must be seen before a collector can delete it. The collector
            # does not take a stopped process for a dead one.
            writer.send_signal(signal.SIGSTOP)
            published[number] = last_published(spool, writer.pid)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            outcome.writers_killed += 1
        time.sleep(moments.uniform(0.0, 0.8))
        collector.send_signal(signal.SIGKILL)
        collector.wait()
        outcome.collectors_killed += 1
    said: list[str] = []
    with Store.open(store_path) as store, Collector(store, spool, say=said.append) as last:
        last.catch_up()
        outcome.torn = sum("never finished" in line for line in said)
        outcome.problems = len(said) - outcome.torn
        for line in said:
            print(line, file=sys.stderr)
        _check(store, published, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def _collector(store_path: Path, spool: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", _COLLECTOR, str(store_path), str(spool)])


def _check(store: Store, published: dict[int, int], outcome: Outcome) -> None:
    """Numbers of a rank are dense from 0, so that a gap is a loss and a repetition a double."""
    found = {
        row["rank"]: row
        for row in store.rows(
            "SELECT rank, count(*) AS n, count(DISTINCT value) AS different, max(value) AS high, "
            "count(*) FILTER (name <> 'name ' || (value::BIGINT // 1000)) AS misnamed "
            "FROM scalar WHERE run_id = 'soak' GROUP BY rank"
        )
    }
    signals = {
        row["rank"]: row
        for row in store.rows(
            "SELECT rank, count(*) AS n, count(DISTINCT time_ns) AS different, max(time_ns) AS high "
            "FROM signal WHERE run_id = 'soak' AND kind = 'injected' GROUP BY rank"
        )
    }
    sources = {
        row["rank"]: row
        for row in store.rows("SELECT rank, next_slot, dropped, complete FROM source WHERE run_id = 'soak'")
    }
    last_collective = {
        row["rank"]: row["seq"]
        for row in store.rows(
            "SELECT rank, max(seq) AS seq FROM collective WHERE run_id = 'soak' GROUP BY rank"
        )
    }
    for rank, slot in published.items():
        row, told, source = found.get(rank), signals.get(rank), sources.get(rank)
        if source is None:
            outcome.lost += slot + 1
            continue
        outcome.events += source["next_slot"]
        outcome.lost += max(slot + 1 - source["next_slot"], 0) + (not source["complete"])
        # Half of an event is no event; a collective and what a ring was copying may be cut as well.
        outcome.lost += source["dropped"] > MAX_TORN
        for kind, each in ((row, 1), (told, 100)):
            if kind is None:
                continue
            outcome.lost += int(kind["high"]) // each + 1 - kind["different"]
            outcome.doubled += kind["n"] - kind["different"]
        outcome.lost += row["misnamed"] if row is not None else 0
        if told is not None and told["high"] // 100 > last_collective.get(rank, -1):
            outcome.lost += 1  # the last one lay in the ring
    outcome.doubled += store.rows(
        "SELECT count(*) - count(DISTINCT (rank, pg, seq)) AS n FROM collective WHERE run_id = 'soak'"
    )[0]["n"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        result = soak(Path(place), args.kills, args.seconds, args.seed)
    print(json.dumps(vars(result), indent=1))
    sys.exit(not result.is_good)
