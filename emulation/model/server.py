"""A server with a listen backlog that does one thing at a time: a root, or a store. Exact, event by event."""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

# A refused or dropped connection is tried again after delay(attempt) seconds, attempt counting from 1.
Backoff = Callable[[int], float]


def root_backoff(attempt: int) -> float:
    """NCCL sleeps 100 ms times the number of the attempt."""
    return 0.1 * attempt


def store_backoff(attempt: int) -> float:
    """Half a second, times 1.5 each time, 3 s at most."""
    return min(3.0, 0.5 * 1.5 ** (attempt - 1))


ROOT_ATTEMPTS: Final = 34


@dataclass
class Refusals:
    """What a full backlog cost."""

    refused: int = 0  # attempts that found it full
    most_attempts: int = 1
    gave_up: int = 0


class Server:
    """`threads` workers behind one queue; connections above `backlog` waiting ones are refused."""

    def __init__(self, *, backlog: int, backoff: Backoff, attempts: int | None, threads: int = 1) -> None:
        self.refusals = Refusals()
        self._backlog, self._backoff, self._attempts = backlog, backoff, attempts
        self._free = [0.0] * threads
        self._waiting: deque[float] = deque()  # when each accepted connection that still waits gets its turn
        self._events: list[tuple[float, int, int, int, int]] = []
        self._sequence = 0
        self._rng = np.random.default_rng(7)

    def at(self, time_s: float, client: int, stage: int, attempt: int = 1) -> None:
        """Something of `client` reaches the server at `time_s`."""
        self._sequence += 1
        heapq.heappush(self._events, (time_s, self._sequence, client, stage, attempt))

    def take(self, now: float, service_s: float) -> float:
        """Serve a request that came at `now`; returns when it is done."""
        start = max(now, heapq.heappop(self._free))
        heapq.heappush(self._free, start + service_s)
        return start + service_s

    def admit(self, now: float, client: int, stage: int, attempt: int, service_s: float) -> float | None:
        """Accept a connection, or refuse it and let it come again; returns when it is accepted."""
        waiting = self._waiting
        while waiting and waiting[0] <= now:
            waiting.popleft()
        if len(waiting) >= self._backlog:
            self.refusals.refused += 1
            self.refusals.most_attempts = max(self.refusals.most_attempts, attempt + 1)
            if self._attempts is not None and attempt >= self._attempts:
                self.refusals.gave_up += 1
            else:
                pause = self._backoff(attempt) * (1 + 0.1 * float(self._rng.random()))
                self.at(now + pause, client, stage, attempt + 1)
            return None
        done = self.take(now, service_s)
        waiting.append(done - service_s)
        return done

    def run(self, handle: Callable[[float, int, int, int], None]) -> None:
        """Hand every event to handle(time, client, stage, attempt) in order of time."""
        events = self._events
        while events:
            now, _, client, stage, attempt = heapq.heappop(events)
            handle(now, client, stage, attempt)
