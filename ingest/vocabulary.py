"""The words that records use, in one place: what DESIGN calls the vocabulary, as enums.

Recorder, importers, views and pages all take their names from here, so that a category is spelt once.
"""

from enum import StrEnum


class SpanCategory(StrEnum):
    """What a span's time was spent on. The time ledger maps each to one of its own categories."""

    INIT = "init"  # a start-up phase; name is one of InitPhase
    STEP = "step"  # one optimizer step
    DATA_WAIT = "data_wait"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    CHECKPOINT_SAVE = "checkpoint_save"
    CHECKPOINT_LOAD = "checkpoint_load"
    EVAL = "eval"
    QUORUM = "quorum"
    RECONFIGURE = "reconfigure"
    HEAL = "heal"
    RESTART = "restart"  # launcher: from deciding to restart until the new workers are spawned
    USER = "user"  # a span the trainer's owner named


class InitPhase(StrEnum):
    """Start-up phases in their usual order; names of spans of category init."""

    SPAWN = "spawn"  # process started -> interpreter runs our first line
    IMPORT = "import"  # first line -> torch.distributed is about to be used
    RENDEZVOUS = "rendezvous"
    STORE = "store"  # connect to the TCPStore
    PROCESS_GROUP = "process_group"  # init_process_group, each new_group
    COMMUNICATOR = "communicator"  # first use of a group
    MODEL = "model"
    CHECKPOINT_LOAD = "checkpoint_load"
    FIRST_BATCH = "first_batch"
    FIRST_STEP = "first_step"


class SignalKind(StrEnum):
    """Kinds of failure evidence."""

    EXIT = "exit"  # a process ended: exit code or signal number in attrs
    EXCEPTION = "exception"  # Python exception seen by a rank itself
    ERROR_FILE = "error_file"  # torchelastic error.json
    WATCHDOG = "watchdog"  # collective watchdog time-out
    COLLECTIVE_ERROR = "collective_error"  # a survivor's collective failed under it
    FLIGHT_RECORDER = "flight_recorder"
    NCCL_WARN = "nccl_warn"
    XID = "xid"
    HEARTBEAT = "heartbeat"  # missed sign of life
    SILENCE = "silence"  # nothing at all from a rank
    QUORUM = "quorum"  # membership changed
    LAUNCHER = "launcher"  # the launcher's own report
    INJECTED = "injected"  # truth written by a fault injector: never used by a verdict


class FailureKind(StrEnum):
    """The one list of what can go wrong."""

    CRASH = "crash"
    OUT_OF_MEMORY = "out_of_memory"
    EXCEPTION = "exception"
    HANG = "hang"
    MISSING_RANK = "missing_rank"
    TYPE_MISMATCH = "type_mismatch"
    SIZE_MISMATCH = "size_mismatch"
    DTYPE_MISMATCH = "dtype_mismatch"
    SLOW_RANK = "slow_rank"
    NETWORK = "network"
    STORE = "store"
    DATA = "data"
    STORAGE = "storage"
    HARDWARE = "hardware"
    LAUNCHER = "launcher"
    COORDINATOR = "coordinator"
    PLANNED = "planned"
    UNKNOWN = "unknown"


class LedgerCategory(StrEnum):
    """Where a planned rank's nanosecond went; where several apply, the first wins."""

    QUEUE = "queue"
    ABSENT = "absent"
    RESTART = "restart"
    DETECT = "detect"
    QUORUM = "quorum"
    RECONFIGURE = "reconfigure"
    HEAL = "heal"
    LOST = "lost"
    INIT = "init"
    CHECKPOINT = "checkpoint"
    EVAL = "eval"
    DATA_WAIT = "data_wait"
    STRAGGLER_WAIT = "straggler_wait"
    STALL = "stall"
    PRODUCTIVE = "productive"
    UNEXPLAINED = "unexplained"
