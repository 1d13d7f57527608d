"""One Chromium and two servers for all browser tests; they end with these, for they use half a core."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankscope

HERE = Path(__file__).parent
MAIN = Path(rankscope.__file__).parent / "app" / "main.py"
START_S = 60


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _serve(command: list[str], port: int, log: Path, **environment: str) -> Iterator[str]:
    """The address of a server, which ends with the tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    with log.open("w") as output:
        server = subprocess.Popen(
            command, stdout=output, stderr=output, env=clean | environment, cwd=log.parent
        )
        try:
            _wait(port, server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(10)


def _wait(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the dashboard did not start:\n{log.read_text()}")


@pytest.fixture(scope="module")
def story_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of story.py."""
    path = tmp_path_factory.mktemp("story") / "runs.duckdb"
    subprocess.run([sys.executable, HERE / "story.py", "make", path], check=True, timeout=START_S)
    return path


@pytest.fixture(scope="module")
def dashboard(story_store: Path) -> Iterator[str]:
    """`streamlit run app/main.py` on the store of story.py, while one of its runs goes on."""
    port = _free_port()
    command = [sys.executable, str(HERE / "story.py"), "serve", str(story_store), str(port)]
    yield from _serve(command, port, story_store.with_suffix(".log"))


@pytest.fixture(scope="module")
def empty_dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`streamlit run app/main.py` alone, on a store that is not there yet."""
    folder = tmp_path_factory.mktemp("empty")
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(MAIN), "--server.port", str(port)]
    yield from _serve(command, port, folder / "server.log", RANKSCOPE_STORE=str(folder / "none.duckdb"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium, without its sandbox, which containers do not allow."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A fresh page of 1280 × 900; `page.reached` holds all addresses that it asked for."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(120_000)  # a machine may be busy; nothing here is about time
    page.reached = []
    page.problems = []
    page.on("request", lambda request: page.reached.append(request.url))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    yield page
    context.close()
