"""How fast the collector is: records of many ranks' segments to committed rows, and the memory that takes.

    python tests/bench/bench_collector.py [--records 4000000] [--streams 16]

The records are those of a training loop: steps with their parts, collectives in full, a loss a step.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rankscope.ingest.collector import Collector
from rankscope.ingest.layout import HEADER, MAGIC, NO_STEP, PAGE, RECORD_SIZE, SLOTS, Flag, Kind
from rankscope.ingest.segments import RECORD_DTYPE
from rankscope.ingest.store import Store

STRINGS = [
    "",
    "step",
    "forward",
    "backward",
    "optimizer",
    "all_reduce",
    "0",
    "float32|[1048576]|train.py:88",
    "loss",
]
# One step of the loop: kind, name, pg (category or group), attr.
_STEP: list[tuple[Kind, str, str, str]] = [
    (Kind.SPAN_BEGIN, "", "step", ""),
    (Kind.SPAN_BEGIN, "", "forward", ""),
    (Kind.SPAN_END, "", "forward", ""),
    (Kind.SPAN_BEGIN, "", "backward", ""),
    *[(Kind.COLL_BEGIN, "all_reduce", "0", STRINGS[7]), (Kind.COLL_END, "all_reduce", "0", STRINGS[7])] * 6,
    (Kind.SPAN_END, "", "backward", ""),
    (Kind.SPAN_BEGIN, "", "optimizer", ""),
    (Kind.SPAN_END, "", "optimizer", ""),
    (Kind.SCALAR, "loss", "", ""),
    (Kind.SPAN_END, "", "step", ""),
]
_BEGIN_OF = {2: 1, 16: 3, 18: 17, 20: 0} | {end: end - 1 for end in range(5, 16, 2)}


def stream_records(count: int) -> np.ndarray[Any, np.dtype[np.void]]:
    """The records of one rank, whole steps, about `count`."""
    length = len(_STEP)
    steps = max(count // length, 1)
    one = np.zeros(length, RECORD_DTYPE)
    for place, (kind, name, pg, attr) in enumerate(_STEP):
        one[place]["kind"] = kind
        one[place]["name"], one[place]["pg"], one[place]["attr"] = map(STRINGS.index, (name, pg, attr))
    records = np.tile(one, steps)
    slot = np.arange(len(records))
    records["t"] = 1_000_000_000 + slot * 1000
    records["step"] = slot // length
    records["flags"] = np.where(slot % length == length - 1, Flag.COMMITTED, 0)
    for end, begin in _BEGIN_OF.items():
        is_collective = records["kind"][end] == Kind.COLL_END
        records["d" if is_collective else "b"][end::length] = slot[begin::length]
        records["c" if is_collective else "a"][end::length] = records["t"][begin::length]
        if is_collective:
            for place in (begin, end):
                records["a"][place::length] = np.arange(steps) * 6 + (end - 5) // 2
                records["b"][place::length] = 4 << 20
            records["c"][begin::length] = NO_STEP
    records["marker"] = (slot + 1) & 0xFFFFFFFF
    return records


def write_stream(spool: Path, rank: int, ranks: int, records: np.ndarray[Any, np.dtype[np.void]]) -> None:
    """Write a stream's segments as its rank would leave them; its process is long gone."""
    pid, start = 4_194_000 - rank, 1_700_000_000_000_000_000
    host = os.uname().nodename
    identity = {
        "run_id": "bench", "launch_id": "bench", "restart_count": 0, "rank": rank, "world_size": ranks,
        "local_rank": rank, "host": host, "pid": pid, "start_ns": start, "incarnation": 0, "role": "rank",
    }  # fmt: skip
    described = json.dumps({"identity": identity, "strings": STRINGS}).encode()
    size = -(-(HEADER.size + len(described)) // PAGE) * PAGE
    folder = spool / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(-(-len(records) // SLOTS)):
        part = records[index * SLOTS : (index + 1) * SLOTS]
        with (folder / f"{host}-{pid}-{start}.{index}.seg").open("wb") as file:
            head = HEADER.pack(
                MAGIC, RECORD_SIZE, 1, size, index, SLOTS, index * SLOTS, start, 0, 0, pid, len(described)
            )
            file.write((head + described).ljust(size, b"\0"))
            file.write(part.tobytes())
            file.truncate(size + SLOTS * RECORD_SIZE)


def measure(records: int = 4_000_000, streams: int = 16) -> dict[str, float]:
    """Collect `records` records of `streams` ranks, in a process of its own for the sake of its memory.

    Returns:
        records, seconds, cpu_seconds, events_per_s, rows, rows_per_s, peak_rss_mb.
    """
    command = [sys.executable, __file__, "--records", str(records), "--streams", str(streams), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure_here(records: int, streams: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        spool = Path(folder, "spool")
        one = stream_records(records // streams)
        for rank in range(streams):
            write_stream(spool, rank, streams, one)
        written = len(one) * streams
        del one
        with Store.open(Path(folder, "store.duckdb")) as store:
            store.limit(memory_bytes=200_000_000, threads=1)
            with Collector(store, spool) as collector:
                began, began_cpu = time.perf_counter(), time.process_time()
                collected = collector.catch_up()
                took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
            assert collected == written, f"{collected} of {written} records came through"
            rows = store.rows(
                "SELECT (SELECT count(*) FROM span) + (SELECT count(*) FROM collective) "
                "+ (SELECT count(*) FROM scalar) AS rows"
            )[0]["rows"]
        return {
            "records": written,
            "seconds": took,
            "cpu_seconds": took_cpu,
            "events_per_s": written / took,
            "rows": rows,
            "rows_per_s": rows / took,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = _measure_here(args.records, args.streams)
    print(json.dumps(result) if args.json else "\n".join(f"{k:>14}: {v:,.1f}" for k, v in result.items()))
