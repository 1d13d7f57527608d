"""What kind of command somebody wants to run."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

_LAUNCHER = "torch.distributed.run"


def torchrun_arguments(command: Sequence[str]) -> list[str] | None:
    """Arguments of torchrun, when `command` is torchrun of this very interpreter; else None.

    torchrun of another environment is no less watched: there, the hooks attach to it as a child.
    """
    program = shutil.which(command[0])
    if program is None:
        return None
    here = Path(sys.executable).absolute().parent
    if Path(command[0]).name == "torchrun":
        return list(command[1:]) if _interpreter_of(Path(program)).parent == here else None
    if list(command[1:3]) == ["-m", _LAUNCHER] and Path(program).absolute().parent == here:
        return list(command[3:])
    return None


def _interpreter_of(script: Path) -> Path:
    """The program that the first line of a script names."""
    try:
        with script.open("rb") as file:
            first = file.readline(1024).decode(errors="replace")
    except OSError:
        return Path()
    return Path(first.removeprefix("#!").strip().split(" ")[0]) if first.startswith("#!") else Path()
