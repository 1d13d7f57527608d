"""The dashboard without a browser: numbers in words, HTML that escapes, figures that stay small."""

import pyarrow as pa
import pytest

from rankscope.app import human
from rankscope.app.charts.ledger import ink_on, ledger_bar
from rankscope.app.charts.timeline import Window, timeline
from rankscope.app.console import limited
from rankscope.app.lanes import LANES, parse, pick
from rankscope.app.markup import div, join, tag
from rankscope.app.theme import LEDGER
from rankscope.ingest.errors import UserError
from rankscope.ingest.vocabulary import LedgerCategory


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.00000042, "420 ns"),
        (0.0123, "12.3 ms"),
        (0.99951, "1 s"),
        (9.324, "9.32 s"),
        (99.96, "1 min 40 s"),
        (600, "10 min"),
        (3599.6, "1 h"),
        (5000, "1 h 23 min"),
        (86400 * 30 + 3600 * 5, "30 d 5 h"),
        (-2, "−2 s"),
    ],
)
def test_seconds(value: float | None, words: str) -> None:
    assert human.seconds(value).replace("\u2009", " ") == words


def test_a_small_share_never_reads_as_none() -> None:
    assert human.percent(0.0) == "0.0\u2009%"
    assert human.percent(0.0001) == "<\u20090.1\u2009%"
    assert human.percent(None) == "–"


def test_text_is_escaped_wherever_it_stands() -> None:
    evil = "<script>alert('x')</script>\""
    html = div("a", evil, tag("b", evil, title=evil), [evil], None)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 4
    assert join(tag("i", "x") + evil).count("<") == 2, "what is joined to HTML is escaped too"


def test_every_category_has_a_colour_of_its_own() -> None:
    assert set(LEDGER) == {category.value for category in LedgerCategory}
    assert len({category.color for category in LEDGER.values()}) == len(LEDGER)


def test_the_ledger_bar_closes_to_a_hundred() -> None:
    shares = {"productive": 0.5, "init": 0.3, "unexplained": 0.2}
    table = pa.table(
        {
            "category": list(shares),
            "rank_s": [value * 100 for value in shares.values()],
            "share_ratio": list(shares.values()),
        }
    )
    figure = ledger_bar(table, "light")
    assert sum(bar.x[0] for bar in figure.data) == pytest.approx(100)
    assert [bar.name for bar in figure.data] == ["Productive", "Init", "Unexplained"]


def test_lanes_hold_the_root_causes_of_a_large_run() -> None:
    picked = pick(100_000, [], [12_345, 99_999, 12_345])
    assert len(picked) <= LANES
    assert {12_345, 99_999, 0} <= set(picked)
    assert picked == sorted(set(picked))
    assert pick(3, [], [1]) == [0, 1, 2]
    assert pick(100, parse("3-5, 70,x,900"), []) == [3, 4, 5, 70]


def test_a_timeline_stays_under_5000_marks() -> None:
    lanes, buckets, second = 32, 112, 10**9
    rows = [(lane, bucket) for lane in range(lanes) for bucket in range(buckets)]
    pieces = pa.table(
        {
            "lane": [lane for lane, _ in rows],
            "category": ["productive" if bucket % 2 else "lost" for _, bucket in rows],
            "begin_ns": [bucket * second for _, bucket in rows],
            "end_ns": [(bucket + 1) * second for _, bucket in rows],
        }
    )
    steps = pa.table(
        {"attempt": [0] * 900, "step": list(range(900)), "end_ns": list(range(900)), "kept": [True] * 900}
    )
    incidents = [
        {"incident_id": i, "began_ns": i * second, "root_rank": i, "kind": "crash"} for i in range(300)
    ]
    figure = timeline(
        pieces,
        [f"rank {lane}" for lane in range(lanes)],
        [],
        steps,
        incidents,
        Window(0, buckets * second),
        "dark",
    )
    marks = sum(len(trace.y) for trace in figure.data) + len(figure.layout.shapes)
    assert marks <= 5000


def test_labels_read_on_their_colour() -> None:
    assert ink_on("#FFFFFF") == "#10151B"
    assert ink_on("#0072B2") == "#FFFFFF"


def test_sql_is_cut_to_the_limit_and_only_reads() -> None:
    assert limited("FROM v_run;  ").endswith("LIMIT 10001")
    with pytest.raises(UserError, match="only SELECT"):
        limited("DROP TABLE run")
    with pytest.raises(UserError):
        limited("SELECT 1) ; DROP TABLE run; SELECT * FROM (SELECT 1")
