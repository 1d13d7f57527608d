"""What a launcher knows of a failure, as records: exits, error files, the kind of failure they speak of."""

import json
import re
import signal
from pathlib import Path
from typing import Any, Final

from rankscope.ingest.launcher.exits import Exit, signal_name
from rankscope.ingest.recorder import Recorder
from rankscope.ingest.vocabulary import FailureKind, SignalKind

_MAX_FILE_BYTES: Final = 1_000_000
# First match wins; patterns on "TypeName: message".
_KINDS: Final = (
    (FailureKind.OUT_OF_MEMORY, r"OutOfMemoryError|out of memory|MemoryError|Cannot allocate memory"),
    (FailureKind.HARDWARE, r"uncorrectable ECC|CUDA error: (an illegal|unspecified|device-side)|NVLink|Xid"),
    (FailureKind.HANG, r"[Ww]atchdog caught collective|[Tt]imed out|[Tt]imeout|DistStoreError"),
    (
        FailureKind.NETWORK,
        r"Connection (closed|reset|refused)|Broken pipe|gloo/transport|NCCL error|Dist(Backend|Network)Error",
    ),
    (FailureKind.STORAGE, r"No space left|Stale file handle|Read-only file system|Input/output error"),
)


def kind_of(text: str) -> FailureKind:
    """The kind of failure that an exception's type and message speak of."""
    for kind, pattern in _KINDS:
        if re.search(pattern, text):
            return kind
    return FailureKind.EXCEPTION


def record_exit(
    recorder: Recorder,
    exit_: Exit,
    *,
    rank: int | None,
    restart_count: int | None = None,
    ended_by_launcher: bool = False,
    **attrs: Any,
) -> None:
    """A process ended; unless all was well, that is a signal too."""
    common: dict[str, Any] = {"pid": exit_.pid, "exit_code": exit_.code, **attrs}
    if restart_count is not None:
        common["restart_count"] = restart_count
    recorder.event(
        "process_exit",
        rank=-1 if rank is None else rank,
        time_ns=exit_.time_ns,
        observer="launcher",
        **common,
    )
    if exit_.code is None or exit_.code == 0:
        return  # all was well, or nobody can say that it was not
    if exit_.code < 0:
        common["signal"] = signal_name(-exit_.code)
    if ended_by_launcher:
        common["ended_by"] = "launcher"
    who = f"process {exit_.pid}" if rank is None else f"rank {rank} (process {exit_.pid})"
    by = " after the launcher told it to end" if ended_by_launcher else ""
    recorder.signal(
        SignalKind.EXIT, _exit_kind(exit_, ended_by_launcher), f"{who} {exit_}{by}", rank=rank,
        observer="launcher", **{**common, "time_ns": exit_.time_ns},
    )  # fmt: skip


def record_error_file(recorder: Recorder, path: Path, *, rank: int, restart_count: int) -> bool:
    """What a worker wrote of its own end with torchelastic's @record; False when there is nothing to read."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_FILE_BYTES))
        message = content["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # no file: it was killed, or is not decorated; half a file: it was killed while writing
    extra: dict[str, Any] = {}
    if isinstance(message, dict):
        extra = message.get("extraInfo") or {}
        message = message.get("message", "")
    columns: dict[str, Any] = {"observer": "rank", "path": str(path), "restart_count": restart_count}
    columns["time_ns"] = _written_ns(path, extra.get("timestamp"))
    if "py_callstack" in extra:
        columns["traceback"] = str(extra["py_callstack"])[-4000:]
    recorder.signal(SignalKind.ERROR_FILE, kind_of(str(message)), str(message), rank=rank, **columns)
    return True


def _written_ns(path: Path, stamp: object) -> int:
    """When the worker wrote it: its own stamp has whole seconds, the file.s time is finer if they agree."""
    modified_ns = path.stat().st_mtime_ns
    try:
        stamped_ns = int(float(str(stamp)) * 1e9)
    except ValueError:
        return modified_ns
    return modified_ns if 0 <= modified_ns - stamped_ns < 2_000_000_000 else stamped_ns


def _exit_kind(exit_: Exit, ended_by_launcher: bool) -> FailureKind | None:
    if ended_by_launcher:
        return None  # what ended it is not its own failure
    if exit_.code is not None and -exit_.code in (signal.SIGTERM, signal.SIGINT):
        return FailureKind.PLANNED
    return FailureKind.CRASH
