"""Every page in real Chromium: it opens, it shows the run's numbers, and it stays where it was put."""

from typing import Any

import pytest

pytest.importorskip("playwright")
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ERROR = "[data-testid=stException]"
# Path, then words that only the right numbers of story.py give.
PAGES = {
    "": ["crash", "clean", "going", "53.0\u2009%", "rank 2, crash"],
    "run?run=crash": [
        "Rank 2 on host-0 was ended by SIGKILL.",
        "53.0\u2009%",
        "148,000,000,000 ns",
        "6 lost and done again",
        "4 of 4 ranks reporting",
        "slowest: import, rank 3",
    ],
    "run?run=clean": ["Finished without a failure.", "83.3\u2009%", "No failure was seen"],
    "time?run=crash": ["Start with making restarts twice as fast", "53.0\u2009%", "attempt 0", "in use 4.8"],
    "time?run=clean&by=rank": ["rank 0", "No two checkpoints were saved", "83.3\u2009%"],
    "what-if?run=crash": ["80.1\u2009%", "44.4\u2009%", "As published"],
    "what-if?groups=6&over=checkpoint": ["Replica groups", "6"],
    "sql": ["v_incident", "rank 2 on host-0 was ended by SIGKILL"],
}
CHARTS = {"run?run=crash": 5, "run?run=clean": 4, "time?run=crash": 3, "what-if?run=crash": 2}


def _open(page: Any, address: str, ready: str = ".rs") -> None:
    page.goto(address)
    page.wait_for_selector(ready)
    # A page is drawn when Streamlit says that no script runs any more.
    page.wait_for_selector("[data-test-script-state=notRunning]", state="attached")


@pytest.mark.parametrize("path", PAGES)
def test_page_opens_and_shows_the_numbers(page: Any, dashboard: str, path: str) -> None:
    _open(page, f"{dashboard}/{path}")
    for words in PAGES[path]:
        page.get_by_text(words).first.wait_for(state="attached")
    if path in CHARTS:
        page.wait_for_function(
            "n => document.querySelectorAll('.js-plotly-plot .main-svg').length >= n", arg=CHARTS[path]
        )
    assert page.locator(ERROR).count() == 0
    assert page.problems == []
    assert [url for url in page.reached if not url.startswith((dashboard, "data:", "blob:", "ws:"))] == []
    width = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert width <= 1280, "nothing sticks out to the side"


def test_a_click_leads_from_the_table_to_the_run(page: Any, dashboard: str) -> None:
    _open(page, dashboard, "tr[data-href]")
    page.locator("tr", has_text="crash").locator("td").nth(2).click()
    page.get_by_text("Rank 2 on host-0 was ended by SIGKILL.").first.wait_for()
    assert page.url == f"{dashboard}/run?run=crash"
    page.locator("[data-testid=stSidebar]").get_by_text("SQL").click()
    page.wait_for_url("**/sql?run=crash*")


def test_words_of_a_log_stay_words(page: Any, dashboard: str) -> None:
    _open(page, f"{dashboard}/run?run=crash")
    page.get_by_text("Connection closed by peer <img src=x").wait_for()
    assert page.locator(".rs img").count() == 0
    assert page.title() != "owned"


def test_the_address_holds_attempt_and_window(page: Any, dashboard: str) -> None:
    t0, t1 = 1_700_000_019_000_000_000, 1_700_000_023_000_000_000
    _open(page, f"{dashboard}/run?run=crash&attempt=1&incident=1&t0={t0}&t1={t1}")
    page.get_by_text("Show the whole run").wait_for()
    panel = page.locator(".st-key-panel-init")
    panel.locator(".js-plotly-plot").wait_for()
    assert panel.get_by_text("spawn").count() == 0, "only the first attempt recorded it"
    page.get_by_text("Show the whole run").click()
    page.wait_for_url(f"{dashboard}/run?run=crash&attempt=1&incident=1")


def test_dragging_over_the_timeline_looks_closer(page: Any, dashboard: str) -> None:
    _open(page, f"{dashboard}/run?run=crash")
    plot = page.locator(".st-key-panel-timeline .js-plotly-plot")
    plot.locator(".bars").first.wait_for(state="attached")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    y = box["y"] + box["height"] - 90
    page.mouse.move(box["x"] + 300, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, y, steps=6)
    page.mouse.up()
    page.get_by_text("Show the whole run").wait_for()
    assert "t0=17000000" in page.url


def test_a_run_that_goes_on_refreshes_and_leaves_a_choice_alone(page: Any, dashboard: str) -> None:
    _open(page, f"{dashboard}/run?run=going")
    page.locator(".st-key-panel-scalar").get_by_text("tokens").click()
    page.get_by_text("tokens over steps").wait_for()
    kept = page.locator(".rs-tile", has_text="Steps kept").locator(".rs-tile-value")
    before = int(kept.inner_text())
    page.wait_for_function(
        """before => [...document.querySelectorAll('.rs-tile')].some(
            tile => tile.innerText.includes('Steps kept')
                && +tile.querySelector('.rs-tile-value').innerText >= before + 9)""",
        arg=before,
    )
    assert page.get_by_text("tokens over steps").count() == 1
    assert page.locator(ERROR).count() == 0


def _settled(page: Any, locator: Any) -> dict[str, float]:
    """The place of an element once nothing around it moves any more: charts below others are pushed down."""
    before: dict[str, float] | None = None
    while (now := locator.bounding_box()) is None or now != before:
        before = now
        page.wait_for_timeout(500)
    return now


def test_a_piece_of_the_ledger_shows_its_records(page: Any, dashboard: str) -> None:
    _open(page, f"{dashboard}/time?run=crash&by=rank")
    plot = page.locator(".st-key-panel-ledger-by .js-plotly-plot")
    piece = plot.locator(".bars .point").first  # productive time of rank 0
    piece.wait_for(state="attached")
    box = _settled(page, piece)
    page.mouse.move(box["x"] + 40, box["y"] + box["height"] / 2)
    plot.locator(".hoverlayer text").first.wait_for()  # plotly has seen the pointer
    page.mouse.click(box["x"] + 42, box["y"] + box["height"] / 2)
    page.locator(".st-key-panel-records").get_by_text("Productive of rank 0").wait_for()
    assert page.locator(ERROR).count() == 0


def test_a_slider_moves_the_scenario_and_the_address(page: Any, dashboard: str) -> None:
    _open(page, f"{dashboard}/what-if?run=crash")
    page.get_by_text("80.1\u2009%").first.wait_for()
    page.locator(".st-key-groups input").first.press("ArrowRight")
    page.wait_for_url("**groups=16**")
    page.get_by_text("80.1\u2009%").first.wait_for(state="detached")
    assert page.locator(ERROR).count() == 0


def test_sql_answers_and_refuses(page: Any, dashboard: str) -> None:
    _open(page, f"{dashboard}/sql?q=SELECT%20run_id%2C%20failures%20FROM%20v_run")
    page.get_by_text("3 rows in").wait_for()
    for sql, told in {
        "DROP TABLE run": "only SELECT is allowed here",
        "SELECT * FROM read_csv('/etc/passwd')": "disabled",
        "SELECT nothing FROM v_run": 'Referenced column "nothing" not found',
    }.items():
        page.locator("textarea").fill(sql)
        page.locator("textarea").press("Control+Enter")
        page.locator(".rs-error", has_text=told).wait_for()
    assert page.locator(ERROR).count() == 0


def test_an_empty_store_says_what_to_run(page: Any, empty_dashboard: str) -> None:
    for path in ("", "run", "run?run=gone"):
        _open(page, f"{empty_dashboard}/{path}", ".rs-empty")
        page.get_by_text("make demo").wait_for()
        assert page.locator(ERROR).count() == 0
