"""Opening a store the way every command wants it: views in place, and what waits in its spool read.

The dashboard and its collector live in one process; `share` puts its one store where the pages find it.
"""

import os
from pathlib import Path

from rankscope.analytics import catalog
from rankscope.app.collecting import refresh_run, stale_runs
from rankscope.ingest.collector import Collector
from rankscope.ingest.errors import UserError
from rankscope.ingest.spool import has_segments, spool_of
from rankscope.ingest.store import Store

_shared: list[Store] = []


def open_store(
    url: str | os.PathLike[str] | None = None, *, create: bool = False, spool: Path | None = None
) -> Store:
    """A store with all views; as its owner, first with everything that its spool holds.

    Args:
        create: make the file when it is not there. Without, it is made only when its spool holds segments.
        spool: where segments wait; the store's own spool without.

    Raises:
        UserError: there is no such store.
    """
    where = os.fspath(url) if url is not None else None
    waiting = spool if spool is not None else spool_of(where)
    is_waited_for = has_segments(waiting)
    store = Store.open(where, create=create or is_waited_for)
    if store.is_owner:
        catalog.install(store.cursor())
        if is_waited_for:
            _catch_up(store, waiting)
        con = store.cursor()
        for run in sorted(stale_runs(con)):
            refresh_run(con, run)
    return store


def _catch_up(store: Store, spool: Path) -> None:
    try:
        with Collector(store, spool) as collector:
            collector.catch_up()
    except UserError:
        return  # another collector reads this spool, into another store


def share(store: Store) -> None:
    """Make `store` the one that pages of this process use."""
    _shared[:] = [store]


def shared_store() -> Store | None:
    """The store that `share` was given in this process, or None."""
    return _shared[0] if _shared else None
