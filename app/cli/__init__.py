"""The command line: `rankscope COMMAND`, one file a command.

A command's module has NAME, HELP, add_arguments(parser) and run(args) -> exit status. What is heavy is
imported inside run(), so that `rankscope run` stays light.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from rankscope import __version__
from rankscope.ingest.errors import UserError

# Modules of this package, in the order of the help text.
COMMANDS = (
    "run",
    "demo",
    "dash",
    "collect",
    "report",
    "runs",
    "compare",
    "sql",
    "store",
    "emulate",
    "doctor",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns 0 done, 1 not there or failed, 2 wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="rankscope", description="Where did the GPU-hours of a training run go?"
    )
    parser.add_argument("--version", action="version", version=f"rankscope {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    # Only the command that was named is imported; all of them where their help is wanted.
    for name in words[:1] if words[:1] and words[0] in COMMANDS else COMMANDS:
        module = importlib.import_module(f"rankscope.app.cli.{name}")
        sub = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(sub)
        sub.set_defaults(handler=module.run)
    args = parser.parse_args(words)
    try:
        return int(args.handler(args))
    except UserError as error:
        print(f"rankscope {args.command}: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        return 0  # the reader of our output left (`| head`)


if __name__ == "__main__":
    sys.exit(main())
