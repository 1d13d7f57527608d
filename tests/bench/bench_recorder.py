"""What a record costs on the thread that makes it, and how fast it is in the store.

    python tests/bench/bench_recorder.py [--spool /dev/shm]

Each number is the cost of one record: a span, a step and a collective are two.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rankscope.ingest.identity import Identity
from rankscope.ingest.pens import fast_pen
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.segment import SegmentWriter

EVENTS = 60_000
DURABLE = 1_000_000
Cost = dict[str, float]


def percentiles(took: list[int], per: int = 1) -> Cost:
    """median_ns, p99_ns and p999_ns of one event."""
    took = sorted(took)
    places = {"median_ns": 0.5, "p99_ns": 0.99, "p999_ns": 0.999}
    return {name: took[int(len(took) * part)] / per for name, part in places.items()}


def time_each(call: Callable[[], object], count: int, per: int = 1) -> Cost:
    """The cost of each of `count` calls that make `per` events."""
    clock = time.perf_counter_ns
    took = [0] * count
    for n in range(count):
        before = clock()
        call()
        took[n] = clock() - before
    return percentiles(took, per)


def open_recorder(spool: Path, fast: bool) -> Recorder:
    """A recorder with the pen asked for, apart from the one of this process."""
    identity = Identity.of_this_process("bench")
    return Recorder(SegmentWriter(spool / "bench", identity.stem, identity.as_json(), fast=fast), identity)


def per_event(spool: Path, fast: bool) -> dict[str, Cost]:
    """Costs by kind of event in a tight loop."""
    recorder = open_recorder(spool, fast)

    def collective() -> None:
        recorder.collective_end(
            recorder.collective_begin("all_reduce", "0", 7, 4096, "float32|1024|train.py:88")
        )

    def by_hand() -> None:
        recorder.end(recorder.begin("forward"))

    def span() -> None:
        with recorder.span("forward"):
            pass

    def step() -> None:
        with recorder.step():
            pass

    calls: dict[str, tuple[Callable[[], object], int]] = {
        "collective": (collective, 2),
        "span by hand": (by_hand, 2),
        "with span": (span, 2),
        "with step": (step, 2),
        "scalar": (lambda: recorder.scalar("loss", 0.5), 1),
    }
    try:
        return {name: time_each(call, EVENTS // per, per) for name, (call, per) in calls.items()}
    finally:
        recorder.close()


def busy_loop(spool: Path, fast: bool, steps: int = 1500) -> Cost:
    """The same among the work of a training step, with another Python thread that wants the GIL as well."""
    import threading

    recorder = open_recorder(spool, fast)
    stop = threading.Event()

    def loader() -> None:
        while not stop.is_set():
            sum(range(2_000))
            time.sleep(0.001)

    threading.Thread(target=loader, daemon=True).start()
    took: list[int] = []
    clock = time.perf_counter_ns
    data = bytearray(1 << 20)
    for step in range(steps):
        recorder.step_number = step
        for layer in range(10):
            bytes(data[: 1 << 18])  # what a layer does to the caches
            before = clock()
            token = recorder.collective_begin(
                "all_reduce", "0", 10 * step + layer, 4096, "float32|1024|train.py:88"
            )
            between = clock()
            sum(range(300))
            after = clock()
            recorder.collective_end(token)
            took += (between - before, clock() - after)
    stop.set()
    recorder.close()
    return percentiles(took)


def to_durable(spool: Path, fast: bool) -> dict[str, float]:
    """Events a second until they survive their process, and until they are rows of a store."""
    from rankscope.ingest.collector import Collector
    from rankscope.ingest.store import Store

    recorder = open_recorder(spool, fast)
    writer = recorder._writer
    assert writer is not None
    before = time.perf_counter()
    for n in range(DURABLE):
        recorder.scalar("loss", n)
        if n % 16_384 == 0:
            writer.prepare_next()
    written = time.perf_counter() - before
    recorder.close()
    with Store.open(spool / "store.duckdb") as store, Collector(store, spool) as collector:
        before = time.perf_counter()
        collector.catch_up()
        collected = time.perf_counter() - before
        rows = store.rows("SELECT count(*) AS n FROM scalar")[0]["n"]
    assert rows == DURABLE, f"{rows} of {DURABLE} events are in the store"
    return {
        "segments_events_per_s": DURABLE / written,
        "store_events_per_s": DURABLE / (written + collected),
    }


def measure(spool: Path | None = None) -> dict[str, Any]:
    """All of it, in a process of its own."""
    command = [sys.executable, __file__, "--json", *(["--spool", str(spool)] if spool else [])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure_here(spool: Path | None) -> dict[str, Any]:
    pens = {"python": False} | ({"c": True} if fast_pen() is not None else {})
    found: dict[str, Any] = {}
    for pen, fast in pens.items():
        with tempfile.TemporaryDirectory(dir=spool) as folder:
            empty = time_each(lambda: None, EVENTS)
            found[pen] = {
                "empty call": empty,
                "tight": per_event(Path(folder, "tight"), fast),
                "busy": busy_loop(Path(folder, "busy"), fast),
                "durable": to_durable(Path(folder, "durable"), fast),
            }
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spool", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    print(json.dumps(_measure_here(args.spool), indent=None if args.json else 1))
