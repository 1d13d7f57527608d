"""Max-plus rounds over a ring: when each rank is through a sequence of exchanges with its neighbours.

A phase of pattern LEFT sets t'[i] = max(t[i], t[i-1]) + d: a rank is through when it is ready and its
neighbour's message has come. RIGHT waits for t[i+1], BOTH for both. Without noise the maxima commute with the
delays, so k phases are one sliding maximum and k delays: the closed form. With noise every phase is computed.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]
Ticks = npt.NDArray[np.int32] | npt.NDArray[np.int64]

_TICKS: Final = 1e8  # a tick is 10 ns, so that 32 bits hold ranks 21 s apart
_STRIDE: Final = 7919  # the noise of round k begins this much further in the pool than that of round k - 1


class Wait(Enum):
    """Whose message a phase waits for, as (left, right) reach."""

    LEFT = (1, 0)
    RIGHT = (0, 1)
    BOTH = (1, 1)


@dataclass(frozen=True)
class Noise:
    """Exponential delays of mean `mean_s`, drawn once and walked through: rank i in phase k reads
    pool[(k * stride + i) mod size], so that phases differ and a phase costs one addition."""

    mean_s: float
    ranks: int
    seed: int

    def pool_ticks(self) -> npt.NDArray[np.int64]:
        size = max(2 * self.ranks, 1 << 16) | 1
        drawn = np.random.default_rng(self.seed).exponential(self.mean_s * _TICKS, size)
        pool = drawn.astype(np.int64)
        return np.concatenate([pool, pool[: self.ranks]])


def closed_form(start: Times, waits: Sequence[tuple[Wait, int]], delay_s: float) -> Times:
    """`start` after every (wait, how often) in `waits`, each phase costing `delay_s`: exact without noise."""
    left = sum(wait.value[0] * times for wait, times in waits)
    right = sum(wait.value[1] * times for wait, times in waits)
    phases = sum(times for _, times in waits)
    return sliding_max(start, left, right) + phases * delay_s


def sliding_max(values: Times, left: int, right: int) -> Times:
    """Around a ring, the largest of values[i - left .. i + right] for every i."""
    n = len(values)
    width = left + right + 1
    if width >= n:
        return np.full(n, values.max())
    result, done = values, 1  # result[i] = max(values[i - done + 1 .. i])
    while 2 * done <= width:
        result = np.maximum(result, np.roll(result, done))
        done *= 2
    result = np.maximum(result, np.roll(result, width - done))
    return np.roll(result, -right)


class NoisyRing:
    """Phases with noise, all of them, in blocks that threads share.

    A block advances by up to `depth` phases at once: each thread takes a stretch of the ring with a halo as
    wide as the block is deep, so threads meet once a block. Times are integers, ticks above the block's
    first rank.
    """

    def __init__(self, start: Times, noise: Noise, delay_s: float, *, threads: int = 2) -> None:
        self._origin_s = float(start.min())
        self._n = len(start)
        self._offset = 0
        self._ticks = np.rint((start - self._origin_s) * _TICKS).astype(np.int64)
        self._pool = noise.pool_ticks() + round(delay_s * _TICKS)
        self._largest = int(self._pool.max())
        self._short = self._pool.astype(np.int32) if self._largest < 2**31 else None
        self._phase = 0
        self._threads = threads if self._n >= 16_384 else 1

    @property
    def phases_done(self) -> int:
        return self._phase

    def times_s(self) -> Times:
        return self._origin_s + (self._ticks.astype(np.float64) + self._offset) / _TICKS

    def run(
        self, pattern: Sequence[Wait], repeats: int, progress: Callable[[int], None] = lambda done: None
    ) -> None:
        """Do the phases of `pattern`, `repeats` times; `progress` hears how many phases each block did."""
        total = len(pattern) * repeats
        cursor = 0
        with ThreadPoolExecutor(self._threads) as pool:
            while cursor < total:
                depth = min(total - cursor, self._depth())
                waits = [pattern[(cursor + k) % len(pattern)] for k in range(depth)]
                self._block(waits, pool)
                cursor += depth
                progress(depth)

    def _depth(self) -> int:
        return 512 if self._n >= 4096 else 2048

    def _block(self, waits: list[Wait], pool: ThreadPoolExecutor) -> None:
        low = int(self._ticks.min())
        self._ticks -= low
        self._offset += low
        room = 2**31 - 1 - int(self._ticks.max())
        fits = self._short is not None and len(waits) * self._largest < room
        ticks = self._ticks.astype(np.int32) if fits else self._ticks
        delays = self._short if fits and self._short is not None else self._pool
        edges = np.linspace(0, self._n, self._threads + 1).astype(int)
        jobs = [pool.submit(self._stretch, ticks, delays, int(a), int(b), waits) for a, b in pairwise(edges)]
        self._ticks = np.concatenate([job.result() for job in jobs]).astype(np.int64)
        self._phase += len(waits)

    def _stretch(self, ticks: Ticks, delays: Ticks, first: int, last: int, waits: list[Wait]) -> Ticks:
        """Ranks [first, last) after `waits`, from `ticks` of all ranks."""
        n = self._n
        left = sum(wait.value[0] for wait in waits)
        right = sum(wait.value[1] for wait in waits)
        index = np.arange(first - left, last + right) % n
        here: Ticks = ticks[index]
        there = np.empty_like(here)
        size = len(delays) - n  # the pool without its repeated head
        low, high = 0, len(here)  # what is still exact
        for k, wait in enumerate(waits):
            reach_left, reach_right = wait.value
            low, high = low + reach_left, high - reach_right
            out = there[low:high]
            if wait is Wait.LEFT:
                np.maximum(here[low:high], here[low - 1 : high - 1], out=out)
            elif wait is Wait.RIGHT:
                np.maximum(here[low:high], here[low + 1 : high + 1], out=out)
            else:
                np.maximum(here[low - 1 : high - 1], here[low + 1 : high + 1], out=out)
                np.maximum(out, here[low:high], out=out)
            self._add_delays(out, delays, size, (self._phase + k) * _STRIDE, first - left + low)
            here, there = there, here
        return here[low:high].copy()

    def _add_delays(self, out: Ticks, delays: Ticks, size: int, shift: int, first_rank: int) -> None:
        """Add to each rank its delay of this phase; `first_rank` may lie before rank 0 or a lap behind."""
        n, done = self._n, 0
        start = shift % size
        while done < len(out):
            rank = (first_rank + done) % n
            run = min(n - rank, len(out) - done)
            begin = start + rank
            if begin >= size:
                begin -= size
            run = min(run, size + n - begin)
            stretch = out[done : done + run]
            np.add(stretch, delays[begin : begin + run], out=stretch)
            done += run
