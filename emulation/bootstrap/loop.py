"""Coroutines that wait for sockets: one rank's bootstrap in a trainer, or thousands of virtual ranks.

asyncio would do; this does an exchange with a neighbour in a quarter of its time, which is what N² of them
cost. Linux only (epoll). A socket belongs to one coroutine. Registration is edge-triggered and once: a
coroutine first tries, and waits only when the kernel says "not now".
"""

import heapq
import select
import socket
import types
from collections import deque
from collections.abc import Coroutine, Generator, Iterable
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_NEVER = float("inf")
_READ = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_WRITE = _READ | select.EPOLLOUT


class Signal:
    """Something that happens once, and that tasks wait for with Loop.until."""

    __slots__ = ("is_set", "waiting")

    def __init__(self) -> None:
        self.is_set = False
        self.waiting: list[Task[Any]] = []


class Task(Generic[T]):
    """A coroutine on its way: `result` or `error` when it is done."""

    __slots__ = ("armed", "coroutine", "deadline", "error", "fds", "finished", "result")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self.coroutine = coroutine
        self.finished = Signal()
        self.result: T | None = None
        self.error: Exception | None = None
        self.fds: tuple[int, ...] = ()
        self.deadline = _NEVER  # of the wait it is in
        self.armed = _NEVER  # of its entry among the loop's deadlines, kept from wait to wait

    @property
    def done(self) -> bool:
        return self.finished.is_set

    def value(self) -> T:
        """The result; raises the error where there is one."""
        if self.error is not None:
            raise self.error
        assert self.done
        return self.result  # type: ignore[return-value]


class Loop:
    """Runs tasks until all are done."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: deque[tuple[Task[Any], Exception | None]] = deque()
        self._waiting: dict[int, Task[Any]] = {}
        self._deadlines: list[tuple[float, int, Task[Any]]] = []
        self._order = 0
        self._open = 0
        self._current: Task[Any]

    def close(self) -> None:
        self._epoll.close()

    def watch(self, sock: socket.socket) -> None:
        """Make `sock` one that can be waited for: until something can be read, or it is closed."""
        sock.setblocking(False)
        self._epoll.register(sock.fileno(), _READ)

    def watch_writing(self, sock: socket.socket, wanted: bool) -> None:
        """Whether waiting for `sock` also ends when it can be written: every acknowledgement "
        "would wake us."""
        self._epoll.modify(sock.fileno(), _WRITE if wanted else _READ)

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        task = Task(coroutine)
        self._open += 1
        self._ready.append((task, None))
        return task

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine, and what it spawned, to the end."""
        task = self.spawn(coroutine)
        self.run_all()
        return task.value()

    def run_all(self) -> None:
        """Until every task is done."""
        while self._open:
            for _ in range(len(self._ready)):
                task, error = self._ready.popleft()
                self._step(task, error)
            if self._open:
                self._wait()

    @types.coroutine
    def wait(self, socks: Iterable[socket.socket], deadline: float) -> Generator[None, None, None]:
        """Until something happens on one of `socks`, all watched; TimeoutError at `deadline` "
        "(monotonic, s)."""
        task = self._current
        task.fds = tuple(sock.fileno() for sock in socks)
        for fd in task.fds:
            self._waiting[fd] = task
        self._arm(task, deadline)
        yield

    @types.coroutine
    def pause(self, seconds: float) -> Generator[None, None, None]:
        """Let `seconds` pass; 0 lets the others go first."""
        task = self._current
        if seconds <= 0:
            self._ready.append((task, None))
        else:
            task.fds = ()
            self._arm(task, monotonic() + seconds)
        try:
            yield
        except TimeoutError:
            if seconds <= 0:
                raise

    @types.coroutine
    def until(self, signal: Signal, deadline: float = _NEVER) -> Generator[None, None, None]:
        """Until `signal` is set; TimeoutError at `deadline`."""
        if not signal.is_set:
            task = self._current
            signal.waiting.append(task)
            self._arm(task, deadline)
            try:
                yield
            except TimeoutError:
                signal.waiting.remove(task)
                raise

    def set(self, signal: Signal) -> None:
        """Let those go on that wait for `signal`."""
        if not signal.is_set:
            signal.is_set = True
            for task in signal.waiting:
                if not task.done:
                    self._release(task)
                    self._ready.append((task, None))
            signal.waiting.clear()

    def cancel(self, task: Task[Any]) -> None:
        """End a task where it stands."""
        if not task.done:
            self._release(task)
            task.coroutine.close()
            self._end(task)

    def _arm(self, task: Task[Any], deadline: float) -> None:
        task.deadline = deadline
        if task.armed != deadline and deadline != _NEVER:
            task.armed = deadline
            self._order += 1
            heapq.heappush(self._deadlines, (deadline, self._order, task))

    def _step(self, task: Task[Any], error: Exception | None) -> None:
        if task.done:
            return  # cancelled after it was woken
        self._current = task
        try:
            if error is None:
                task.coroutine.send(None)
            else:
                task.coroutine.throw(error)
            return
        except StopIteration as stop:
            task.result = stop.value
        except Exception as failure:  # handed to whoever asks for the task's value
            task.error = failure
        self._end(task)

    def _end(self, task: Task[Any]) -> None:
        self._open -= 1
        self.set(task.finished)

    def _wait(self) -> None:
        timeout = 0.0
        if not self._ready:
            while self._deadlines and self._is_stale(self._deadlines[0]):
                self._disarm(heapq.heappop(self._deadlines))
            timeout = max(0.0, self._deadlines[0][0] - monotonic()) if self._deadlines else -1
        waiting, ready = self._waiting, self._ready
        for fd, _ in self._epoll.poll(timeout if timeout < 0 else min(timeout + 0.0005, 60.0), 4096):
            task = waiting.get(fd)
            if task is not None:
                self._release(task)
                ready.append((task, None))
        now = monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            entry = heapq.heappop(self._deadlines)
            self._disarm(entry)
            if not self._is_stale(entry):
                self._release(entry[2])
                ready.append((entry[2], TimeoutError()))

    @staticmethod
    def _disarm(entry: tuple[float, int, Task[Any]]) -> None:
        if entry[2].armed == entry[0]:
            entry[2].armed = _NEVER

    def _is_stale(self, entry: tuple[float, int, Task[Any]]) -> bool:
        deadline, _, task = entry
        return task.done or task.deadline != deadline

    def _release(self, task: Task[Any]) -> None:
        for fd in task.fds:
            self._waiting.pop(fd, None)
        task.fds = ()
        task.deadline = _NEVER
