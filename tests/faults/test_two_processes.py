"""While a dashboard has the store open, the other commands work in another process."""

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rankscope.app.demo.process import Child

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("demo")]
START_S = 180


@pytest.fixture(scope="module")
def open_dashboard(
    demo_run: Any, rankscope_command: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The store of a dashboard that answers."""
    folder = tmp_path_factory.mktemp("dash")
    store = demo_run.copy_store(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*rankscope_command, "dash", "--store", str(store), "--port", str(port), "--headless"]
    with Child(command, folder / "dash.log") as dashboard:
        deadline = time.monotonic() + START_S
        while not answers(port):
            assert dashboard.poll() is None, dashboard.last_words(40)
            assert time.monotonic() < deadline, dashboard.last_words(40)
            time.sleep(0.1)
        yield store
        assert dashboard.poll() is None, dashboard.last_words(40)
    assert not store.with_name(store.name + ".owner").exists(), "taken away at its end"


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def test_report(open_dashboard: Path, demo_run: Any, cli: Any) -> None:
    done = cli("report", demo_run.run, "--json", "--store", open_dashboard)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run_id"] == demo_run.run


def test_report_is_the_same_as_without_a_dashboard(
    open_dashboard: Path, demo_run: Any, cli: Any, tmp_path: Path
) -> None:
    through_it = cli("report", "latest", "--json", "--store", open_dashboard)
    alone = cli("report", "latest", "--json", "--store", demo_run.copy_store(tmp_path))
    assert json.loads(through_it.stdout) == json.loads(alone.stdout)


def test_sql(open_dashboard: Path, demo_run: Any, cli: Any) -> None:
    done = cli("sql", "SELECT run_id FROM v_run", "--format", "json", "--store", open_dashboard)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [{"run_id": demo_run.run}]


def test_sql_that_writes_is_refused(open_dashboard: Path, cli: Any) -> None:
    done = cli("sql", "DELETE FROM run", "--store", open_dashboard)
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    kept = cli("sql", "SELECT count(*) AS runs FROM run", "--format", "json", "--store", open_dashboard)
    assert json.loads(kept.stdout) == [{"runs": 1}]
