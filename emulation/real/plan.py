"""What a real emulation does, told to every worker as JSON; and which virtual ranks a worker has."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Self

from rankscope.emulation.model.scenario import AllGather, Ring, Scenario, Sizes


@dataclass(frozen=True)
class RealPlan:
    """One real start of `ranks` virtual ranks.

    With `shared`, the ranks of a worker share its connections and only the ring is formed: 100,000 ranks need
    no more open files than a few workers.
    """

    ranks: int
    ring: str = Ring.TCPSTORE.value
    allgather: str = AllGather.BIDIRECTIONAL.value
    sizes: str = Sizes.FIRST.value
    generation: str = "2.23"
    roots: int | None = None
    payloads: tuple[int, ...] = (120, 160, 2320)
    shared: bool = False
    timeout_s: float = 120.0
    late: tuple[tuple[int, float], ...] = ()
    name: str = "emulation"

    @classmethod
    def of(cls, scenario: Scenario, *, shared: bool = False, timeout_s: float = 120.0) -> Self:
        """The real counterpart of a scenario of the model."""
        return cls(
            ranks=scenario.ranks,
            ring=scenario.ring.value,
            allgather=scenario.allgather.value,
            sizes=scenario.sizes.value,
            generation=scenario.generation,
            roots=scenario.roots,
            payloads=() if shared else tuple(size for _, size in scenario.gathers),
            shared=shared,
            timeout_s=timeout_s,
            late=tuple(scenario.late.items()),
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values = json.loads(text)
        values["payloads"] = tuple(values["payloads"])
        values["late"] = tuple((int(rank), float(seconds)) for rank, seconds in values["late"])
        return cls(**values)

    @property
    def scenario(self) -> Scenario:
        """The model's counterpart, for numbers that both must agree on."""
        return Scenario(
            self.ranks,
            Ring(self.ring),
            AllGather(self.allgather),
            Sizes(self.sizes),
            self.generation,
            self.roots,
        )

    def begins_late(self, rank: int) -> float:
        return dict(self.late).get(rank, 0.0)


def block(worker: int, workers: int, ranks: int) -> range:
    """The virtual ranks of a worker: neighbours together, as on real hosts."""
    return range(worker * ranks // workers, (worker + 1) * ranks // workers)


def chunk_of(rank: int, gather: int, size: int) -> bytes:
    """What a virtual rank gives to an AllGather: `size` bytes that nobody else gives, known to everybody."""
    seed = hashlib.blake2b(f"{gather}:{rank}".encode(), digest_size=32).digest()
    return (seed * (size // 32 + 1))[:size]
