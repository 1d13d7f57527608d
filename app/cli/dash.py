"""`rankscope dash`: collector, dashboard and SQL endpoint in one process."""

import argparse
from pathlib import Path

NAME = "dash"
HELP = "collect, and show what was collected in a browser"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
    parser.add_argument("--spool", type=Path, help="default: $RANKSCOPE_SPOOL, else the folder of the store")
    parser.add_argument("--port", type=int, help="default: 8501, or the next one that is free")
    parser.add_argument("--headless", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    import contextlib
    import sys

    from rankscope.analytics import catalog
    from rankscope.app.collecting import collecting
    from rankscope.app.dashboard import choose_port, serve_pages
    from rankscope.app.opening import share
    from rankscope.ingest.errors import UserError
    from rankscope.ingest.spool import spool_of
    from rankscope.ingest.store import Store

    port = choose_port(args.port)
    spool = args.spool if args.spool is not None else spool_of(args.store)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(Store.open(args.store))
        share(store)
        if store.is_owner:
            catalog.install(store.cursor())
            if store.path is not None:
                store.serve()
            try:
                stack.enter_context(collecting(store, spool))
            except UserError as error:
                print(f"rankscope dash: {error}; showing the store without collecting", file=sys.stderr)
        serve_pages(port, open_browser=not args.headless, about=store.url)
    return 0
