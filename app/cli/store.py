"""`rankscope store`: look after a store: make it smaller, copy it, put a copy back, forget old runs."""

import argparse
from pathlib import Path

NAME = "store"
HELP = "compact, back up, restore a store, or forget old runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("compact", "write the file anew without what was deleted"),
        ("backup", "copy the store to a file"),
        ("restore", "put a copy in the store's place"),
        ("expire", "forget runs that began long ago"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
        if name in ("backup", "restore"):
            action.add_argument("file", type=Path, help="the copy")
        if name == "expire":
            action.add_argument("--older-than", type=float, required=True, metavar="DAYS")


def run(args: argparse.Namespace) -> int:
    from rankscope.ingest import upkeep
    from rankscope.ingest.places import default_url

    store = args.store or default_url()
    if args.action == "compact":
        before, after = upkeep.compact(store)
        print(f"{store}: {before / 1e6:.1f} MB, now {after / 1e6:.1f} MB")
    elif args.action == "backup":
        upkeep.backup(store, args.file)
        print(f"{args.file}: a copy of {store}")
    elif args.action == "restore":
        upkeep.restore(store, args.file)
        print(f"{store}: restored from {args.file}")
    else:
        gone = upkeep.expire(store, args.older_than)
        print(f"{store}: forgot {len(gone)} runs{': ' + ', '.join(gone) if gone else ''}")
    return 0
