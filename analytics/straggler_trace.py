"""A trace of operations, read into arrays that a replay can use.

One row an operation, with these columns:

    dp_rank, stage, step    whose it is; one rank stands for all that share a data-parallel rank and a stage
    optype, seq_id          its kind, and its number among that kind on its rank and step
    start_ts, duration      seconds
    mc, gmc                 model chunk of the stage and of the whole model; only where chunks are interleaved

Steps and ranks may lack operations: those take no time. What waits for what is read off the first step and
rank that has most operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankscope.analytics.pipeline_graph import COMMUNICATION, KNOWN, Node, Op, StepGraph, step_graph

_NEEDED = ("dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id")
_SKEW_S = 1e-2  # a transfer that ends further than that before its group began is an artefact of clocks

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrays of operations × steps × data-parallel ranks, in seconds.

    `spent` is an operation's duration, or its transfer where it waits for others; `ideal` the same if all
    operations of a kind were alike. Both are 0 where the operation is missing.
    """

    graph: StepGraph
    nodes: list[Node]
    steps: list[int]
    spent: Floats
    ideal: Floats
    ignored: tuple[str, ...]  # kinds of operations that no rule places


@dataclass(frozen=True, slots=True)
class _Rows:
    """The trace's columns, rows of known kinds only; ranks, stages and steps counted from 0."""

    kind: list[str]
    number: Ints
    stage: Ints
    step: Ints
    rank: Ints
    begin: Floats  # in the trace's own precision, which the published digits depend on
    duration: Floats
    chunk: Ints
    model_chunk: Ints
    steps: list[int]


def load(table: pa.Table) -> Trace:
    """Read a trace.

    Raises:
        ValueError: columns are missing, a rank has an operation twice, or no order can be made out.
    """
    rows, ignored = _rows(table)
    graph = step_graph(_reference(rows))
    nodes = [node for group in graph.groups for node in group.nodes]
    index = {node: i for i, node in enumerate(nodes)}
    names = zip(rows.kind, rows.number.tolist(), rows.stage.tolist(), strict=True)
    place = np.array([index.get(Node(*name), -1) for name in names])
    placed = place >= 0
    at = (place[placed], rows.step[placed], rows.rank[placed])

    def spread(values: Floats) -> Floats:
        array = np.full((len(nodes), len(rows.steps), int(rows.rank.max()) + 1), np.nan, values.dtype)
        array[at] = values[placed]
        return array

    durations = spread(rows.duration)
    spent = _spent(graph, index, durations, spread(rows.begin), spread(rows.begin + rows.duration))
    ideal = np.zeros(spent.shape)
    for kind in {node.kind for node in nodes}:
        of_kind = [index[node] for node in nodes if node.kind == kind]
        there = ~np.isnan(spent[of_kind])
        ideal[of_kind] = np.where(there, _middle(kind, spent[of_kind][there]), 0.0)
    return Trace(graph, nodes, rows.steps, np.nan_to_num(spent.astype(float)), ideal, ignored)


def _rows(table: pa.Table) -> tuple[_Rows, tuple[str, ...]]:
    missing = [name for name in _NEEDED if name not in table.column_names]
    if missing:
        raise ValueError(f"the trace lacks the columns {', '.join(missing)}")
    kinds = np.array(table["optype"].to_pylist(), dtype=object)
    known = np.isin(kinds, KNOWN)
    if not known.any():
        raise ValueError("the trace has no operation of a known kind")

    def column(name: str) -> Any:
        if name not in table.column_names:
            return np.full(int(known.sum()), -1)
        return table[name].to_numpy()[known]

    steps, step = np.unique(column("step"), return_inverse=True)
    kind_names, kind = np.unique(kinds[known].astype(str), return_inverse=True)
    stage = np.unique(column("stage"), return_inverse=True)[1]
    rank = np.unique(column("dp_rank"), return_inverse=True)[1]
    number = column("seq_id").astype(np.int64)
    keys = (kind, number, stage, step, rank)
    if len(np.unique(np.ravel_multi_index(keys, [key.max() + 1 for key in keys]))) != len(kind):
        raise ValueError(
            "the trace has an operation twice on one (dp_rank, stage) and step: keep one rank of each"
        )
    chunk, model_chunk = column("mc").astype(np.int64), column("gmc").astype(np.int64)
    interleaved = np.maximum(chunk, 0) * (stage.max() + 1) + stage
    rows = _Rows(
        kind_names[kind].tolist(),
        number,
        stage,
        step,
        rank,
        column("start_ts"),
        column("duration"),
        chunk,
        np.where(model_chunk < 0, interleaved, model_chunk),
        steps.tolist(),
    )
    return rows, tuple(sorted(set(kinds[~known])))


def _reference(rows: _Rows) -> list[Op]:
    """Operations of the step and rank that has most of them; of several, the first."""
    cell = rows.step * (rows.rank.max() + 1) + rows.rank
    end = rows.begin + rows.duration
    return [
        Op(
            Node(rows.kind[i], int(rows.number[i]), int(rows.stage[i])),
            float(rows.begin[i]),
            float(end[i]),
            int(rows.chunk[i]),
            int(rows.model_chunk[i]),
        )
        for i in np.flatnonzero(cell == np.bincount(cell).argmax())
    ]


def _middle(kind: str, values: Floats) -> float:
    """Median of transfers, in the trace's own precision as published; mean of computations."""
    if not values.size:
        return 0.0
    wide = values.astype(float)
    return float(np.median(wide).astype(values.dtype)) if kind in COMMUNICATION else float(wide.mean())


def _spent(
    graph: StepGraph, index: dict[Node, int], durations: Floats, begins: Floats, ends: Floats
) -> Floats:
    """Durations; of operations that wait for others, the time from the last one's begin to their own end."""
    spent = durations.copy()
    for group in graph.groups:
        if not group.waits:
            continue
        rows = [index[node] for node in group.nodes]
        last = np.fmax.reduce(begins[rows], axis=0)
        if group.all_ranks:
            last = np.broadcast_to(np.fmax.reduce(last, axis=1, keepdims=True), last.shape)
        transfer = ends[rows] - last
        spent[rows] = np.where(transfer <= -_SKEW_S, 0, transfer)
    return spent
