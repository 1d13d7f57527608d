"""`rankscope compare A B`: two runs side by side."""

import argparse

NAME = "compare"
HELP = "two runs side by side: what changed, and where the time went"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="a run; 'latest' works")
    parser.add_argument("b", metavar="B", help="the run to compare it with")
    parser.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def run(args: argparse.Namespace) -> int:
    import json

    from rankscope.analytics.comparison import compare
    from rankscope.analytics.report import build_report
    from rankscope.app.opening import open_store

    with open_store(args.store) as store:
        comparison = compare(build_report(store, args.a), build_report(store, args.b))
    if args.json:
        print(json.dumps(comparison, indent=2, allow_nan=False))
    else:
        from rich.console import Console

        from rankscope.app.terminal import comparison_table

        Console().print(comparison_table(comparison))
    return 0
