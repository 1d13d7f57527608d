"""Pictures of the dashboard, taken from a real store: for the README, and to look at before a change goes in.

    python docs/screenshots.py STORE [--run RUN] [--out FOLDER]   # every page, light and dark, 1280 and 1920
    python docs/screenshots.py STORE --readme                     # writes docs/images anew

It serves the store with `streamlit run app/main.py` on a free port, and needs Chromium and playwright.
"""

import argparse
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rankscope

MAIN = Path(rankscope.__file__).parent / "app" / "main.py"
IMAGES = Path(__file__).parent / "images"
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
START_S = 120
PAGES = {"runs": "", "run": "run", "time": "time", "what-if": "what-if", "sql": "sql"}
WIDTHS = (1280, 1920)
THEMES = ("light", "dark")
TALLEST = 4000  # pixels


@contextmanager
def serving(store: Path) -> Iterator[str]:
    """The address of a dashboard on `store`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(MAIN), "--server.port", str(port)]
    server = subprocess.Popen(
        command, env=os.environ | {"RANKSCOPE_STORE": str(store.absolute())}, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + START_S
        while server.poll() is None and time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).close()
                yield f"http://127.0.0.1:{port}"
                return
            except OSError:
                time.sleep(0.2)
        raise SystemExit("the dashboard did not start")
    finally:
        server.terminate()
        server.wait(10)


def browser(playwright: Any) -> Any:
    """A headless Chromium of the system."""
    found = next((path for path in CHROMIUM if Path(path).exists()), None)
    if found is None:
        raise SystemExit("no Chromium here: apt-get install chromium")
    return playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])


def picture(
    chromium: Any, address: str, out: Path, *, width: int, theme: str, height: int | None = None
) -> None:
    """One page as PNG; as tall as the page, or `height` pixels from its top."""
    page = chromium.new_page(viewport={"width": width, "height": height or 900}, color_scheme=theme)
    page.set_default_timeout(1000 * START_S)
    page.goto(address)
    page.wait_for_selector(".rs")
    settle(page)
    if height is None:
        full = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": width, "height": min(max(full, 900), TALLEST)})
        settle(page)
    if page.locator("[data-testid=stException]").count():
        raise SystemExit(f"{address} shows an error")
    out.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(out))
    page.close()
    print(out)


def settle(page: Any) -> None:
    """Wait until nothing runs, every chart is drawn, and two looks in a row are the same."""
    page.wait_for_selector("[data-test-script-state=notRunning]", state="attached")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.stPlotlyChart')].every(c => c.querySelector('.main-svg'))"
    )
    page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')")
    before = None
    for _ in range(20):
        now = page.evaluate("document.body.innerHTML.length")
        if now == before:
            return
        before = now
        page.wait_for_timeout(500)


def main() -> None:
    """Serve, look, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--run", help="default: the newest")
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--readme", action="store_true", help="write docs/images instead")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    query = f"?run={args.run}" if args.run else ""
    with serving(args.store) as base, sync_playwright() as playwright:
        chromium = browser(playwright)
        if args.readme:
            for theme in THEMES:
                picture(
                    chromium,
                    f"{base}/run{query}",
                    IMAGES / f"run-{theme}.png",
                    width=1280,
                    theme=theme,
                    height=1290,
                )
            return
        for theme in THEMES:
            for width in WIDTHS:
                for name, path in PAGES.items():
                    out = args.out / f"{name}-{theme}-{width}.png"
                    picture(chromium, f"{base}/{path}{query}", out, width=width, theme=theme)


if __name__ == "__main__":
    main()
