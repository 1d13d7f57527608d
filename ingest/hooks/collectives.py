"""One collective under way: published before it starts, ended when it is complete or has failed.

Shared by all hooks that see collectives. What is complete is learnt from the return of a synchronous call,
from the future of an asynchronous one, or, where a backend has no futures for it, from Work.wait.
"""

import functools
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from rankscope.ingest.hooks.groups import Group
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.signatures import signature
from rankscope.ingest.launcher.failures import kind_of
from rankscope.ingest.layout import Flag
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import FailureKind, InitPhase, SignalKind, SpanCategory

if TYPE_CHECKING:
    from rankscope.ingest.hooks.cuda import DeviceTimer

_P2P, _ERROR = int(Flag.P2P), int(Flag.ERROR)
MAX_SIGNALS: Final = 8  # a broken group fails every call from then on; the first ones tell
MAX_WAITED: Final = 4096

guard = Guard("distributed")


class _Thread(threading.local):
    busy = False  # within a collective that is recorded: those it calls are part of it


thread = _Thread()
_told = 0
_waited: dict[int, tuple[Any, "Call"]] = {}  # id of a Work -> itself, so that the id stays its own


class Call:
    """A collective that has been published."""

    __slots__ = ("first", "group", "op", "recorder", "since_ns", "token")

    def __init__(
        self,
        recorder: Recorder,
        group: Group,
        op: str,
        size_bytes: int,
        text: str,
        flags: int,
        peer: int = -1,
    ) -> None:
        self.recorder = recorder
        self.group = group
        self.op = op
        self.since_ns = 0
        self.first: Any = None  # on a GPU: the event recorded before it
        if flags & _P2P:
            seq = next(group.messages[op.removeprefix("i"), peer])
        else:
            seq = next(group.sequence)
            if not group.used:
                group.used = True
                self.since_ns = time.time_ns()
        self.token = recorder.collective_begin(op, group.name, seq, size_bytes, text, flags, peer)

    def on_device(self) -> None:
        """It will run on a GPU: the device, not the host, tells when it is complete."""
        self.first = device_timer().before()

    def done(self) -> None:
        """As far as the host can tell, it is complete."""
        if self.first is None:
            self.end()
        else:
            device_timer().after(self, self.first)

    def end(self) -> None:
        """It is complete."""
        self.recorder.collective_end(self.token)
        if self.since_ns:
            self.recorder.past_span(
                SpanCategory.INIT, InitPhase.COMMUNICATOR, self.since_ns, time.time_ns(), pg=self.group.name
            )

    def fail(self, error: BaseException) -> None:
        """It failed: for this process, a first sign of what happened to another."""
        global _told
        self.recorder.collective_end(self.token, _ERROR)
        if _told < MAX_SIGNALS and isinstance(error, Exception):
            _told += 1
            kind = kind_of(f"{type(error).__name__}: {error}")
            self.recorder.signal(
                SignalKind.COLLECTIVE_ERROR, None if kind is FailureKind.EXCEPTION else kind,
                f"{self.op} on group {self.group.name} failed: {error}",
                pg=self.group.name, op=self.op, seq=self.token[4], step=self.recorder.step_number,
            )  # fmt: skip
            flush_ring(self.recorder)

    def end_with(self, work: Any) -> None:
        """End when `work` is done."""
        try:
            future = work.get_future()
        except RuntimeError:  # gloo's send and receive have none
            if len(_waited) >= MAX_WAITED:
                _waited.pop(next(iter(_waited)))[1].end()  # nobody waits for it
            _waited[id(work)] = (work, self)
            return
        future.add_done_callback(self._done)

    def _done(self, future: Any) -> None:
        with guard:
            try:
                future.value()
            except Exception as error:
                self.fail(error)
            else:
                self.done()


@functools.cache
def device_timer() -> "DeviceTimer":
    """The one timer of this process."""
    import torch

    from rankscope.ingest.hooks.cuda import DeviceTimer

    return DeviceTimer(torch.cuda)


def flush_ring(recorder: Recorder) -> None:
    """Something failed: what is only in the ring becomes worth keeping."""
    flush = getattr(recorder, "flush_ring", None)
    if flush is not None:
        flush()


def text_of(frame: FrameType | None, measured: tuple[int, Any, Any, int]) -> str:
    """The signature of what measure() measured."""
    return signature(frame, measured[1], measured[2], measured[3])


def watch_wait(work_class: Any) -> None:
    """Learn from Work.wait what no future tells."""
    original = work_class.wait

    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = _waited.pop(id(self), None) if _waited else None
        if call is None:
            return original(self, *args, **kwargs)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            with guard:
                call[1].fail(error)
            raise
        with guard:
            call[1].end()
        return result

    wait.__doc__ = original.__doc__
    work_class.wait = wait
