"""What is to be started: how many ranks, by which methods, and what goes wrong on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rankscope.ingest.errors import UserError

MAX_RANKS: Final = 4_000_000
RANKS_A_ROOT: Final = 128  # PyTorch's default, TORCH_NCCL_RANKS_PER_ROOT


class Ring(StrEnum):
    """How a rank finds its neighbour."""

    ROOT = "root"
    STAGGERED = "root-staggered"
    MULTI_ROOT = "multi-root"
    TCPSTORE = "tcpstore"


class AllGather(StrEnum):
    """How all ranks learn what each of them has."""

    RING = "ring"
    BIDIRECTIONAL = "bidirectional"
    DOUBLING = "doubling"
    BRUCK = "bruck"
    TREE = "tree"


class Sizes(StrEnum):
    """When a chunk's size is sent."""

    FIRST = "first"  # a blocking exchange before each chunk, one direction after the other (NCCL)
    OVERLAPPED = "overlapped"  # before the chunk, both directions at once (RCCL)
    ALONG = "along"  # with the chunk


@dataclass(frozen=True)
class Generation:
    """What changed between NCCL's versions."""

    name: str
    stagger_from: int  # ranks a root, above which ranks delay their first connection
    stagger_per_rank_s: float
    reply_when_known: bool  # the root answers as soon as it can, not after all have come
    allgathers: tuple[tuple[str, int], ...]  # (what, bytes a rank), world-size AllGathers of one init


_RING, _PEERS, _GRAPH = ("ring records", 120), ("peer info", 160), ("graph info", 2320)
_SMALL = ("shared sizes", 8)
GENERATIONS: Final = {
    g.name: g
    for g in (
        Generation("2.18", 128, 1e-3, False, (_RING, _PEERS, _GRAPH, _SMALL)),
        Generation("2.20", 128, 1e-3, False, (_RING, _PEERS, _GRAPH, _SMALL, _SMALL)),
        Generation("2.23", 256, 1 / 7000, True, (_RING, _PEERS, _GRAPH)),
    )
}


@dataclass(frozen=True)
class Scenario:
    """One start of `ranks` ranks.

    `hosts` None means eight ranks a host. `jitter_s` is the mean of an exponential delay of every message.
    `late` maps a rank to the seconds it starts after the others.
    """

    ranks: int
    ring: Ring = Ring.TCPSTORE
    allgather: AllGather = AllGather.BIDIRECTIONAL
    sizes: Sizes = Sizes.FIRST
    generation: str = "2.23"
    roots: int | None = None
    hosts: int | None = None
    loops: bool = True  # the quadratic host loops are there
    jitter_s: float = 0.0
    late: Mapping[int, float] = field(default_factory=dict)
    payload_bytes: int | None = None  # of every AllGather, instead of the generation's
    allgathers: int | None = None  # how many, instead of the generation's
    backlog: int = 16_384
    seed: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.ranks <= MAX_RANKS:
            raise UserError(f"--ranks {self.ranks}: must be from 2 to {MAX_RANKS:,}", status=2)
        if self.generation not in GENERATIONS:
            raise UserError(f"--nccl {self.generation}: one of {', '.join(GENERATIONS)}", status=2)
        if self.roots is not None and not 1 <= self.roots <= self.ranks:
            raise UserError(f"--roots {self.roots}: must be from 1 to the number of ranks", status=2)
        if self.hosts is not None and not 1 <= self.hosts <= self.ranks:
            raise UserError(f"--hosts {self.hosts}: must be from 1 to the number of ranks", status=2)
        if self.jitter_s < 0:
            raise UserError("--jitter: must not be negative", status=2)
        for rank, seconds in self.late.items():
            if not 0 <= rank < self.ranks or seconds < 0:
                raise UserError(
                    f"--slow-rank {rank}:{seconds}: a rank below {self.ranks} and seconds from 0", status=2
                )

    @property
    def root_count(self) -> int:
        """Roots at work: 0 for the store ring."""
        if self.ring is Ring.TCPSTORE:
            return 0
        if self.ring is not Ring.MULTI_ROOT:
            return 1
        return self.roots or max(1, -(-self.ranks // RANKS_A_ROOT))

    @property
    def ranks_a_host(self) -> int:
        return -(-self.ranks // self.hosts) if self.hosts else min(8, self.ranks)

    @property
    def gathers(self) -> tuple[tuple[str, int], ...]:
        """(what, bytes a rank) of each AllGather."""
        planned = GENERATIONS[self.generation].allgathers
        count = self.allgathers if self.allgathers is not None else len(planned)
        chosen = tuple(planned[i % len(planned)] for i in range(count))
        if self.payload_bytes is None:
            return chosen
        return tuple((what, self.payload_bytes) for what, _ in chosen)
