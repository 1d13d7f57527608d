"""The phases of a rank's start-up, put together from what the other hooks see.

import: from our first line until torch.distributed, or a first optimizer, is used · model: from the end of
init_process_group until the last module is wrapped or optimizer made, before data or a checkpoint is read ·
first_batch: the first wait for data.
"""

import time

from rankscope.ingest import hooks
from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import InitPhase, SpanCategory

_guard = Guard("startup")


class Startup:
    """What has been seen of this process' start; every method may be called at any time."""

    def __init__(self) -> None:
        self.began_ns = hooks.began_ns
        self.imported = False
        self.started = False  # past the first batch
        self._since_ns: int | None = None  # end of the phase before the model's
        self._built_ns: int | None = None  # last sign of a model being made

    def uses_torch(self, recorder: Recorder) -> None:
        """torch's own work begins: imports are over."""
        if self.imported:
            return
        self.imported = True
        now = time.time_ns()
        self._since_ns = now
        recorder.past_span(SpanCategory.INIT, InitPhase.IMPORT, self.began_ns, now)
        with _guard:
            describe_software(recorder)

    def connected(self) -> None:
        """Process groups are there: what follows makes the model."""
        if self._built_ns is None:
            self._since_ns = time.time_ns()

    def built(self, recorder: Recorder) -> None:
        """A module was wrapped, or an optimizer made."""
        self.uses_torch(recorder)
        self._built_ns = time.time_ns()

    def reads(self, recorder: Recorder) -> None:
        """A checkpoint or data are about to be read: the model is there."""
        if self._built_ns is not None and self._since_ns is not None and self._built_ns > self._since_ns:
            recorder.past_span(SpanCategory.INIT, InitPhase.MODEL, self._since_ns, self._built_ns)
            self._since_ns = None

    def loaded(self, recorder: Recorder, began_ns: int) -> None:
        """A checkpoint was read."""
        if not self.started:
            recorder.past_span(SpanCategory.INIT, InitPhase.CHECKPOINT_LOAD, began_ns, time.time_ns())

    def got_batch(self, recorder: Recorder, began_ns: int) -> None:
        """Data came: start-up ends with the first of it."""
        if not self.started:
            self.started = True
            recorder.past_span(SpanCategory.INIT, InitPhase.FIRST_BATCH, began_ns, time.time_ns())


startup = Startup()


def describe_software(recorder: Recorder) -> None:
    """Tell the run's framework and device, as far as they are known without making a CUDA context."""
    import torch

    device = "cpu"
    if torch.cuda.is_available():
        index = int(recorder.identity.local_rank or 0)
        count = torch.cuda.device_count()
        device = f"cuda {torch.cuda.get_device_name(index if index < count else 0)}"
        recorder.event("rank_update", device=f"cuda:{index}")
    recorder.event("run_update", framework=f"torch {torch.__version__}", device_kind=device)
