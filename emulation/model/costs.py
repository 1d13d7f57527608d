"""What one operation costs: the few numbers that a schedule is turned into seconds with.

Two sets matter: `published_costs()`, fitted to what others published about clusters, and those of this
machine, which `rankscope emulate calibrate` measures. Both are plain JSON files with the source of every
number.
"""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from rankscope.ingest.errors import UserError


@dataclass(frozen=True)
class Costs:
    """Seconds an operation (and bytes a second), as one rank or one server sees it.

    `*_cpu_s` is processor time on the rank's host: with many ranks on few cores it bounds the phase instead
    of the latency. 0 means that processors are never the bound.
    """

    name: str
    hop_s: float  # one message between ring neighbours: send, wire, wake-up, receive
    connect_s: float  # open a connection to a peer or server that is ready
    accept_s: float  # root: accept, receive and close one rank's message
    reply_s: float  # root: connect to one rank and send it its neighbour's address
    store_accept_s: float  # store: accept one client
    store_op_s: float  # store: serve one request
    store_key_s: float  # store: one more key within a request
    store_trip_s: float  # one-way latency between a client and an idle store
    bytes_per_s: float  # out of one host, shared by its ranks
    ring_pair_s: float  # loop over all pairs of ranks that builds the ring (one process' share: N² of these)
    transport_pair_s: float  # the same that sets up transports
    fixed_s: float  # what a communicator costs at any size: kernels, memory, topology of the host
    hop_cpu_s: float = 0.0  # a phase in which a rank waits for one neighbour
    both_cpu_s: float = 0.0  # the mean phase of a two-way AllGather
    join_cpu_s: float = 0.0  # ring formation, a rank
    cores: int = 0  # of one host; 0: enough
    sources: dict[str, str] = field(default_factory=dict)  # field -> where its number comes from

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def with_(self, **changes: Any) -> Self:
        """A copy with other numbers."""
        return replace(self, **changes)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.as_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote.

        Raises:
            UserError: it is not there, or not such a file.
        """
        try:
            values = json.loads(path.read_text())
            costs = cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})
            if any(getattr(costs, f.name) < 0 for f in fields(cls) if f.name.endswith("_s")):
                raise ValueError("a cost below zero")
        except FileNotFoundError as error:
            raise UserError(
                f"there is no cost file {path}: make one with `rankscope emulate calibrate --out {path}`"
            ) from error
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path} is not a cost file ({error}): make one with `rankscope emulate calibrate`"
            ) from error
        return costs
