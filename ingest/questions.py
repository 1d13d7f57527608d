"""Answering SQL that people typed, with a time limit that holds: also for those who ask from another process.

DuckDB's own endpoint cannot be told to stop a query, so these go over a socket of the owner's: it checks that
the statement only reads, runs it, and interrupts it when its time is up.

    request:  4 bytes length | JSON {"sql": ..., "time_limit_s": ...}
    answer:   1 byte status (see _Status) | 8 bytes length | Arrow stream, or the error's message
"""

import contextlib
import json
import shutil
import socket
import socketserver
import struct
import tempfile
import threading
from collections.abc import Callable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.ipc

from rankscope.ingest.errors import QueryError, UserError
from rankscope.ingest.sqltext import check_reads_only, clean_message

_LENGTH = struct.Struct("<I")
_MAX_REQUEST = 16 << 20
_SLACK_S = 30.0  # how much longer than its time limit an answer may take on a busy machine


class _Status(IntEnum):
    ROWS = 0
    QUERY_ERROR = 1
    USER_ERROR = 2


def run_limited(
    con: duckdb.DuckDBPyConnection, sql: str, params: Mapping[str, object] | None, time_limit_s: float
) -> pa.Table:
    """The result of one statement that only reads.

    Raises:
        QueryError: the SQL is wrong.
        UserError: it would do more than read, or runs for longer than `time_limit_s`.
    """
    check_reads_only(sql)
    late = threading.Event()

    def stop() -> None:
        late.set()
        con.interrupt()

    timer = threading.Timer(time_limit_s, stop)
    timer.daemon = True
    timer.start()
    try:
        return con.execute(sql, params or {}).to_arrow_table()
    except duckdb.Error as error:
        if late.is_set():
            raise UserError(
                f"stopped after {time_limit_s:g} s: narrow the query, or raise the limit"
            ) from error
        raise QueryError(clean_message(error)) from error
    finally:
        timer.cancel()


class QuestionServer:
    """Answers on a socket that only this user can reach."""

    def __init__(self, cursor: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """Begin to answer; each question gets a `cursor` of its own."""
        self._folder = Path(tempfile.mkdtemp(prefix="rankscope-"))  # mode 0700
        self.path = self._folder / "ask"

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):  # whoever asked is gone
                    _answer(self.rfile.read, self.wfile.write, cursor)

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        self._server = Server(str(self.path), Handler)
        thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="rankscope-questions"
        )
        thread.daemon = True
        thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self._folder, ignore_errors=True)


def ask(path: str, sql: str, time_limit_s: float) -> pa.Table:
    """Ask the server at `path`.

    Raises:
        QueryError, UserError: as `run_limited`; also when the server is gone.
    """
    request = json.dumps({"sql": sql, "time_limit_s": time_limit_s}).encode()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(time_limit_s + _SLACK_S)
            connection.connect(path)
            connection.sendall(_LENGTH.pack(len(request)) + request)
            with connection.makefile("rb") as answer:
                status = answer.read(1)
                payload = answer.read(int.from_bytes(answer.read(8), "little"))
    except OSError as error:
        raise UserError(f"the process that has the store open does not answer: {error}") from error
    if not status:
        raise UserError("the process that has the store open ended before it answered: run the command again")
    if status[0] == _Status.ROWS:
        return pyarrow.ipc.open_stream(payload).read_all()
    kind = QueryError if status[0] == _Status.QUERY_ERROR else UserError
    raise kind(payload.decode())


def _answer(
    read: Callable[[int], bytes],
    write: Callable[[bytes], Any],
    cursor: Callable[[], duckdb.DuckDBPyConnection],
) -> None:
    header = read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return
    (length,) = _LENGTH.unpack(header)
    if length > _MAX_REQUEST:
        return
    status, payload = _Status.USER_ERROR, b"not a question"
    try:
        request = json.loads(read(length))
        table = run_limited(cursor(), str(request["sql"]), None, float(request["time_limit_s"]))
        sink = pa.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        status, payload = _Status.ROWS, sink.getvalue().to_pybytes()
    except QueryError as error:
        status, payload = _Status.QUERY_ERROR, str(error).encode()
    except UserError as error:
        payload = str(error).encode()
    except (ValueError, KeyError, TypeError):
        pass  # the payload says that already
    write(bytes([status]) + len(payload).to_bytes(8, "little") + payload)
