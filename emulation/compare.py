"""All methods against each other at many sizes, in virtual time, ranked; what `emulate compare` prints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rankscope.emulation.model import AllGather, Costs, Outcome, Ring, Scenario, Sizes, simulate

SIZES: Final = (1_024, 4_096, 16_384, 65_536, 98_304)


@dataclass(frozen=True)
class Method:
    """A way to start, by the name people know it by."""

    name: str
    ring: Ring
    allgather: AllGather
    sizes: Sizes = Sizes.FIRST
    generation: str = "2.23"
    loops: bool = True

    def scenario(self, ranks: int) -> Scenario:
        return Scenario(ranks, self.ring, self.allgather, self.sizes, self.generation, loops=self.loops)


BASELINE: Final = Method(
    "NCCL before 2.23: root, 1 ms a rank", Ring.STAGGERED, AllGather.RING, generation="2.20"
)
METHODS: Final = (
    BASELINE,
    Method("root, one-way ring", Ring.ROOT, AllGather.RING),
    Method("NCCL since 2.23: root, 7,000 ranks a second", Ring.STAGGERED, AllGather.RING),
    Method("several roots", Ring.MULTI_ROOT, AllGather.RING),
    Method("store ring, one-way", Ring.TCPSTORE, AllGather.RING),
    Method("store ring, both ways", Ring.TCPSTORE, AllGather.BIDIRECTIONAL),
    Method("store ring, both ways, linear loops", Ring.TCPSTORE, AllGather.BIDIRECTIONAL, loops=False),
    Method(
        "store ring, both ways, sizes along, linear loops",
        Ring.TCPSTORE, AllGather.BIDIRECTIONAL, Sizes.ALONG, loops=False,
    ),
    Method("store ring, recursive doubling, linear loops", Ring.TCPSTORE, AllGather.DOUBLING, loops=False),
    Method("store ring, Bruck, linear loops", Ring.TCPSTORE, AllGather.BRUCK, loops=False),
    Method("store ring, tree, linear loops", Ring.TCPSTORE, AllGather.TREE, loops=False),
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One method at one size; `place` is 1 for the fastest of that size."""

    method: Method
    outcome: Outcome
    place: int

    def as_dict(self) -> dict[str, Any]:
        worst = self.outcome.bottleneck
        return {
            "method": self.method.name,
            "ring": self.method.ring.value,
            "allgather": self.method.allgather.value,
            "ranks": self.outcome.scenario.ranks,
            "total_s": self.outcome.total_s,
            "place": self.place,
            "bottleneck": {
                "phase": worst.phase,
                "endpoint": worst.endpoint,
                "growth": worst.growth,
                "share": worst.share,
            },
        }


def compare(
    costs: Costs,
    sizes: Sequence[int] = SIZES,
    methods: Sequence[Method] = METHODS,
    progress: Callable[[float, str], None] = lambda share, what: None,
) -> list[Cell]:
    """Every method at every size, ranked within its size."""
    cells: list[Cell] = []
    done = 0
    for ranks in sizes:
        outcomes = []
        for method in methods:
            progress(done / (len(sizes) * len(methods)), f"{ranks:,} ranks, {method.name}")
            outcomes.append((method, simulate(method.scenario(ranks), costs)))
            done += 1
        order = sorted(range(len(outcomes)), key=lambda i: outcomes[i][1].total_s)
        places = {i: place for place, i in enumerate(order, 1)}
        cells += [Cell(method, outcome, places[i]) for i, (method, outcome) in enumerate(outcomes)]
    progress(1.0, "done")
    return cells
