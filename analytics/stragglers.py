"""What stragglers cost: a training step replayed as if all its operations were alike.

    analyse(pyarrow.parquet.read_table("trace.parquet")).slowdown      # 1.18: 15 % of the time is lost

T is a step's time replayed with its real durations, T_ideal with each computation at the mean and each
communication's transfer at the median of its kind, over data-parallel ranks, stages and steps. A transfer
counts from the moment the last of its group arrived, so that waiting for others is no part of it.

    slowdown  S = mean T / mean T_ideal;  waste = 1 − 1/S;  straggling from S = 1.1
    S_dp, S_stage    the ideal with one data-parallel rank's or one stage's own durations, ÷ ideal
    worker's score   min(S_dp, S_stage)
    M_W = (T − T with the slowest 3 % of workers at ideal) / (T − T_ideal);  M_S the same, last stage

Source: Lin et al., OSDI '25 (see `pipeline_graph` for what waits for what).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rankscope.analytics.straggler_trace import Floats, Trace, load

STRAGGLING = 1.1
SLOWEST_WORKERS = 0.03


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The published measures of one trace. Times in seconds."""

    slowdown: float  # S
    waste: float  # 1 − 1/S
    straggling: bool
    worker_share: float | None  # M_W; None where nothing is lost
    last_stage_share: float | None  # M_S
    step_s: dict[int, float]  # T of each step
    ideal_step_s: float
    by_dp_rank: dict[int, float]  # S_dp
    by_stage: dict[int, float]  # S_stage
    workers: dict[tuple[int, int], float]  # (dp_rank, stage): score
    ignored: tuple[str, ...]  # kinds of operations that no rule places


def analyse(trace: pa.Table) -> Slowdown:
    """Measure a trace with one row an operation.

    Args:
        trace: columns as in `straggler_trace`.

    Raises:
        ValueError: columns are missing, a rank has an operation twice, or no order can be made out.
    """
    loaded = load(trace)
    times = _replay(loaded, loaded.spent)
    ideal_times = _replay(loaded, loaded.ideal)
    ideal = float(ideal_times.mean())
    stages = np.array([node.stage for node in loaded.nodes])
    ranks = loaded.spent.shape[2]

    def own(at: tuple[object, ...]) -> float:
        """The ideal, but for these operations: how much slower."""
        spent = loaded.ideal.copy()
        spent[at] = loaded.spent[at]  # type: ignore[index]
        return float(_replay(loaded, spent).mean()) / ideal

    by_dp_rank = {rank: own((slice(None), slice(None), rank)) for rank in range(ranks)}
    by_stage = {stage: own((stages == stage,)) for stage in range(stages.max() + 1)}
    workers = {
        (rank, stage): min(by_dp_rank[rank], by_stage[stage]) for stage in by_stage for rank in by_dp_rank
    }
    slow = sorted(workers, key=lambda worker: -workers[worker])
    slow = slow[: math.ceil(len(workers) * SLOWEST_WORKERS)]
    lost = float(times.mean()) - ideal

    def share(improve: Callable[[Floats], None]) -> float | None:
        """Part of what is lost that goes away with these operations at ideal."""
        if lost <= 0:
            return None
        spent = loaded.spent.copy()
        improve(spent)
        return (float(times.mean()) - float(_replay(loaded, spent).mean())) / lost

    def ideal_workers(spent: Floats) -> None:
        for rank, stage in slow:
            spent[stages == stage, :, rank] = loaded.ideal[stages == stage, :, rank]

    def ideal_last_stage(spent: Floats) -> None:
        spent[stages == stages.max()] = loaded.ideal[stages == stages.max()]

    slowdown = float(times.mean()) / ideal
    return Slowdown(
        slowdown,
        1 - 1 / slowdown,
        slowdown >= STRAGGLING,
        share(ideal_workers),
        share(ideal_last_stage),
        dict(zip(loaded.steps, times.tolist(), strict=True)),
        ideal,
        by_dp_rank,
        by_stage,
        workers,
        loaded.ignored,
    )


def _replay(trace: Trace, spent: Floats) -> Floats:
    """Time of each step if operations take that long and start as soon as they can."""
    index = {node: i for i, node in enumerate(trace.nodes)}
    nothing = np.zeros(spent.shape[1:])
    ends = np.zeros(spent.shape)
    for group in trace.graph.groups:
        begins = []
        for node in group.nodes:
            before = [ends[index[other]] for other in trace.graph.after.get(node, ())]
            begins.append(np.maximum.reduce(before) if before else nothing)
        begin = np.maximum.reduce(begins)
        if group.all_ranks:
            begin = np.broadcast_to(begin.max(axis=1, keepdims=True), begin.shape)
        for node in group.nodes:
            ends[index[node]] = begin + spent[index[node]]
    step_times: Floats = ends.max(axis=(0, 2))
    return step_times
