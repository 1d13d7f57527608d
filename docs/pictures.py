"""Takes the pictures in docs/images/ from a dashboard that shows a run: `rankscope demo --serve` first, then

    python docs/pictures.py [URL]

URL is the address of the run's page; without one, a demo run is trained for it.
"""

import contextlib
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from rankscope.app.demo.plan import make_plan
from rankscope.app.demo.screen import Screen
from rankscope.app.demo.server import serving, wait_until_collected
from rankscope.app.demo.training import train

IMAGES = Path(__file__).absolute().parent / "images"
WIDTH, HEIGHT = 1280, 1420


@contextlib.contextmanager
def demo_page() -> Iterator[str]:
    """The page of a run that was trained for it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        plan = make_plan(store="rankscope.duckdb", run="demo")
        plan.folder.mkdir(parents=True)
        with serving(plan, port):
            train(plan, Screen())
            assert wait_until_collected(plan)
            yield f"http://127.0.0.1:{port}/run?run=demo"


def take(url: str) -> None:
    """Write docs/images/run.png."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=1.5)
        page.goto(url)
        page.locator(".js-plotly-plot").first.wait_for(timeout=60_000)
        page.get_by_text("SIGKILL").first.wait_for(timeout=60_000)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1500)  # charts fade in
        IMAGES.mkdir(exist_ok=True)
        page.screenshot(path=IMAGES / "run.png")
        browser.close()


def main() -> None:
    """Take the pictures of the page named on the command line, or of a run of our own."""
    with contextlib.ExitStack() as stack:
        take(sys.argv[1] if len(sys.argv) > 1 else stack.enter_context(demo_page()))


if __name__ == "__main__":
    main()
