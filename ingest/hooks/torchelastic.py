"""torchelastic's agent, watched from within its process: rendezvous, spawns, exits, restarts, its verdict.

The agent hides much: a failed attempt that is restarted emits no event, and its last word is SUCCEEDED even
when the job failed. So its methods are wrapped too. Names that begin with _ are private to torch and may go
away: then that part is not recorded.
"""

import functools
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.launcher.exits import Exit, ExitWatch
from rankscope.ingest.launcher.failures import record_error_file, record_exit
from rankscope.ingest.recorder import Recorder, current, init
from rankscope.ingest.vocabulary import FailureKind, InitPhase, SignalKind, SpanCategory

_guard = Guard("torchelastic")


@dataclass(frozen=True)
class Worker:
    """A worker process of one attempt, and where it would write of its own end."""

    rank: int
    local_rank: int
    restart_count: int
    error_file: Path | None


def attach(module: ModuleType) -> None:
    """Watch LocalElasticAgent of `module`."""
    agent_class = module.LocalElasticAgent
    for name, watcher in (
        ("run", _watch_run),
        ("_rendezvous", _watch_rendezvous),
        ("_start_workers", _watch_start),
        ("_restart_workers", _watch_restart),
    ):
        original = getattr(agent_class, name, None)
        if original is not None:
            setattr(agent_class, name, watcher(original))


class AgentWatch:
    """All that is kept of one agent while it runs."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.exits: ExitWatch[Worker] = ExitWatch(self._on_exit)
        self.closing_ns: dict[int, int] = {}  # restart count -> when the agent began to end its workers
        self.workers: list[Worker] = []
        self._swept: set[Path] = set()

    def started(self, agent: Any, began_ns: int) -> None:
        """The workers of an attempt have been spawned."""
        context = agent._pcontext
        restart_count = restarts_of(agent)
        ranks = {worker.local_rank: worker.global_rank for worker in agent._worker_group.workers}
        pids: dict[int, int] = context.pids()
        files = getattr(context, "error_files", {})
        self._watch_closing(context, restart_count)
        for local_rank, pid in pids.items():
            file = files.get(local_rank)
            worker = Worker(
                ranks[local_rank],
                local_rank,
                restart_count,
                Path(file) if file and file != os.devnull else None,
            )
            self.workers.append(worker)
            self.exits.add(pid, worker, functools.partial(_returncode, context, local_rank))
        self.recorder.event("run_update", planned_ranks=agent._worker_group.workers[0].world_size)
        self.span(
            SpanCategory.INIT, InitPhase.SPAWN, began_ns, restart_count,
            pids={str(ranks[local_rank]): pid for local_rank, pid in pids.items()},
        )  # fmt: skip

    def span(
        self, category: str, name: str, began_ns: int, restart_count: int, status: str = "ok", **attrs: Any
    ) -> None:
        """A span of the launcher that belongs to the attempt `restart_count`."""
        self.recorder.event(
            "span", category=str(category), name=str(name), begin_ns=began_ns, end_ns=time.time_ns(),
            thread=0, status=status, rank=-1, restart_count=restart_count, **attrs,
        )  # fmt: skip

    def stop(self) -> None:
        """The agent is done: what has not been read of error files is read now."""
        self.exits.stop()
        for worker in self.workers:
            self._sweep(worker)

    def _watch_closing(self, context: Any, restart_count: int) -> None:
        """Note when the agent ends workers itself: those are not the cause."""
        close = context._close

        def closing(*args: Any, **kwargs: Any) -> Any:
            self.closing_ns.setdefault(restart_count, time.time_ns())
            return close(*args, **kwargs)

        context._close = closing

    def _on_exit(self, worker: Worker, exit_: Exit) -> None:
        with _guard:
            closing_ns = self.closing_ns.get(worker.restart_count)
            by_launcher = closing_ns is not None and exit_.time_ns >= closing_ns and (exit_.code or 0) < 0
            record_exit(
                self.recorder, exit_, rank=worker.rank, restart_count=worker.restart_count,
                ended_by_launcher=by_launcher,
            )  # fmt: skip
            if exit_.code != 0:
                self._sweep(worker)

    def _sweep(self, worker: Worker) -> None:
        file = worker.error_file
        if (
            file is not None
            and file not in self._swept
            and record_error_file(self.recorder, file, rank=worker.rank, restart_count=worker.restart_count)
        ):
            self._swept.add(file)


_watches: dict[int, AgentWatch] = {}  # by id of the running agent


def restarts_of(agent: Any) -> int:
    """How many times this agent has restarted its workers: what they see as TORCHELASTIC_RESTART_COUNT."""
    return int(agent._worker_group.spec.max_restarts) - int(agent._remaining_restarts)


def _watch_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _guard:
            recorder = current() or init(
                hooks=False, role="launcher", rank=-1, world_size=None, local_rank=None
            )
            _watches[id(self)] = AgentWatch(recorder)
            _listen(recorder)
        try:
            return original(self, *args, **kwargs)
        finally:
            watch = _watches.pop(id(self), None)
            if watch is not None:
                with _guard:
                    watch.stop()

    return run


@contextmanager
def _spanned(agent: Any, category: str, name: str) -> Iterator[None]:
    """Record the body as a span of the attempt that it leads to."""
    began_ns = time.time_ns()
    status = "error"
    try:
        yield
        status = "ok"
    finally:
        watch = _watches.get(id(agent))
        if watch is not None and not _guard.off:
            with _guard:
                watch.span(category, name, began_ns, restarts_of(agent), status)


def _watch_rendezvous(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def rendezvous(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _spanned(self, SpanCategory.INIT, InitPhase.RENDEZVOUS):
            return original(self, *args, **kwargs)

    return rendezvous


def _watch_restart(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def restart(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _spanned(self, SpanCategory.RESTART, ""):
            return original(self, *args, **kwargs)

    return restart


def _watch_start(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start_workers(self: Any, *args: Any, **kwargs: Any) -> Any:
        began_ns = time.time_ns()
        started = original(self, *args, **kwargs)
        watch = _watches.get(id(self))
        if watch is not None and not _guard.off:
            with _guard:
                watch.started(self, began_ns)
        return started

    return start_workers


def _returncode(context: Any, local_rank: int) -> int | None:
    """What the agent itself knows of a worker's exit."""
    handlers = getattr(context, "subprocess_handlers", None)
    if handlers is not None:
        code: int | None = handlers[local_rank].proc.returncode
        return code
    processes = getattr(getattr(context, "_pc", None), "processes", None)
    return processes[local_rank].exitcode if processes is not None else None


def _listen(recorder: Recorder) -> None:
    """Hear the agent's own events too, beside whoever else listens."""
    from torch.distributed.elastic.events import handlers

    for name, existing in list(handlers._log_handlers.items()):
        if not isinstance(existing, _Listener):
            handlers._log_handlers[name] = _Listener(recorder, existing)
    for logger_name in ("null", "console", "dynamic_rendezvous"):
        logger = logging.getLogger(f"torchelastic-events-{logger_name}")
        logger.handlers = [h if isinstance(h, _Listener) else _Listener(recorder, h) for h in logger.handlers]


class _Listener(logging.Handler):
    """Takes the failures out of torchelastic's events, and hands each event on."""

    def __init__(self, recorder: Recorder, existing: logging.Handler) -> None:
        super().__init__()
        self._recorder = recorder
        self._existing = existing

    def emit(self, record: logging.LogRecord) -> None:
        with _guard:
            self._take(record)
        if not isinstance(self._existing, logging.NullHandler):
            self._existing.handle(record)

    def _take(self, record: logging.LogRecord) -> None:
        event = json.loads(record.getMessage())
        time_ns = int(record.created * 1e9)  # the event's own timestamp is always 0
        if event.get("node_state") == "FAILED":
            self._recorder.signal(
                SignalKind.LAUNCHER, FailureKind.LAUNCHER, str(event.get("message")), time_ns=time_ns,
                observer="torchelastic", traceback=str(event.get("error_trace"))[-4000:],
            )  # fmt: skip
            return
        metadata = event.get("metadata") or {}
        if metadata.get("state") != "FAILED":
            return
        rank = metadata.get("global_rank")
        self._recorder.signal(
            SignalKind.LAUNCHER, None, _what_failed(metadata), rank=rank, time_ns=time_ns,
            restart_count=metadata.get("agent_restarts"), observer="torchelastic", source=event.get("source"),
        )  # fmt: skip


def _what_failed(metadata: dict[str, Any]) -> str:
    inner = json.loads(metadata.get("metadata") or "{}")
    code = (inner.get("exit_code") or [None])[0]
    raw = str(metadata.get("raw_error") or "")
    who = "the agent" if metadata.get("global_rank") is None else f"rank {metadata['global_rank']}"
    return f"torchelastic: {who} failed" + (f", exit code {code}" if code is not None else "") + (
        f": {raw[:500]}" if raw not in ("", "null", '"<NONE>"') else ""
    )  # fmt: skip
