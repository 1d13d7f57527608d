"""`rankscope doctor`: what works on this machine, and what to do about the rest."""

import argparse

NAME = "doctor"
HELP = "check what works on this machine, and what to do about the rest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def run(args: argparse.Namespace) -> int:
    import json

    from rankscope.app.checkup import check_all

    checks = check_all(args.store)
    if args.json:
        print(json.dumps([vars(check) for check in checks]))
    else:
        for check in checks:
            print(f"{'ok ' if check.ok else 'BAD' if check.needed else '–  '} {check.what}: {check.found}")
            if not check.ok and check.advice:
                print(f"      {check.advice}")
    return 0 if all(check.ok or not check.needed for check in checks) else 1
