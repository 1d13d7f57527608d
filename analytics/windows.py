"""Windows of time in integer nanoseconds, so that sums of them are exact.

Many runs lie one after the other on one axis, so every question is answered for all of them at once, by
sorting and one search. Begins and ends are sorted separately and need not correspond: the moments that are
covered at least k times are the union of [begin_(i+k−1), end_(i)), by counting which windows have begun and
which have ended.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ns: TypeAlias = npt.NDArray[np.int64]
Family: TypeAlias = tuple[Ns, Ns]  # sorted begins and sorted ends, equally many


class Windows:
    """Disjoint windows in order of time."""

    def __init__(self, begins: Ns, ends: Ns) -> None:
        """Both sorted; where windows overlap, the later one is cut; empty ones are left out."""
        if len(begins) > 1:
            begins = np.maximum(begins, np.concatenate([begins[:1], ends[:-1]]))
        real = ends > begins
        self.begin, self.end = begins[real], ends[real]
        self._total = _prefix(self.end - self.begin)  # of all windows up to the i-th
        self._gap = np.zeros_like(self._total)  # time outside before the i-th begins
        self._gap[1:] = self.begin - self._total[:-1]

    def before(self, time: Ns) -> Ns:
        """How much of the windows lies before each time."""
        begun = np.searchsorted(self.begin, time, side="right")
        inside: Ns = np.minimum(time - self._gap[begun], self._total[begun])
        return inside

    def outside(self, time: Ns) -> Ns:
        """How much time before each one the windows leave."""
        return time - self.before(time)

    def moment(self, outside: Ns) -> Ns:
        """The first time at which `outside` reaches each value."""
        passed = np.searchsorted(self._gap[1:], outside, side="left")
        time: Ns = outside + self._total[passed]
        return time


def union(*families: Family) -> Windows:
    """Moments covered by any window of any family."""
    # Each family is sorted, and a stable sort of such pieces is a merge.
    begins = np.sort(np.concatenate([begin for begin, _ in families]), kind="stable")
    ends = np.sort(np.concatenate([end for _, end in families]), kind="stable")
    return Windows(begins, ends)


def covered_by(begins: Ns, ends: Ns, least: int) -> Family:
    """Pairs whose union is where at least `least` of the windows lie over each other; some may be empty."""
    count = max(0, len(begins) - least + 1)
    ended = ends[:count]
    return np.minimum(begins[least - 1 :], ended), ended


def sums(values: Ns, bounds: npt.NDArray[np.intp]) -> Ns:
    """Sums of values[bounds[i]:bounds[i+1]]. The total may wrap at 2**63; the differences are right."""
    total = _prefix(values)[bounds]
    return total[1:] - total[:-1]


def _prefix(values: Ns) -> Ns:
    total = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=total[1:])
    return total
