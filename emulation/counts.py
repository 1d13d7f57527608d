"""Logical operations of a bootstrap: the same in the real part and in the model."""

from dataclasses import asdict, dataclass, fields
from typing import Self


@dataclass
class Counts:
    """How often each thing happened, summed over ranks.

    A hop is one chunk handed from a rank to another; a size message announces it where sizes go first.
    """

    store_connections: int = 0
    store_sets: int = 0
    store_gets: int = 0  # keys read
    root_in: int = 0  # messages that roots received
    root_out: int = 0  # messages that roots sent
    connects: int = 0  # ring connections opened, seen by the one who opens
    accepts: int = 0  # the same, seen by the one who is called
    size_messages: int = 0
    hops: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def add(self, other: "Counts") -> None:
        """Count what `other` counted too."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))

    @property
    def store_ops(self) -> int:
        """Sets and gets together, in keys."""
        return self.store_sets + self.store_gets

    @property
    def messages(self) -> int:
        """Messages between ranks: to and from roots, sizes, chunks."""
        return self.root_in + self.root_out + self.size_messages + self.hops

    def as_dict(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, int]) -> Self:
        return cls(**values)
