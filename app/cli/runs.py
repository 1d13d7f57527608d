"""`rankscope runs`: all runs of a store, oldest first."""

import argparse

NAME = "runs"
HELP = "list the runs of a store, oldest first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def run(args: argparse.Namespace) -> int:
    import json

    from rankscope.analytics.report import list_runs
    from rankscope.app.opening import open_store

    with open_store(args.store) as store:
        found = list_runs(store)
    if args.json:
        print(json.dumps(found, indent=2, allow_nan=False))
    elif not found:
        print("no runs yet: record one with `rankscope run -- CMD`, or see one with `rankscope demo`")
    else:
        from rich.console import Console

        from rankscope.app.terminal import runs_table

        console = Console()
        console.print(runs_table(found, console.width))
    return 0
