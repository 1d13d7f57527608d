"""Looking after a store file: copies, and what was deleted taken out of it."""

import time
from pathlib import Path

import duckdb

from rankscope.ingest.errors import UserError
from rankscope.ingest.sqltext import clean_message, literal
from rankscope.ingest.store import Store

_NS_PER_DAY = 86_400 * 1_000_000_000


def backup(store_url: str, target: Path) -> None:
    """Copy a store to a new file, whole and in one moment.

    Raises:
        UserError: the store is open in another process, or the file exists.
    """
    if target.exists():
        raise UserError(f"{target} exists already: name another file")
    with _owned(store_url) as store:
        _copy(store, target)


def compact(store_url: str) -> tuple[int, int]:
    """Write a store's file anew without what was deleted; returns its size before and after, in bytes.

    Raises:
        UserError: the store is open in another process, or not a file.
    """
    with _owned(store_url) as store:
        path = _file(store)
        before = path.stat().st_size
        draft = path.with_name(path.name + ".compact")
        draft.unlink(missing_ok=True)
        try:
            _copy(store, draft)
            store.execute("CHECKPOINT")
            # While the old file is still locked by us, nobody can have written to it in between.
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    return before, path.stat().st_size


def restore(store_url: str, source: Path) -> None:
    """Put a copy that `backup` made in the place of a store. Its old file stays beside it, with .old.

    Raises:
        UserError: the copy is no store, or the store is open in another process.
    """
    if not source.is_file():
        raise UserError(f"there is no file {source}")
    try:
        with duckdb.connect(str(source), read_only=True) as copy:
            copy.execute("SELECT max(version) FROM schema_version")
    except duckdb.Error as error:
        raise UserError(f"{source} is no copy of a store: {clean_message(error)}") from error
    with _owned(store_url) as store:
        path = _file(store)
        store.execute("CHECKPOINT")
        draft = path.with_name(path.name + ".restore")
        draft.write_bytes(source.read_bytes())
        path.replace(path.with_name(path.name + ".old"))
        draft.replace(path)


def expire(store_url: str, days: float) -> list[str]:
    """Forget runs that began more than `days` ago; returns their ids.

    Raises:
        UserError: the store is open in another process.
    """
    with _owned(store_url) as store:
        con = store.cursor()
        before_ns = time.time_ns() - int(days * _NS_PER_DAY)
        gone = [
            str(run)
            for (run,) in con.execute(
                "SELECT run_id FROM run WHERE began_ns < $before ORDER BY began_ns", {"before": before_ns}
            ).fetchall()
        ]
        tables = con.execute(
            "SELECT DISTINCT table_name FROM duckdb_tables() JOIN duckdb_columns() "
            "USING (table_oid, table_name) WHERE column_name = 'run_id'"
        ).fetchall()
        con.execute("BEGIN")
        for (table,) in tables:
            con.execute(f'DELETE FROM "{table}" WHERE run_id IN (SELECT unnest($gone))', {"gone": gone})
        con.execute("COMMIT")
    return gone


def _owned(store_url: str) -> Store:
    store = Store.open(store_url, create=False)
    if not store.is_owner:
        store.close()
        raise UserError(f"{store_url} is open in another process: stop that first")
    return store


def _file(store: Store) -> Path:
    if store.path is None:
        raise UserError(f"{store.url} is not a file: its own database looks after it")
    return store.path


def _copy(store: Store, target: Path) -> None:
    con = store.cursor()
    name = con.execute("SELECT current_database()").fetchone()
    assert name is not None
    try:
        con.execute(f"ATTACH {literal(str(target))} AS copy_target")
        con.execute(f'COPY FROM DATABASE "{name[0]}" TO copy_target')
        con.execute("DETACH copy_target")
    except duckdb.Error as error:
        target.unlink(missing_ok=True)
        raise UserError(f"cannot copy {store.url} to {target}: {clean_message(error)}") from error
