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
import itertools
import json
import os
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from rankscope.ingest.clock import Pulse
from rankscope.ingest.identity import Identity
from rankscope.ingest.layout import NO_STEP, Flag, Kind
from rankscope.ingest.segment import SegmentWriter
from rankscope.ingest.vocabulary import InitPhase, SpanCategory

T = TypeVar("T")
P = ParamSpec("P")
_now = time.monotonic_ns
_bits = struct.Struct("<d")
_as_integer = struct.Struct("<q")


class Recorder:
    """One process' recorder; get it from `rankscope.init()`. All methods may be called from any thread."""

    def __init__(self, writer: SegmentWriter | None, identity: Identity) -> None:
        """Not for callers: see `init`. Without a writer it records nothing."""
        self.identity = identity
        self.enabled = writer is not None
        self.step_number = NO_STEP  # of the open step, or of the one about to begin
        self.explicit_steps = False  # the trainer calls step() itself
        self._writer = writer
        self._pulse = Pulse(writer, lambda: self.step_number) if writer is not None else None
        self._threads: dict[int, int] = {}
        self._thread_numbers = itertools.count(1)
        self._to_wall = time.time_ns() - time.monotonic_ns()

    # --- spans and steps ---------------------------------------------------------------------------------

    def span(self, category: str, name: str = "", step: int | None = None, **attrs: Any) -> "Span":
        """Something with a begin and an end, as context manager or decorator. See SpanCategory."""
        return Span(self, str(category), name, step, attrs)

    def step(self, number: int | None = None) -> "Step":
        """One optimizer step; without a number, the one after the last."""
        self.explicit_steps = True
        if number is None:
            number = self.step_number if self.step_number != NO_STEP else 0
        return Step(self, number)

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

    def begin(
        self, category: str, name: str = "", step: int | None = None, attrs: dict[str, Any] | None = None
    ) -> tuple[int, int, int, int, int, int]:
        """Begin a span by hand; hand the token to `end`."""
        writer = self._writer
        if writer is None:
            return (0, -1, 0, 0, NO_STEP, 0)
        name_id, category_id = writer.intern(name), writer.intern(category)
        attr_id = writer.intern(json.dumps(attrs, default=str)) if attrs else 0
        number = self._step_of(step)
        t = _now()
        slot = writer.record(
            Kind.SPAN_BEGIN, t, name=name_id, pg=category_id, step=number, attr=attr_id, tag=self._thread()
        )
        return (t, slot, name_id, category_id, number, attr_id)

    def end(self, token: tuple[int, int, int, int, int, int], flags: int = 0) -> None:
        """End a span that `begin` began."""
        if self._writer is not None:
            t, slot, name_id, category_id, number, attr_id = token
            self._writer.record(
                Kind.SPAN_END, _now(), a=t, b=slot, name=name_id, pg=category_id, step=number, attr=attr_id,
                tag=self._thread(), flags=flags,
            )  # fmt: skip

    def past_span(
        self, category: str, name: str, begin_ns: int, end_ns: int, step: int | None = None, **attrs: Any
    ) -> None:
        """A span that is over already; times in ns since the epoch."""
        writer = self._writer
        if writer is not None:
            attr_id = writer.intern(json.dumps(attrs, default=str)) if attrs else 0
            writer.record(
                Kind.SPAN_END, max(end_ns - self._to_wall, 0), a=max(begin_ns - self._to_wall, 0), b=-1,
                name=writer.intern(name), pg=writer.intern(str(category)), step=self._step_of(step, False),
                attr=attr_id,
            )  # fmt: skip

    # --- collectives -------------------------------------------------------------------------------------

    def collective_begin(
        self,
        op: str,
        pg: str,
        seq: int,
        size_bytes: int = 0,
        signature: str = "",
        flags: int = 0,
        peer: int = -1,
    ) -> tuple[int, int, int, int, int, int, int, int, int]:
        """Publish a collective before it starts; hand the token to `collective_end`.

        Args:
            seq: its position in the group `pg`, from 0.
            signature: 'dtype|sizes|site'.
            flags: of layout.Flag: ASYNC, P2P.
        """
        writer = self._writer
        if writer is None:
            return (0, -1, 0, 0, 0, 0, 0, NO_STEP, 0)
        op_id, pg_id, attr_id = writer.intern(op), writer.intern(pg), writer.intern(signature)
        number = self.step_number
        t = _now()
        slot = writer.record(
            Kind.COLL_BEGIN, t, a=seq, b=size_bytes, c=peer, name=op_id, pg=pg_id, step=number, attr=attr_id,
            tag=self._thread(), flags=flags,
        )  # fmt: skip
        return (t, slot, op_id, pg_id, seq, size_bytes, attr_id, number, flags)

    def collective_end(
        self, token: tuple[int, int, int, int, int, int, int, int, int], flags: int = 0
    ) -> None:
        """The collective completed (or failed: Flag.ERROR)."""
        if self._writer is not None:
            t, slot, op_id, pg_id, seq, size_bytes, attr_id, number, begun_flags = token
            self._writer.record(
                Kind.COLL_END, _now(), a=seq, b=size_bytes, c=t, d=slot, name=op_id, pg=pg_id, step=number,
                attr=attr_id, tag=self._thread(), flags=begun_flags | flags,
            )  # fmt: skip

    # --- rare records ------------------------------------------------------------------------------------

    def scalar(self, name: str, value: float, step: int | None = None) -> None:
        """A number of a step: loss, tokens, MFU."""
        writer = self._writer
        if writer is None:
            return
        try:
            bits = _as_integer.unpack(_bits.pack(value))[0]
        except (struct.error, TypeError):
            self._count_drop()
            return
        writer.record(Kind.SCALAR, _now(), a=bits, name=writer.intern(name), step=self._step_of(step))

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
            message=message[:4000], rank=self.identity.rank if rank is None else rank,
            **{"time_ns": now, "observed_ns": now, "host": self.identity.host, **attrs},
        )  # fmt: skip

    def process_group(
        self, name: str, ranks: list[int], backend: str = "", description: str = "", **attrs: Any
    ) -> None:
        """A process group with its ordered members, as global ranks."""
        self.event(
            "process_group", pg=name, ranks=list(ranks), backend=backend, description=description,
            created_ns=time.time_ns(), **attrs,
        )  # fmt: skip

    def event(self, type: str, **columns: Any) -> None:
        """A rare record for a table of the schema; *_ns columns in ns since the epoch."""
        if self._writer is not None:
            self._writer.event({"type": type, **columns})

    def close(self) -> None:
        """The orderly end: nothing more will come."""
        if self._pulse is not None:
            self._pulse.stop()
        if self._writer is not None:
            self._writer.close()
        self._writer = None
        self.enabled = False

    @property
    def dropped(self) -> int:
        """Records that could not be written."""
        return self._writer.dropped if self._writer is not None else 0

    # --- inside ------------------------------------------------------------------------------------------

    def _step_of(self, step: int | None, default: bool = True) -> int:
        if step is not None:
            return step if -(2**31) <= step < 2**31 else NO_STEP
        return self.step_number if default else NO_STEP

    def _thread(self) -> int:
        ident = threading.get_ident()
        number = self._threads.get(ident)
        if number is None:
            main = ident == threading.main_thread().ident
            number = 0 if main else next(self._thread_numbers) & 0xFFFF
            if len(self._threads) < 4096:
                self._threads[ident] = number
        return number

    def _count_drop(self) -> None:
        if self._writer is not None:
            self._writer.dropped += 1

    def _forked(self) -> None:
        """A forked child is not this rank: it stays silent."""
        if self._writer is not None:
            self._writer.abandon()
        self._writer = None
        self._pulse = None
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
        self._recorder.end(self._token, Flag.ERROR if kind is not None and kind is not StopIteration else 0)


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
        self._token = self._recorder.begin(SpanCategory.STEP, step=self.number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        flags = Flag.NOT_COMMITTED | Flag.ERROR if kind is not None else (
            Flag.COMMITTED if self._committed else Flag.NOT_COMMITTED
        )  # fmt: skip
        self._recorder.end(self._token, flags)
        self._recorder.step_number = self.number + 1 if flags == Flag.COMMITTED else self.number


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
    from rankscope.ingest.places import spool_of

    identity = Identity.of_this_process(run, **overrides)
    owner = os.environ.get("RANKSCOPE_PID", "")
    if os.environ.get("RANKSCOPE") == "0" or (owner and owner != str(os.getpid())):
        return Recorder(None, identity)  # switched off, or a child of a process that records
    folder = Path(spool) if spool is not None else spool_of()
    try:
        writer = SegmentWriter(folder / identity.run_id, identity.stem, identity.as_json())
    except OSError as error:
        print(f"rankscope: not recording, cannot write to {folder}: {error.strerror}", file=sys.stderr)
        return Recorder(None, identity)
    if identity.role == "rank":
        os.environ["RANKSCOPE_PID"] = str(os.getpid())
    recorder = Recorder(writer, identity)
    if identity.role == "rank":
        now = time.time_ns()
        recorder.past_span(SpanCategory.INIT, InitPhase.SPAWN, identity.start_ns, now)
    return recorder
