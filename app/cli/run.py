"""`rankscope run`: record a command and all ranks that it starts, with no change to their code."""

import argparse
import os
from pathlib import Path

from rankscope.ingest.errors import UserError
from rankscope.ingest.places import spool_of

NAME = "run"
HELP = "record a launcher (torchrun, python, a shell script) and all its ranks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run", help="name of the run (default: $RANKSCOPE_RUN, else made from time and host)"
    )
    parser.add_argument("--spool", type=Path, help="folder to record into, on this host's own disk")
    parser.add_argument("--store", help="store that the run is meant for: its spool lies beside it")
    parser.add_argument(
        "cmd", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command with its arguments"
    )


def run(args: argparse.Namespace) -> int:
    """Returns the exit status of the command."""
    command = args.cmd[1:] if args.cmd[:1] == ["--"] else args.cmd
    if not command:
        raise UserError("say what to run: rankscope run -- torchrun --nproc-per-node 4 train.py", status=2)
    if os.environ.get("RANKSCOPE") == "0":
        return _run_unwatched(command)
    from rankscope.ingest.identity import Identity, safe_name
    from rankscope.ingest.launcher.launch import launch

    name = safe_name(args.run) if args.run else Identity.of_this_process().run_id
    return launch(command, name, args.spool if args.spool is not None else spool_of(args.store))


def _run_unwatched(command: list[str]) -> int:
    try:
        os.execvp(command[0], command)
    except FileNotFoundError as error:
        raise UserError(f"there is no command {command[0]!r} to run", status=127) from error
