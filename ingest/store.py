"""A store of runs: one .duckdb file, a server, or a lake, with the same tables and the same questions.

    store = Store.open("runs.duckdb")
    store.rows("SELECT * FROM v_run WHERE run_id = $run", {"run": "llama"})

Whoever opens a file first owns it; every later Store.open of it, in any process, becomes a client of that
owner by itself (or waits for it, while it is a short command that serves nobody).
"""

import hashlib
import os
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import duckdb
import pyarrow as pa

from rankscope.ingest.errors import QueryError, UserError
from rankscope.ingest.extensions import load_extensions
from rankscope.ingest.owner import Owner, read_owner, remove_owner, write_owner
from rankscope.ingest.places import DEFAULT_STORE, default_url
from rankscope.ingest.questions import QuestionServer, ask, run_limited
from rankscope.ingest.sqltext import bind, check_reads_only, clean_message, literal

__all__ = ["DEFAULT_STORE", "QueryError", "Store", "default_url", "source_id"]

SCHEMA_VERSION = 1
_SCHEMA = Path(__file__).with_name("schema.sql")
_REMOTE = "FROM quack_query($uri, $sql)"
_LOCK_WAIT_S = 30.0  # how long a short command may keep the file from us


def source_id(stream: str) -> int:
    """The number of a source, made from its identity: the same in every process, without asking anybody."""
    return int.from_bytes(hashlib.blake2b(stream.encode(), digest_size=8).digest(), "little") >> 1


class Store:
    """One open store; safe to use from several threads."""

    def __init__(
        self,
        url: str,
        con: duckdb.DuckDBPyConnection,
        *,
        path: Path | None,
        remote: str | None,
        setup: str = "",
    ) -> None:
        """Not for callers: see `open`."""
        self.url = url
        self.path = path  # of the .duckdb file; None for servers and lakes
        self.remote = remote  # the endpoint that queries go to; None when this process has the store open
        self._con = con
        self._setup = setup  # what each new cursor needs first
        self._asked_at: str | None = None  # the owner's socket for questions that people typed
        self._served: str | None = None
        self._questions: QuestionServer | None = None
        self._announced = False
        self._lock = threading.Lock()

    @property
    def is_owner(self) -> bool:
        """Whether this process has the store open itself, so that it may write."""
        return self.remote is None

    @classmethod
    def open(cls, url: str | os.PathLike[str] | None = None, *, create: bool = True) -> Self:
        """Open a store: a path, quack:HOST:PORT (token in $RANKSCOPE_TOKEN) or ducklake:CATALOG?data_path=….

        Raises:
            UserError: it is not there (with create=False), not a store, or in somebody's hands for too long.
        """
        where = os.fspath(url) if url is not None else default_url()
        if where.startswith("quack:"):
            return cls._client(where, where, os.environ.get("RANKSCOPE_TOKEN", ""), path=None)
        if where.startswith("ducklake:"):
            return cls._lake(where)
        return cls._file(Path(where), create)

    @classmethod
    def _file(cls, path: Path, create: bool) -> Self:
        if not create and not path.exists():
            raise UserError(f"there is no store at {path}: name one with --store, or record a run first")
        if path.is_dir():
            raise UserError(
                f"{path} is a folder, not a store: name a file in it, like {path / DEFAULT_STORE}"
            )
        if not path.absolute().parent.is_dir():
            raise UserError(
                f"the folder {path.absolute().parent} does not exist: make it, or name another store"
            )
        deadline = time.monotonic() + _LOCK_WAIT_S
        told = False
        while True:
            owner = read_owner(path)
            if owner is not None and owner.is_here and not owner.is_this_process and owner.uri is not None:
                try:
                    client = cls._client(str(path), owner.uri, owner.token or "", path=path)
                    client._asked_at = owner.socket
                    return client
                except UserError:
                    if read_owner(path) == owner and time.monotonic() > deadline:
                        raise  # it lives, and does not answer
            else:
                try:
                    return cls._own(path)
                except duckdb.IOException as error:
                    if "lock" not in str(error):
                        raise UserError(f"cannot open {path}: {clean_message(error)}") from error
                    if time.monotonic() > deadline:
                        raise UserError(f"cannot open {path}: {_holder(owner)}") from error
                except duckdb.Error as error:
                    raise UserError(f"{path} is not a store: {clean_message(error)}") from error
            if not told and time.monotonic() > deadline - _LOCK_WAIT_S + 2:
                print(f"waiting for {path}: {_holder(owner)}", file=sys.stderr)
                told = True
            time.sleep(0.05)

    @classmethod
    def _own(cls, path: Path) -> Self:
        read_only = path.exists() and not os.access(path, os.W_OK)
        con = duckdb.connect(str(path), read_only=read_only)
        store = cls(str(path), con, path=path, remote=None)
        if not read_only:
            # Writing the log into the file costs most of a collector's time when it is done every 16 MB.
            con.execute("SET checkpoint_threshold = '256MB'")
            owner = read_owner(path)
            # A second Store of one process shares the first one's database and its announcement.
            if owner is None or not owner.is_this_process:
                write_owner(path, Owner.this_process())
                store._announced = True
            store._apply_schema(_SCHEMA.read_text())
        return store

    @classmethod
    def _client(cls, url: str, uri: str, token: str, *, path: Path | None) -> Self:
        con = duckdb.connect(config={"threads": 1})
        load_extensions(con, "httpfs", "quack")
        con.execute(f"CREATE SECRET (TYPE quack, TOKEN {literal(token)})")
        store = cls(url, con, path=path, remote=uri)
        try:
            con.execute("FROM quack_query($uri, 'SELECT 1')", {"uri": uri}).fetchall()
        except duckdb.Error as error:
            con.close()
            raise UserError(
                f"the store's server {uri} does not answer: {clean_message(error)} "
                "(a remote one wants its token in $RANKSCOPE_TOKEN)"
            ) from error
        return store

    @classmethod
    def _lake(cls, url: str) -> Self:
        catalog, _, options = url.partition("?")
        data_path = dict(part.partition("=")[::2] for part in options.split("&") if part).get("data_path")
        con = duckdb.connect()
        load_extensions(con, "httpfs", "ducklake")
        if catalog.startswith("ducklake:postgres:"):
            load_extensions(con, "postgres_scanner")
        try:
            more = f" (DATA_PATH {literal(data_path)})" if data_path else ""
            con.execute(f"ATTACH {literal(catalog)} AS lake{more}")
        except duckdb.Error as error:
            raise UserError(f"cannot attach {catalog}: {clean_message(error)}") from error
        store = cls(url, con, path=None, remote=None, setup="USE lake")
        # A lake has no keys and no sequences; nothing here relies on them.
        schema = re.sub(r"\bPRIMARY KEY\b(?!\s*\()|\bUNIQUE\b", "", _SCHEMA.read_text())
        schema = re.sub(r",\s*PRIMARY KEY \([^)]*\)", "", schema)
        store._apply_schema(re.sub(r"CREATE SEQUENCE[^;]*;", "", schema))
        return store

    def _apply_schema(self, schema: str) -> None:
        con = self.cursor()
        con.execute(schema)
        found = con.execute("SELECT max(version) FROM schema_version").fetchone()
        version = found[0] if found else None
        if version is None:
            con.execute(
                "INSERT INTO schema_version VALUES ($v, $t)", {"v": SCHEMA_VERSION, "t": time.time_ns()}
            )
        elif version > SCHEMA_VERSION:
            self.close()
            raise UserError(
                f"{self.url} was written by a newer rankscope, schema {version}: upgrade this one"
            )

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> pa.Table:
        """The result of one statement with $name parameters.

        Raises:
            QueryError: the SQL is wrong.
            UserError: the owner is gone.
        """
        try:
            if self.remote is None:
                return self.cursor().execute(sql, params or {}).to_arrow_table()
            text = bind(sql, params) if params else sql
            return self._quiet_cursor().execute(_REMOTE, {"uri": self.remote, "sql": text}).to_arrow_table()
        except duckdb.IOException as error:
            if self.remote is None:
                raise QueryError(clean_message(error)) from error
            raise UserError(f"the process that serves {self.url} is gone: run the command again") from error
        except duckdb.Error as error:
            raise QueryError(clean_message(error)) from error

    def query_untrusted(
        self, sql: str, params: Mapping[str, object] | None = None, *, time_limit_s: float = 60.0
    ) -> pa.Table:
        """As `query`, for SQL that a person typed: one statement that only reads, and only the store.

        Raises:
            UserError: it would do more than read, or runs for longer than `time_limit_s`.
        """
        if self.remote is None:
            self._harden()
            return run_limited(self.cursor(), sql, params, time_limit_s)
        check_reads_only(sql)
        text = bind(sql, params) if params else sql
        if self._asked_at is not None:
            return ask(self._asked_at, text, time_limit_s)
        return self.query(text)  # a server that somebody else runs, with limits of its own

    def rows(self, sql: str, params: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """The result of `query` as one dict a row."""
        rows: list[dict[str, Any]] = self.query(sql, params).to_pylist()
        return rows

    def execute(self, sql: str, params: Mapping[str, object] | None = None) -> None:
        """Run one statement for its effect. Owner only."""
        self.cursor().execute(sql, params or {})

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to the store, for one thread. Owner only.

        Raises:
            UserError: another process owns the store.
        """
        if self.remote is not None:
            raise UserError(f"{self.url} is open in another process: it can only be read from here")
        con = self._quiet_cursor()
        if self._setup:
            con.execute(self._setup)
        return con

    def _quiet_cursor(self) -> duckdb.DuckDBPyConnection:
        con = self._con.cursor()
        con.execute("PRAGMA disable_progress_bar")  # in a notebook it would be drawn into the results
        return con

    def serve(self) -> str:
        """Answer other processes of this user from now on; returns the endpoint. Owner of a file only.

        From here on the database takes no SQL that reaches files or changes settings, whoever sends it.
        """
        with self._lock:
            if self._served is not None:
                return self._served
            assert self.path is not None and self.is_owner, "only the owner of a file serves it"
            load_extensions(self._con, "httpfs", "quack")
            token = secrets.token_hex(24)
            for attempt in range(5):
                uri = f"quack:127.0.0.1:{_free_port()}"
                try:
                    self._con.execute(f"CALL quack_serve({literal(uri)}, token={literal(token)})").fetchall()
                    break
                except duckdb.Error as error:  # somebody was faster to take the port
                    if attempt == 4:
                        raise UserError(f"cannot serve {self.url}: {clean_message(error)}") from error
            self._served = uri
        self._harden()
        self._questions = QuestionServer(self.cursor)
        write_owner(self.path, Owner.this_process(uri, token, str(self._questions.path)))
        self._announced = True
        return uri

    def _harden(self) -> None:
        """No files, no network, no settings from SQL any more, while this process has the store open."""
        if self.remote is not None:
            return  # the owner did so when it began to serve
        with self._lock:
            row = self._con.execute("SELECT current_setting('lock_configuration')").fetchone()
            if row is None or not row[0]:
                if self._setup:  # a lake's own files are the exception
                    options = self._con.execute("FROM ducklake_options('lake')").fetchall()
                    folders = [value for name, _, value, *_ in options if name == "data_path"]
                    self._con.execute(f"SET allowed_directories = {literal(folders)}")
                self._con.execute("SET enable_external_access = false")
                self._con.execute("SET lock_configuration = true")

    def reopen(self) -> None:
        """Open the file anew if the database gave up, as on a full disk. Owner of a file only."""
        try:
            self._con.execute("SELECT 1").fetchall()
        except duckdb.Error:
            assert self.path is not None
            was_served = self._served is not None
            self.close()
            self._con = duckdb.connect(str(self.path))
            if was_served:
                self.serve()

    def limit(self, *, memory_bytes: int, threads: int) -> None:
        """Keep the database's own memory and threads small. Owner only, before `serve`."""
        self._con.execute(f"SET memory_limit = '{memory_bytes // 1_000_000}MB'")
        self._con.execute(f"SET threads = {threads}")

    def close(self) -> None:
        """Let go of the store; its owner file goes with it."""
        if self._questions is not None:
            self._questions.close()
            self._questions = None
        if self._served is not None:
            # Without this the process would not end: the endpoint has a thread of its own.
            with suppress(duckdb.Error):  # a database that gave up serves no more
                self._con.execute(f"CALL quack_stop({literal(self._served)})").fetchall()
            self._served = None
        if self._announced and self.path is not None:
            remove_owner(self.path)
            self._announced = False
        self._con.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _holder(owner: Owner | None) -> str:
    if owner is None:
        return "another program has it open; close that one"
    return f"process {owner.pid} on {owner.host} has it open; wait for it to end, or stop it"
