"""Start a command under watch and see it through to its end."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rankscope.ingest import hooks
from rankscope.ingest.errors import UserError
from rankscope.ingest.launcher.child import block_signals, supervise
from rankscope.ingest.launcher.command import torchrun_arguments
from rankscope.ingest.launcher.environment import prepare
from rankscope.ingest.recorder import Recorder, init


def launch(command: Sequence[str], run: str, spool: Path) -> int:
    """Run `command` as part of `run`, recording to `spool`; returns its exit status.

    Raises:
        UserError: there is no such command, or the spool cannot be written.
    """
    prepare(os.environ, run, spool)
    torchrun = torchrun_arguments(command)
    if torchrun is None:
        block_signals()  # before the recorder starts its thread
    recorder = init(
        spool, run=run, hooks=False, role="launcher", rank=-1, world_size=None, local_rank=None,
        replica_group=None, command=" ".join(command),
    )  # fmt: skip
    if not recorder.enabled:
        raise UserError(f"cannot record to {spool}: give another folder with --spool")
    print(f"rankscope: recording run {run} to {spool.absolute()}", file=sys.stderr, flush=True)
    status = 1
    try:
        status = supervise(command, recorder, spool) if torchrun is None else _torchrun(torchrun)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        _end(recorder, status)
    return status


def _torchrun(arguments: list[str]) -> int:
    """torchrun in this process. Its exceptions pass: they are what torchrun itself would show."""
    hooks.install(only=("torchelastic",))
    from torch.distributed.run import main

    sys.argv = ["torchrun", *arguments]
    main(arguments)
    return 0


def _end(recorder: Recorder, status: int) -> None:
    """The launcher's last word: how the whole command ended."""
    recorder.event(
        "process_exit", rank=-1, pid=os.getpid(), time_ns=time.time_ns(), exit_code=status, observer="self"
    )
    recorder.close()
