"""An emulated start as the records of a real run, so that the start-up page draws both.

Written through the same segments as any recorder's; the collector takes them from the spool. Of very many
ranks a sample is recorded in full: the slowest of every phase and evenly spread ones.
"""

import os
import socket
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from rankscope.emulation.model import Outcome
from rankscope.emulation.real.run import RealResult
from rankscope.ingest.identity import Identity, new_run_id, safe_name
from rankscope.ingest.segment import SegmentWriter
from rankscope.ingest.vocabulary import InitPhase, SpanCategory

SAMPLE: Final = 1_024
_STORE_PARTS: Final = frozenset({"root_ids", "create_store", "set_key", "get_key"})
Spans = dict[int, list[tuple[str, int, int]]]


def write_outcome(outcome: Outcome, spool: Path, run: str | None = None, *, now_ns: int | None = None) -> str:
    """Record an outcome of the model as a run of its own; returns its id."""
    scenario = outcome.scenario
    begin_ns = now_ns or time.time_ns()
    spans: Spans = {}
    for rank in sample(outcome):
        at, found = float(outcome.begins_s[rank]), []
        for phase in outcome.phases:
            end = max(at, float(phase.ends_s[rank]))
            if end > at:
                found.append((phase.name, begin_ns + round(at * 1e9), begin_ns + round(end * 1e9)))
            at = end
        spans[rank] = found
    method = f"{scenario.ring.value}, {scenario.allgather.value} AllGather, virtual time"
    return _write(
        spool, run, spans, scenario.ranks, scenario.ranks_a_host, method, begin_ns, outcome.as_dict()
    )


def write_result(result: RealResult, spool: Path, run: str | None = None) -> str:
    """Record a real start as a run of its own; returns its id."""
    plan = result.plan
    method = f"{plan.ring}, {plan.allgather} AllGather, real sockets"
    a_host = -(-plan.ranks // result.workers)
    return _write(spool, run, result.spans, plan.ranks, a_host, method, result.began_ns, result.as_dict())


def sample(outcome: Outcome) -> list[int]:
    """Ranks to record: all of few; of many the slowest in every phase, late ones and evenly spread ones."""
    n = outcome.scenario.ranks
    if n <= SAMPLE:
        return list(range(n))
    chosen = set(range(0, n, -(-n // SAMPLE))) | {n - 1, *outcome.scenario.late}
    before = outcome.begins_s
    for phase in outcome.phases:
        chosen.add(int(np.argmax(phase.ends_s - before)))
        chosen.add(int(np.argmax(phase.ends_s)))
        before = phase.ends_s
    return sorted(chosen)


def _write(
    spool: Path,
    run: str | None,
    spans: Spans,
    ranks: int,
    ranks_a_host: int,
    method: str,
    begin_ns: int,
    told: dict[str, Any],
) -> str:
    run_id = safe_name(run) if run else new_run_id(f"emulated-{ranks}", begin_ns)
    identity = Identity(run_id, f"emulation-{os.getpid()}-{begin_ns}", socket.gethostname(), begin_ns)
    identity.rank, identity.world_size = -1, ranks
    identity.role, identity.command = "launcher", method
    writer = SegmentWriter(spool / run_id, identity.stem, identity.as_json())
    try:
        writer.event(
            {"type": "run_update", "origin": "emulated", "planned_ranks": ranks, "began_ns": begin_ns,
             "framework": "emulation", "backend": method, "command": method}
        )  # fmt: skip
        for rank, found in spans.items():
            writer.event(
                {"type": "rank", "rank": rank, "restart_count": 0, "host": f"host{rank // ranks_a_host:05d}",
                 "local_rank": rank % ranks_a_host, "spawn_ns": found[0][1] if found else begin_ns,
                 "began_ns": found[0][1] if found else begin_ns, "role": "rank"}
            )  # fmt: skip
            for part, begin, end in found:
                name = InitPhase.STORE if part in _STORE_PARTS else InitPhase.COMMUNICATOR
                writer.event(
                    {"type": "span", "rank": rank, "restart_count": 0, "category": SpanCategory.INIT.value,
                     "name": name.value, "begin_ns": begin, "end_ns": end, "status": "ok", "thread": 0,
                     "pg": "world", "part": part}
                )  # fmt: skip
            if found:
                writer.event(
                    {"type": "process_exit", "rank": rank, "restart_count": 0, "time_ns": found[-1][2],
                     "exit_code": 0, "observer": "self"}
                )  # fmt: skip
        writer.event({"type": "scalar", "rank": -1, "name": "emulated_total_s", "value": told["total_s"],
                      "time_ns": begin_ns + round(told["total_s"] * 1e9)})  # fmt: skip
        writer.prepare_next()
    finally:
        writer.close()
    return run_id
