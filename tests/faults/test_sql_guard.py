"""SQL that a person typed only reads, and only the store: in the process that owns it and through it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankscope.ingest.errors import UserError
from rankscope.ingest.store import Store

SECRET = "root:"
FORBIDDEN = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT content FROM read_blob('/etc/passwd')",
    "FROM '/etc/passwd.csv'",
    "FROM glob('/etc/*')",
    "FROM sniff_csv('/etc/passwd')",
    "FROM read_parquet('http://127.0.0.1:1/x.parquet')",
    "COPY run TO '{folder}/leak.csv'",
    "COPY (SELECT 1) TO '{folder}/leak.csv'",
    "EXPORT DATABASE '{folder}/leak'",
    "ATTACH '{folder}/other.duckdb'",
    "PRAGMA database_list",
    "PRAGMA memory_limit='1TB'",
    "SET memory_limit='1TB'",
    "SET enable_external_access=true",
    "RESET enable_external_access",
    "INSTALL httpfs",
    "LOAD '{folder}/x.duckdb_extension'",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE run",
    "DROP TABLE run",
    "DELETE FROM run",
    "INSERT INTO run (run_id) VALUES ('x')",
    "UPDATE run SET command = 'x'",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO m() AS 1",
    "CREATE SECRET (TYPE quack, TOKEN 'x')",
    "CALL quack_serve('quack:127.0.0.1:{port}', token='another-long-token')",
    "FROM quack_serve('quack:127.0.0.1:{port}', token='another-long-token')",
    "SELECT * FROM (FROM \"quack_serve\"('quack:127.0.0.1:{port}', token='another-long-token'))",
    "FROM quack_stop('quack:127.0.0.1:{port}')",
    "FROM quack_query('quack:127.0.0.1:{port}', 'SELECT 1')",
    "FROM query('SELECT * FROM run')",
    "SELECT (SELECT count(*) FROM query_table(['run']))",
    "WITH x AS (FROM query('FROM run')) FROM x",
    "SELECT nextval('source_seq')",
    "EXPLAIN ANALYZE DELETE FROM run",
    "EXECUTE something",
    "CHECKPOINT",
    "FORCE CHECKPOINT",
    "BEGIN",
    "VACUUM",
    "USE memory",
    "",
    ";",
    "SELECT",
    "SELEKT 1",
]
ALLOWED = [
    "SELECT 1 AS one",
    "FROM run",
    "SELECT run_id FROM run; -- ; DROP TABLE run",
    "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
    "VALUES (1), (2)",
    "DESCRIBE run",
    "SUMMARIZE run",
    "SHOW TABLES",
    "SELECT 'COPY run TO ''x''' AS words",
    "SELECT count(*) FROM duckdb_columns()",
]


@pytest.fixture(scope="module", params=["owner", "client"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp(f"guard-{request.param}")
    path = folder / "s.duckdb"
    if request.param == "owner":
        with Store.open(path) as opened:
            opened.execute("INSERT INTO run (run_id) VALUES ('kept')")
            yield opened
        return
    code = (
        "import sys\nfrom rankscope.ingest.store import Store\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    store.execute(\"INSERT INTO run (run_id) VALUES ('kept')\")\n"
        "    store.serve()\n    print('up', flush=True)\n    sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        with Store.open(path) as opened:
            yield opened
        process.communicate("\n")


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_forbidden(store: Store, sql: str, tmp_path: Path) -> None:
    assert store.path is not None
    with pytest.raises(UserError) as refused:
        store.query_untrusted(sql.format(folder=tmp_path, port=45_123))
    assert SECRET not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    assert store.rows("SELECT run_id, command FROM run") == [{"run_id": "kept", "command": None}]


@pytest.mark.parametrize("sql", ALLOWED)
def test_allowed(store: Store, sql: str) -> None:
    assert store.query_untrusted(sql).num_columns >= 1


def test_parameters(store: Store) -> None:
    found = store.query_untrusted("SELECT run_id FROM run WHERE run_id = $run", {"run": "kept"})
    assert found.num_rows == 1


def test_endless_query_is_stopped(store: Store) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match="stopped after"):
        store.query_untrusted(
            "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", time_limit_s=0.5
        )
    assert time.monotonic() - began < 60  # it ended at all: the limit itself is not timed here
    assert store.query_untrusted("SELECT 1 AS one").num_rows == 1
