"""What waits for what within one training step of a pipeline: the graph that a what-if replays.

The rules are those of the published analysis (Lin et al., *Understanding Stragglers in Large Model Training
Using What-if Analysis*, OSDI '25, and its artifact), written anew. On each stage, in the order in which
things started in a reference step:

1. Computations follow each other, and so does each kind of point-to-point message (send and receive, forward
   and backward) on its own stream; parameter gathers and gradient scatters share one stream.
2. A send follows the computation that it belongs to. A computation follows the receive that belongs to it,
   and that receive follows the computation of its kind before. The n-th message belongs to the n-th
   computation of its kind. Receives that start after the last computation began, and sends that end before
   the first one ended, belong to none; where one receive is missing, it is the first one's.
3. The first backward message waits for the forward computation before the last one ahead of the first
   backward computation (1F1B's warm-up).
4. The first forward computation of a model chunk follows the last parameter gather of that chunk.
5. After the last computation: garbage collection → layer-norm gradients → embedding gradients (first and
   last stage) → gradient scatters → clipping → optimizer. Where gradients are scattered while computing (a
   separate all-reduce exists), the first scatter of a chunk follows its last backward computation instead,
   and the separate all-reduce takes the scatters' place.

Ranks wait for each other: the n-th real send of a stage and the n-th real receive of its neighbour; embedding
gradients of the first and last stage; clipping of all stages; gathers, scatters and clipping of all
data-parallel ranks. A message whose chunk has no neighbour (the model's ends) waits for nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise, zip_longest

FORWARD, BACKWARD = "forward", "backward"
GATHER, SCATTER, SEPARATE = "params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce"
COLLECT, LAYER_NORM = "gc", "layernorm-grads-all-reduce"
EMBEDDING, CLIP, OPTIMIZER = "embedding-grads-all-reduce", "optimizer-clip-main-grad", "optimizer"
MESSAGES = ("forward-send", "forward-recv", "backward-send", "backward-recv")
ALL_RANKS = (GATHER, SCATTER, SEPARATE, CLIP)  # wait for all data-parallel ranks
COMMUNICATION = (*MESSAGES, GATHER, SCATTER, SEPARATE, LAYER_NORM, EMBEDDING, CLIP)
KNOWN = (f"{FORWARD}-compute", f"{BACKWARD}-compute", COLLECT, OPTIMIZER, *COMMUNICATION)

_CLOCK_S = 5e-5  # clocks of one host agree within that


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a step: its kind, its number among that kind, its stage."""

    kind: str
    number: int
    stage: int


@dataclass(frozen=True, slots=True)
class Op:
    """An operation of the reference step."""

    node: Node
    begin: float
    end: float
    chunk: int  # of the stage (mc); -1 where unknown
    model_chunk: int  # of the whole model (gmc)


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that end together: each after its own transfer, counted from the last one's begin."""

    nodes: tuple[Node, ...]
    waits: bool  # False: an ordinary operation
    all_ranks: bool  # also with the same operation of all data-parallel ranks


@dataclass(frozen=True, slots=True)
class StepGraph:
    """Groups in an order in which they can run, and what each operation comes after."""

    groups: tuple[Group, ...]
    after: dict[Node, tuple[Node, ...]]


def step_graph(reference: Sequence[Op]) -> StepGraph:
    """The graph of the step that these operations of one data-parallel rank describe.

    Operations that the rules name and the reference lacks (no garbage collection, one stage only) are in the
    graph all the same and take no time there.

    Raises:
        ValueError: a stage has no computation, or operations wait for each other in a circle.
    """
    builder = _Builder(reference)
    for stage in range(builder.stages):
        builder.add_stage(stage)
    return builder.graph()


class _Builder:
    def __init__(self, reference: Sequence[Op]) -> None:
        self.stages = max(op.node.stage for op in reference) + 1
        chunks = max(op.chunk for op in reference) + 1
        self.model_chunks = self.stages * max(1, chunks)
        self.separate = any(op.node.kind == SEPARATE for op in reference)
        self.scattered = any(op.node.kind in (GATHER, SCATTER, SEPARATE) for op in reference)
        self.after: dict[Node, list[Node]] = defaultdict(list)
        self.real: dict[tuple[str, int], list[Node]] = defaultdict(list)  # messages that have a peer
        self.idle: list[Node] = []  # messages that have none
        self.ops: dict[int, list[Op]] = defaultdict(list)
        for op in sorted(reference, key=lambda op: (op.begin, op.node.number, op.node.kind)):
            self.after[op.node] = []
            self.ops[op.node.stage].append(op)

    def add_stage(self, stage: int) -> None:
        ops = self.ops[stage]
        compute = [op for op in ops if op.node.kind.endswith("-compute")]
        if not compute:
            raise ValueError(f"stage {stage} of the trace has no forward-compute or backward-compute")
        self._chain(op.node for op in compute)
        for kind in MESSAGES:
            messages = [op for op in ops if op.node.kind == kind]
            self._chain(op.node for op in messages)
            self._messages(kind, messages, _of(compute, kind.partition("-")[0] + "-compute"))
        self._warm_up(stage, compute)
        if self.scattered:
            self._chain(op.node for op in ops if op.node.kind in (GATHER, SCATTER))
            self._gathers(ops, compute)
        self._tail(stage, ops, compute)

    def _messages(self, kind: str, messages: list[Op], compute: list[Op]) -> None:
        """Rule 2, and which messages have a peer."""
        sends = kind.endswith("send")
        belonging: list[Op] = []
        if compute:
            last_begin, first_end = max(op.begin for op in compute), min(op.end for op in compute)
            for op in messages:
                near = op.end >= first_end - _CLOCK_S if sends else op.begin <= last_begin + _CLOCK_S
                if near:
                    belonging.append(op)
        numbered = {op.node.number: op for op in compute}
        skipped = 1 if not sends and len(belonging) + 1 == len(compute) else 0
        step = 1 if kind in ("forward-send", "backward-recv") else -1
        matched = {}
        for number, op in enumerate(belonging, start=skipped):
            own = numbered.get(number)
            if own is None:
                continue
            matched[op.node] = own
            if sends:
                self.after[op.node].append(own.node)
            else:
                self.after[own.node].append(op.node)
                if number - 1 in numbered:
                    self.after[op.node].append(numbered[number - 1].node)
        for op in messages:
            partner = matched.get(op.node)
            if partner is not None and 0 <= partner.model_chunk + step < self.model_chunks:
                self.real[kind, op.node.stage].append(op.node)
            else:
                self.idle.append(op.node)

    def _warm_up(self, stage: int, compute: list[Op]) -> None:
        kinds = [op.node.kind for op in compute]
        first = kinds.index(f"{BACKWARD}-compute") if f"{BACKWARD}-compute" in kinds else 0
        if first < 2:
            return
        for kind in ("backward-recv", "backward-send"):
            node = Node(kind, 0, stage)
            if node in self.after:
                self.after[node].append(compute[first - 2].node)

    def _gathers(self, ops: list[Op], compute: list[Op]) -> None:
        last = {op.chunk: op for op in sorted(_of(ops, GATHER), key=lambda op: op.node.number)}
        for chunk, gather in last.items():
            users = [op for op in _of(compute, f"{FORWARD}-compute") if op.chunk == chunk]
            if users:
                self.after[users[0].node].append(gather.node)

    def _tail(self, stage: int, ops: list[Op], compute: list[Op]) -> None:
        """Rule 5."""
        scatters = sorted(_of(ops, SCATTER), key=lambda op: op.node.number)
        last = max(compute, key=lambda op: op.end).node
        ends = [Node(EMBEDDING, 0, stage)] if stage in (0, self.stages - 1) else []
        chain = [Node(COLLECT, 0, stage), Node(LAYER_NORM, 0, stage), *ends]
        if self.separate:
            chain.append(Node(SEPARATE, 0, stage))
            if scatters:
                self.after[chain[1]].append(scatters[-1].node)
            first = {op.chunk: op for op in reversed(scatters)}
            for chunk, scatter in first.items():
                done = [op for op in _of(compute, f"{BACKWARD}-compute") if op.chunk == chunk]
                if done:
                    self.after[scatter.node].append(max(done, key=lambda op: op.end).node)
        else:
            chain += [op.node for op in scatters]
        self._chain([last, *chain, Node(CLIP, 0, stage), Node(OPTIMIZER, 0, stage)])

    def _chain(self, nodes: Iterable[Node]) -> None:
        for before, node in pairwise(nodes):
            self.after[node].append(before)

    def graph(self) -> StepGraph:
        group_of = {node: group for group in self._groups() for node in group.nodes}
        waits_for: dict[Group, set[Group]] = {group: set() for group in group_of.values()}
        for node, before in self.after.items():
            waits_for[group_of[node]].update(group_of[other] for other in before)
        try:
            order = tuple(TopologicalSorter(waits_for).static_order())
        except CycleError as error:
            circle = ", ".join(group.nodes[0].kind for group in error.args[1])
            raise ValueError(f"operations of the trace wait for each other in a circle: {circle}") from error
        return StepGraph(order, {node: tuple(before) for node, before in self.after.items()})

    def _groups(self) -> list[Group]:
        together: list[tuple[Node, ...]] = [(node,) for node in self.idle]
        for stage in range(self.stages):
            for way, step in ((FORWARD, 1), (BACKWARD, -1)):
                sends = self.real[f"{way}-send", stage]
                receives = self.real[f"{way}-recv", (stage + step) % self.stages]
                pairs = zip_longest(sends, receives)  # where one is missing, the other waits for nobody
                together += [tuple(node for node in pair if node) for pair in pairs]
        together.append(tuple(Node(EMBEDDING, 0, stage) for stage in sorted({0, self.stages - 1})))
        groups = [Group(nodes, waits=True, all_ranks=False) for nodes in together]
        groups.append(Group(tuple(Node(CLIP, 0, s) for s in range(self.stages)), waits=True, all_ranks=True))
        grouped = {node for group in groups for node in group.nodes}
        for node in self.after:
            if node not in grouped:
                waits = node.kind in ALL_RANKS
                groups.append(Group((node,), waits=waits, all_ranks=waits))
        return groups


def _of(ops: list[Op], kind: str) -> list[Op]:
    return [op for op in ops if op.node.kind == kind]
