"""A collector and what follows its commits, each in a thread of its own."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from rankscope.analytics import catalog
from rankscope.ingest import clock_offsets
from rankscope.ingest.collector import Collector
from rankscope.ingest.store import Store

REFRESH_S = 1.0  # a run's derived tables are made anew at most this often


def refresh_run(con: duckdb.DuckDBPyConnection, run: str) -> None:
    """Make what is derived from a run's facts anew, and note that it is up to date."""
    # Facts committed while this runs leave a later mark, which stays.
    seen = con.execute("SELECT max(since_ns) FROM stale_run WHERE run_id = $run", {"run": run}).fetchone()
    clock_offsets.estimate(con, run)
    catalog.refresh(con, run)
    if seen is not None and seen[0] is not None:
        con.execute(
            "DELETE FROM stale_run WHERE run_id = $run AND since_ns <= $seen", {"run": run, "seen": seen[0]}
        )


def stale_runs(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Runs with facts that nothing derived shows yet: who collected them ended before it could refresh."""
    return {run for (run,) in con.execute("SELECT DISTINCT run_id FROM stale_run").fetchall()}


class Refresher:
    """Recomputes the derived tables of runs that got new rows, without holding up the collector."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: set[str] = set()
        self._wake = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="rankscope-refresh", daemon=True)
        self._thread.start()

    def add(self, runs: set[str]) -> None:
        """These runs have new rows."""
        with self._wake:
            self._waiting |= runs
            self._wake.notify()

    def end(self) -> None:
        """Refresh what waits, and stop."""
        with self._wake:
            self._ended = True
            self._wake.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._ended)
                runs, self._waiting = self._waiting, set()
                if not runs:
                    return
            began = time.monotonic()
            for run in sorted(runs):
                try:
                    refresh_run(self._store.cursor(), run)
                except duckdb.Error as error:
                    print(f"cannot sum up run {run}: {error}", file=sys.stderr, flush=True)
            with self._wake:
                self._wake.wait_for(lambda: self._ended, timeout=REFRESH_S - (time.monotonic() - began))


@contextmanager
def collecting(store: Store, spool: Path) -> Iterator[Collector]:
    """Within the block, a thread collects from `spool` into `store`; at its end, what is there by then.

    Raises:
        UserError: another collector reads this spool.
    """
    refresher = Refresher(store)
    refresher.add(stale_runs(store.cursor()))
    stop = threading.Event()
    try:
        with Collector(store, spool, refresher.add) as collector:
            thread = threading.Thread(target=collector.run, args=(stop,), name="rankscope-collector")
            thread.start()
            try:
                yield collector
            finally:
                stop.set()
                thread.join()
    finally:
        refresher.end()
