"""A number that is known within bounds: what the effective-time functions take and give.

Interval(300.0, 240.0, 420.0)   # five minutes, between four and seven
Interval.exactly(300.0)         # given, not estimated
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its lower and upper bound, all in the same unit; `high` may be infinite.

    Raises:
        ValueError: the bounds are not around the value, or something is not a number.
    """

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if math.isnan(self.value) or not self.low <= self.value <= self.high:
            raise ValueError(f"bounds must be around the value: {self.low} <= {self.value} <= {self.high}")

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """A number without uncertainty."""
        return cls(value, value, value)

    @property
    def is_exact(self) -> bool:
        return self.low == self.high
