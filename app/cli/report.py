"""`rankscope report`: the verdict on one run, in one screen or as JSON."""

import argparse

NAME = "report"
HELP = "the verdict on one run: start-up, failures, and where its time went"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", default="latest", help="its id (default: latest)")
    parser.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def run(args: argparse.Namespace) -> int:
    import json

    from rankscope.analytics.report import build_report
    from rankscope.app.opening import open_store

    with open_store(args.store) as store:
        report = build_report(store, args.run)
    if args.json:
        print(json.dumps(report, indent=2, allow_nan=False))
    else:
        from rich.console import Console

        from rankscope.app.terminal import report_screen

        Console().print(report_screen(report))
    return 0
