"""One file, many processes: the owner serves, everybody else goes through it, and nobody meets a lock."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rankscope.ingest.errors import UserError
from rankscope.ingest.owner import Owner, owner_path, read_owner, write_owner
from rankscope.ingest.processes import start_ns
from rankscope.ingest.store import QueryError, Store, source_id

_OWNER = """
import sys
from rankscope.ingest.store import Store
store = Store.open(sys.argv[1])
store.execute("INSERT INTO run (run_id, began_ns) VALUES ('a', 1), ('b', 2)")
if sys.argv[2] == "serve":
    store.serve()
print("up", flush=True)
sys.stdin.readline()
store.close()
"""


@contextmanager
def owner_process(path: Path, serve: bool = True) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has the store open."""
    command = [sys.executable, "-c", _OWNER, str(path), "serve" if serve else "no"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        if process.poll() is None:
            process.communicate("\n", timeout=60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.duckdb"


def test_owner_announces_itself_and_takes_it_back(path: Path) -> None:
    store = Store.open(path)
    assert store.is_owner
    store.serve()
    announced = owner_path(path)
    assert stat.S_IMODE(announced.stat().st_mode) == 0o600
    assert json.loads(announced.read_text())["pid"] == os.getpid()
    store.close()
    assert not announced.exists()


def test_second_store_of_one_process_shares_the_first(path: Path) -> None:
    with Store.open(path) as first:
        with Store.open(path) as second:
            assert second.is_owner
            second.execute("INSERT INTO run (run_id) VALUES ('x')")
        assert first.rows("SELECT run_id FROM run") == [{"run_id": "x"}]
        assert owner_path(path).exists()


def test_client_goes_through_the_owner(path: Path) -> None:
    with owner_process(path), Store.open(path) as store:
        assert not store.is_owner
        assert store.rows("SELECT run_id FROM run WHERE began_ns = $n", {"n": 2}) == [{"run_id": "b"}]
        assert store.rows("SELECT run_id FROM run WHERE run_id = $r", {"r": "'; DROP TABLE run; --"}) == []
        table = store.query("SELECT 1::BIGINT AS one, [1, 2] AS several, 'x' AS word, NULL::DOUBLE AS none")
        assert table.to_pylist() == [{"one": 1, "several": [1, 2], "word": "x", "none": None}]
        with pytest.raises(QueryError, match="nowhere") as wrong:
            store.query("SELECT * FROM nowhere")
        assert "quack" not in str(wrong.value)
        with pytest.raises(UserError, match="another process"):
            store.execute("DELETE FROM run")


def test_many_clients_at_once_while_the_owner_writes(path: Path) -> None:
    with Store.open(path) as store:
        store.serve()
        reader = (
            "import sys\nfrom rankscope.ingest.store import Store\n"
            "with Store.open(sys.argv[1], create=False) as store:\n"
            "    assert not store.is_owner\n"
            "    seen = [store.rows('SELECT count(*) AS n FROM scalar')[0]['n'] for _ in range(30)]\n"
            "    assert seen == sorted(seen)\n"
            "    print(seen[-1] % 10)\n"
        )
        readers = [
            subprocess.Popen([sys.executable, "-c", reader, str(path)], stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        ended = threading.Event()

        def write() -> None:
            while not ended.is_set():  # ten rows a transaction: nobody may see part of them
                store.execute("INSERT INTO scalar (run_id, value) SELECT 'r', range FROM range(10)")

        writing = threading.Thread(target=write)
        writing.start()
        try:
            said = [process.communicate(timeout=120)[0].strip() for process in readers]
        finally:
            ended.set()
            writing.join()
        assert said == ["0", "0", "0"]


def test_owner_that_serves_nobody_is_waited_for(path: Path) -> None:
    with owner_process(path, serve=False) as process:
        threading.Timer(0.5, lambda: process.stdin.write("\n") and process.stdin.flush()).start()  # type: ignore[union-attr]
        with Store.open(path) as store:
            assert store.is_owner
            assert len(store.rows("FROM run")) == 2


def test_killed_owner_leaves_a_file_that_nobody_minds(path: Path) -> None:
    with owner_process(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert owner_path(path).exists()
    with Store.open(path) as store:
        assert store.is_owner
        assert len(store.rows("FROM run")) == 2


@pytest.mark.parametrize(
    "content", ["", "{", '{"pid": 1}', '{"pid": "x", "start_ns": 1, "host": 1, "uri": 1, "token": 1}']
)
def test_owner_file_that_is_none_is_removed(path: Path, content: str) -> None:
    owner_path(path).write_text(content)
    assert read_owner(path) is None
    assert not owner_path(path).exists()


def test_pid_used_again_is_not_the_owner(path: Path) -> None:
    began = start_ns(os.getpid())
    assert began is not None
    here = Owner.this_process("quack:127.0.0.1:1", "t")
    write_owner(path, Owner(here.pid, began - 3_600_000_000_000, here.host, here.uri, here.token))
    assert read_owner(path) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b"x" * 5000), "not a"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda _: None, "there is no store"),
    ],
)
def test_what_is_no_store(path: Path, make: object, message: str) -> None:
    make(path)  # type: ignore[operator]
    with pytest.raises(UserError, match=message):
        Store.open(path, create=False)


def test_store_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        Store.open(tmp_path / "nowhere" / "s.duckdb")


def test_source_ids_are_the_same_everywhere_and_apart() -> None:
    found = {source_id(f"run/host-{pid}-1") for pid in range(10_000)}
    assert len(found) == 10_000
    assert all(0 <= number < 2**63 for number in found)
    assert source_id("run/host-1-1") == source_id("run/host-1-1")


def test_crash_of_the_owner_keeps_what_was_committed(path: Path) -> None:
    with owner_process(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with Store.open(path) as store:
        assert [row["run_id"] for row in store.rows("SELECT run_id FROM run ORDER BY run_id")] == ["a", "b"]


def test_lake_has_the_same_tables(tmp_path: Path) -> None:
    url = f"ducklake:{tmp_path / 'catalog.ducklake'}?data_path={tmp_path / 'data'}/"
    with Store.open(url) as lake, Store.open(tmp_path / "file.duckdb") as file:
        names = "SELECT DISTINCT table_name FROM duckdb_columns() WHERE column_name = 'run_id'"
        assert {row["table_name"] for row in lake.rows(names)} >= {
            row["table_name"] for row in file.rows(names)
        }
        lake.execute("INSERT INTO run (run_id) VALUES ('x')")
        assert lake.rows("SELECT run_id FROM run") == [{"run_id": "x"}]
        assert lake.query_untrusted("SELECT run_id FROM run").num_rows == 1
        with pytest.raises(UserError, match="disabled"):
            lake.query_untrusted("FROM read_text('/etc/passwd')")
        lake.execute("INSERT INTO run (run_id) SELECT 'x' FROM range(100000)")
        assert lake.query_untrusted("SELECT count(*) AS n FROM run").to_pylist() == [{"n": 100_001}]
    with Store.open(url) as again:
        assert again.rows("SELECT DISTINCT run_id FROM run") == [{"run_id": "x"}]
