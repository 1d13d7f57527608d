"""`rankscope collect`: read a spool into a store, without a dashboard."""

import argparse
from pathlib import Path

from rankscope.ingest.errors import UserError

NAME = "collect"
HELP = "read the segments of a spool into a store, until stopped or once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
    parser.add_argument("--spool", type=Path, help="default: $RANKSCOPE_SPOOL, else the folder of the store")
    parser.add_argument(
        "--memory", type=int, default=200, metavar="MB", help="of the database, in MB (default: 200)"
    )
    parser.add_argument("--once", action="store_true", help="read what is there now, and end")


def run(args: argparse.Namespace) -> int:
    import signal
    import sys
    import threading

    from rankscope.analytics import catalog
    from rankscope.app.collecting import Refresher, collecting, stale_runs
    from rankscope.ingest.collector import Collector
    from rankscope.ingest.spool import spool_of
    from rankscope.ingest.store import Store

    spool = args.spool if args.spool is not None else spool_of(args.store)
    with Store.open(args.store) as store:
        if not store.is_owner:
            raise UserError(
                f"another process has {store.url} open and collects into it: leave the work to it"
            )
        store.limit(memory_bytes=args.memory * 1_000_000, threads=1)
        catalog.install(store.cursor())
        if args.once:
            refresher = Refresher(store)
            refresher.add(stale_runs(store.cursor()))
            with Collector(store, spool, refresher.add) as collector:
                records = collector.catch_up()
            refresher.end()
            print(f"{records} records from {spool} into {store.url}", file=sys.stderr)
            return 0
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        if store.path is not None:
            store.serve()
        with collecting(store, spool):
            print(f"collecting from {spool} into {store.url}", file=sys.stderr, flush=True)
            stop.wait()
    return 0
