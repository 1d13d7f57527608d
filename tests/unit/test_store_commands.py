"""The commands about stores as a person types them: results, exit status, errors of one line."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from conftest import Cli
from handmade import HandWriter

from rankscope.ingest import upkeep
from rankscope.ingest.errors import UserError
from rankscope.ingest.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one recorded run that nobody has read yet."""
    writer = HandWriter(tmp_path / "runs.spool", run="first", world_size=1)
    for step in range(3):
        writer.span("step", step=step, t=5_000_000_000 + step * 1_000_000, flags=2)
    return tmp_path / "runs.duckdb"


def test_sql_reads_the_spool_first_and_writes_every_form(path: Path, tmp_path: Path, cli: Cli) -> None:
    query = "SELECT run_id, [1, 2] AS several, 0.5 AS half, 'a[b]' AS word, NULL AS none FROM v_run"
    told = cli("sql", query, "--store", path)
    assert (told.returncode, told.stderr) == (0, "")
    assert "first" in told.stdout
    assert "a[b]" in told.stdout
    as_json = cli("sql", query, "--store", path, "--format", "json")
    assert json.loads(as_json.stdout) == [
        {"run_id": "first", "several": [1, 2], "half": 0.5, "word": "a[b]", "none": None}
    ]
    assert cli("sql", query, "--store", path, "--format", "csv").stdout.splitlines()[1].startswith('"first"')
    out = tmp_path / "out.parquet"
    assert cli("sql", query, "--store", path, "--out", out).returncode == 0
    assert pyarrow.parquet.read_table(out).num_rows == 1
    counted = cli("sql", "SELECT count(*) AS n FROM span", "--store", path, "--format", "json")
    assert json.loads(counted.stdout) == [{"n": 3}]


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("FROM v_nothing", 1, "v_help"),
        ("SELECT nothing FROM v_run", 1, "v_help"),
        ("DROP TABLE run", 1, "only SELECT"),
        ("SELECT 1; SELECT 2", 1, "one SELECT"),
        ("SELEKT", 1, "syntax error"),
        ("SELECT * FROM read_csv('/etc/passwd')", 1, "disabled"),
    ],
)
def test_sql_refuses_in_one_line(path: Path, cli: Cli, query: str, status: int, words: str) -> None:
    told = cli("sql", query, "--store", path)
    assert (told.returncode, told.stdout) == (status, "")
    assert len(told.stderr.splitlines()) == 1
    assert told.stderr.startswith("rankscope sql: ")
    assert words in told.stderr


def test_sql_without_a_store(tmp_path: Path, cli: Cli) -> None:
    told = cli("sql", "SELECT 1", "--store", tmp_path / "nowhere.duckdb")
    assert told.returncode == 1
    assert "there is no store" in told.stderr
    assert not (tmp_path / "nowhere.duckdb").exists()


def test_parquet_wants_a_file(path: Path, cli: Cli) -> None:
    assert cli("sql", "SELECT 1", "--store", path, "--format", "parquet").returncode == 2


def test_collect_once(path: Path, cli: Cli) -> None:
    told = cli("collect", "--once", "--store", path, "--spool", path.with_suffix(".spool"))
    assert told.returncode == 0
    assert "records" in told.stderr
    assert list(path.with_suffix(".spool").rglob("*.seg")) == []


def test_dash_on_a_port_in_use(path: Path, cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = cli("dash", "--store", path, "--port", str(port))
    assert told.returncode == 1
    assert len(told.stderr.splitlines()) == 1
    assert f"port {port} is in use" in told.stderr


def test_doctor_says_what_works(tmp_path: Path, cli: Cli) -> None:
    told = cli("doctor", "--json", "--store", tmp_path / "s.duckdb")
    checks = {check["what"]: check for check in json.loads(told.stdout)}
    assert checks["duckdb"]["ok"]
    assert checks["Python"]["ok"]
    is_fit = all(check["ok"] or not check["needed"] for check in checks.values())
    assert told.returncode == (0 if is_fit else 1)
    assert list(tmp_path.iterdir()) == []


def test_backup_restore_and_compact(tmp_path: Path) -> None:
    path, copy = tmp_path / "s.duckdb", tmp_path / "copy.duckdb"
    with Store.open(path) as store:
        store.execute("INSERT INTO scalar (run_id, value) SELECT 'r', random() FROM range(300000)")
    upkeep.backup(str(path), copy)
    with pytest.raises(UserError, match="exists"):
        upkeep.backup(str(path), copy)
    with Store.open(path) as store:
        store.execute("DELETE FROM scalar")
    before, after = upkeep.compact(str(path))
    assert after < before
    with Store.open(path) as store:
        assert store.rows("SELECT count(*) AS n FROM scalar") == [{"n": 0}]
    upkeep.restore(str(path), copy)
    with Store.open(path) as store:
        assert store.rows("SELECT count(*) AS n FROM scalar") == [{"n": 300_000}]
    with pytest.raises(UserError, match="no copy of a store"):
        upkeep.restore(str(path), Path(__file__))
    assert {file.name for file in tmp_path.iterdir()} == {"s.duckdb", "s.duckdb.old", "copy.duckdb"}


def test_expire_forgets_old_runs_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Store.open(path) as store:
        store.execute(
            "INSERT INTO run (run_id, began_ns) VALUES ('old', 1), ('new', (epoch_ns(now()::TIMESTAMP)))"
        )
        store.execute("INSERT INTO scalar (run_id, value) VALUES ('old', 1), ('new', 2)")
    assert upkeep.expire(str(path), 30) == ["old"]
    with Store.open(path) as store:
        left = store.rows("SELECT run_id FROM run UNION ALL SELECT run_id FROM scalar")
        assert left == [{"run_id": "new"}] * 2


def test_upkeep_of_a_store_in_use(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    code = (
        "import sys\nfrom rankscope.ingest.store import Store\n"
        "with Store.open(sys.argv[1]) as store:\n"
        "    store.serve()\n    print('up', flush=True)\n    sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        with pytest.raises(UserError, match="open in another process"):
            upkeep.compact(str(path))
        owner.communicate("\n")
