"""The recorder: what a rank says of itself, at about a microsecond a record, and never in its trainer's way.

    rec = rankscope.init()
    for batch in rec.data(loader):
        with rec.step():
            ...
    rec.close()

Nothing raises into the trainer. With RANKSCOPE=0, or where nothing can be written, no call does anything.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from rankscope.ingest.clock import Pulse
from rankscope.ingest.detail import Detail
from rankscope.ingest.identity import Identity
from rankscope.ingest.layout import NO_STEP, Flag, Kind
from rankscope.ingest.pen import CollectiveToken, SpanToken
from rankscope.ingest.pens import blunt_pen, describe
from rankscope.ingest.places import local_spool, spool_of
from rankscope.ingest.segment import SegmentWriter
from rankscope.ingest.vocabulary import InitPhase, SpanCategory

T = TypeVar("T")
# As plain values: an enum's members cost more to reach and to compare than a record does.
_STEP, _ERROR = str(SpanCategory.STEP), int(Flag.ERROR)
_COMMITTED, _NOT_COMMITTED = int(Flag.COMMITTED), int(Flag.NOT_COMMITTED)


class Recorder:
    """One process' recorder; get it from `rankscope.init()`. All methods may be called from any thread."""

    def __init__(
        self,
        writer: SegmentWriter | None,
        identity: Identity,
        *,
        detail: Detail | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        """Not for callers: see `init`. Without a writer it records nothing."""
        self.identity = identity
        self.enabled = writer is not None
        self.explicit_steps = False  # the trainer calls step() itself
        self._writer = writer
        self._pulse = pulse
        self._settle = detail.from_step if detail is not None and detail.needs_ring else None
        self._pen = writer.pen if writer is not None else blunt_pen()
        self._to_wall = time.time_ns() - time.monotonic_ns()
        # The pen's own methods, not ours that call them: each call less is a tenth of what a record costs.
        self.begin: Callable[..., SpanToken] = self._pen.begin
        self.end: Callable[..., None] = self._pen.end
        self.scalar: Callable[..., None] = self._pen.scalar
        self.collective_begin: Callable[..., CollectiveToken] = self._pen.collective_begin
        self.collective_end: Callable[..., None] = self._pen.collective_end
        if writer is not None:
            self._pen.step_category = writer.intern(SpanCategory.STEP)

    # --- spans and steps ---------------------------------------------------------------------------------

    @property
    def step_number(self) -> int:
        """Number of the open step, or of the one about to begin; NO_STEP before the first is known."""
        return self._pen.step

    @step_number.setter
    def step_number(self, number: int) -> None:
        try:
            self._pen.step = number if -(2**31) <= number < 2**31 else NO_STEP
        except TypeError:  # not a number
            return
        if self._settle is not None and number != NO_STEP:
            self._pen.full_until, self._settle = self._settle(number), None

    def span(self, category: str, name: str = "", step: int | None = None, **attrs: Any) -> "Span":
        """Something with a begin and an end, as context manager or decorator. See SpanCategory."""
        return Span(self, category, name, step, attrs)

    def step(self, number: int | None = None) -> "Step":
        """One optimizer step; without a number, the one after the last."""
        self.explicit_steps = True
        if number is not None:
            try:
                return Step(self, index(number))
            except TypeError:
                self._pen.drop()
        return Step(self, max(self._pen.step, 0))

    def data(self, iterable: Iterable[T]) -> Iterator[T]:
        """The items of `iterable`; waiting for each is recorded as data wait of the step about to begin."""
        iterator = iter(iterable)
        while True:
            with self.span(SpanCategory.DATA_WAIT, step=max(self.step_number, 0)):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def past_span(
        self, category: str, name: str, begin_ns: int, end_ns: int, step: int | None = None, **attrs: Any
    ) -> None:
        """A span that is over already; times in ns since the epoch."""
        writer = self._writer
        if writer is None:
            return
        try:
            attr_id = writer.intern(describe(attrs)) if attrs else 0
            writer.record(
                Kind.SPAN_END, max(end_ns - self._to_wall, 0), a=max(begin_ns - self._to_wall, 0), b=-1,
                name=writer.intern(name), pg=writer.intern(category), attr=attr_id,
                step=step if step is not None and -(2**31) <= step < 2**31 else NO_STEP,
            )  # fmt: skip
        except Exception:
            self._pen.drop()

    # --- collectives -------------------------------------------------------------------------------------

    def flush_ring(self) -> int:
        """Something failed: what is only in the ring becomes worth keeping. Returns the number of records."""
        writer = self._writer
        if writer is None or writer.ring is None:
            return 0
        try:
            self._pen.publish()
            return writer.ring.flush(writer.claim, writer.publish)
        except Exception:
            self._pen.drop()
            return 0

    # --- rare records ------------------------------------------------------------------------------------

    def signal(
        self,
        kind: str,
        failure_kind: str | None = None,
        message: str = "",
        rank: int | None = None,
        **attrs: Any,
    ) -> None:
        """One piece of failure evidence (SignalKind, FailureKind); without `rank`, about this one."""
        now = time.time_ns()
        self.event(
            "signal", kind=str(kind), failure_kind=str(failure_kind) if failure_kind else None,
            message=str(message)[:4000], rank=self.identity.rank if rank is None else rank,
            **{"time_ns": now, "observed_ns": now, "host": self.identity.host, **attrs},
        )  # fmt: skip

    def process_group(
        self, name: str, ranks: Iterable[int], backend: str = "", description: str = "", **attrs: Any
    ) -> None:
        """A process group with its ordered members, as global ranks."""
        self.event(
            "process_group", pg=name, ranks=list(ranks), backend=backend, description=description,
            **{"created_ns": time.time_ns(), **attrs},
        )  # fmt: skip

    def event(self, type: str, **columns: Any) -> None:
        """A rare record for a table of the schema; *_ns columns in ns since the epoch."""
        if self._writer is not None:
            self._writer.event({"type": type, **columns})

    def close(self) -> None:
        """The orderly end: nothing more will come."""
        writer, self._writer = self._writer, None
        if self._pulse is not None:
            self._pulse.stop()
        if writer is not None:
            self._pen.publish()
            writer.close()
        self.enabled = False

    @property
    def dropped(self) -> int:
        """Records that could not be written."""
        return self._pen.dropped

    def _forked(self) -> None:
        """A forked child is not this rank: it stays silent."""
        if self._writer is not None:
            self._writer.abandon()
        self._writer = self._pulse = None
        self.enabled = False


class Span(contextlib.ContextDecorator):
    """See Recorder.span."""

    def __init__(
        self, recorder: Recorder, category: str, name: str, step: int | None, attrs: dict[str, Any]
    ) -> None:
        self._recorder = recorder
        self._what = (category, name, step, attrs)

    def _recreate_cm(self) -> "Span":
        return Span(self._recorder, *self._what)

    def __enter__(self) -> Self:
        self._token = self._recorder.begin(*self._what)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._recorder.end(self._token, 0 if kind is None or kind is StopIteration else _ERROR)


class Step:
    """See Recorder.step; `discard()` says that its update was not applied."""

    def __init__(self, recorder: Recorder, number: int) -> None:
        self.number = number
        self._recorder = recorder
        self._committed = True

    def discard(self) -> None:
        """The optimizer's update was not applied: the step does not count as done."""
        self._committed = False

    def __enter__(self) -> Self:
        self._recorder.step_number = self.number
        self._token = self._recorder.begin(_STEP, "", self.number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._recorder.end(self._token, _NOT_COMMITTED | _ERROR)
        elif not self._committed:
            self._recorder.end(self._token, _NOT_COMMITTED)
        else:
            self._recorder.end(self._token, _COMMITTED)
            self._recorder.step_number = self.number + 1


_current: Recorder | None = None
_lock = threading.Lock()


def current() -> Recorder | None:
    """This process' recorder, or None before init()."""
    return _current


def init(
    spool: str | os.PathLike[str] | None = None,
    *,
    run: str | None = None,
    hooks: bool = True,
    **identity: Any,
) -> Recorder:
    """Begin to record this process. A second call returns the same recorder.

    Args:
        spool: folder for segment files, on the host's own disk; $RANKSCOPE_SPOOL, else rankscope.spool.
        run: name of the run; $RANKSCOPE_RUN, else made from time and host.
        hooks: watch torch.distributed, data loaders, checkpoints and optimizers without further code.
        identity: fields of Identity that are known better than the environment says, like mesh={"dp": 0}.
    """
    global _current
    with _lock:
        if _current is not None and _current.enabled:
            return _current
        _current = _open(spool, run, identity)
        if _current.enabled:
            os.register_at_fork(after_in_child=_current._forked)
            atexit.register(_current.close)
    if _current.enabled and hooks:
        from rankscope.ingest import hooks as all_hooks

        all_hooks.install(_current)
    return _current


def _open(spool: str | os.PathLike[str] | None, run: str | None, overrides: dict[str, Any]) -> Recorder:
    identity = Identity.of_this_process(run, **overrides)
    owner = os.environ.get("RANKSCOPE_PID", "")
    if os.environ.get("RANKSCOPE") == "0" or (owner and owner != str(os.getpid())):
        return Recorder(None, identity)  # switched off, or a child of a process that records
    is_rank = identity.role == "rank"
    folder = Path(spool_of() if spool is None else spool)
    detail = Detail(identity.rank, identity.world_size)
    pulse = Pulse()
    try:
        local, why = local_spool(folder)
        writer = SegmentWriter(local / identity.run_id, identity.stem, identity.as_json(), wake=pulse.wake)
        if is_rank and detail.needs_ring:
            writer.add_ring()
    except OSError as error:
        _tell(identity, f"not recording, cannot write to {folder}: {error.strerror or error}")
        return Recorder(None, identity)
    if why:
        _tell(identity, f"{folder} is on {why}: recording to {local} instead; collect that spool")
    if is_rank:
        os.environ["RANKSCOPE_PID"] = str(os.getpid())
    recorder = Recorder(writer, identity, detail=detail, pulse=pulse)
    pulse.start(writer)
    if is_rank:
        recorder.past_span(SpanCategory.INIT, InitPhase.SPAWN, identity.start_ns, time.time_ns())
    return recorder


def _tell(identity: Identity, what: str) -> None:
    """One line a host, not one a rank."""
    if not identity.local_rank:
        print(f"rankscope: {what}", file=sys.stderr)
