"""A store for the browser tests, with truth known by construction; in seconds from each run's own zero.

    crash    4 ranks, rank 2 killed by SIGKILL at 20 s in step 15, restarted, finished
    clean    3 ranks, no failure
    going    2 ranks, still training: its last record is recent

`python story.py make STORE` writes it; `python story.py serve STORE PORT` shows it, while `going` makes a
step a second.
"""

import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from facts import FactBuilder, empty_store

from rankscope.app.dashboard import serve_pages
from rankscope.app.opening import share
from rankscope.ingest.store import Store

MARK = "<img src=x onerror=\"document.title='owned'\"> & <b>bold</b>"


def crash() -> FactBuilder:
    """The run that all numbers in the tests are about."""
    facts = FactBuilder("crash", ranks=4)
    facts.attempt(0, began=0)
    facts.attempt(1, began=22)
    for rank in range(4):
        facts.process(0, rank, spawn=0, end=20 if rank == 2 else 21, exit_code=-9 if rank == 2 else -15)
        facts.span(0, rank, "init", 0, 1, name="spawn")
        facts.span(0, rank, "init", 1, 4 if rank == 3 else 3, name="import")
        facts.span(0, rank, "init", 4, 5, name="model")
        facts.steps(0, rank, begin=5, count=15, seconds=1)
        for end in (10, 15):
            facts.span(0, rank, "checkpoint_save", end - 0.2, end, step=end - 6)
        facts.step(0, rank, 15, 20, None)
        facts.process(1, rank, spawn=22, end=37, exit_code=0)
        facts.span(1, rank, "init", 22, 27, name="import")
        facts.steps(1, rank, begin=27, count=10, seconds=1, first=10)
    for step in range(15):
        facts.scalar(0, 0, step, "loss", 5 - step * 0.1, 6 + step)
    for step in range(10, 20):
        facts.scalar(1, 0, step, "loss", 5 - step * 0.1, 18 + step)
    facts.signal(0, 2, "exit", 20, failure_kind="crash", message=f"killed {MARK}", observer="launcher")
    facts.signal(0, 1, "collective_error", 20.5, message=f"Connection closed by peer {MARK}")
    return facts


def clean() -> FactBuilder:
    """A run in which nothing failed."""
    facts = FactBuilder("clean", ranks=3)
    facts.attempt(0, began=0)
    for rank in range(3):
        facts.process(0, rank, spawn=0, end=12, exit_code=0)
        facts.steps(0, rank, begin=2, count=5, seconds=2)
    return facts


def going() -> FactBuilder:
    """A run that still goes on, after eight steps; imported, as a recorded one this old would be stalled."""
    facts = FactBuilder("going", ranks=2, origin="imported")
    facts.attempt(0, began=1000)
    for rank in range(2):
        facts.process(0, rank, spawn=1000, last=1085)
    for number in range(8):
        one_more(facts, number)
    return facts


def one_more(facts: FactBuilder, number: int) -> None:
    """The next step of `going`."""
    begin = 1005.0 + 10 * number
    for rank in range(2):
        facts.step(0, rank, number, begin, begin + 10)
    facts.scalar(0, 0, number, "loss", 4 - number * 0.01, begin + 10)
    facts.scalar(0, 0, number, "tokens", 100.0, begin + 10)


def make(path: Path) -> None:
    """Write the store."""
    con = empty_store(str(path))
    for facts in (crash(), clean(), going()):
        facts.write(con)
    con.close()


def serve(path: str, port: int) -> None:
    """The dashboard in this process, on a store that moves."""
    store = Store.open(path)
    share(store)
    con = store.cursor()

    def train() -> None:
        for number in range(8, 10_000):
            time.sleep(2)
            step = FactBuilder("going")
            step.rows.clear()
            one_more(step, number)
            step.write(con)

    threading.Thread(target=train, daemon=True).start()
    serve_pages(port, open_browser=False, about=path)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        serve(sys.argv[2], int(sys.argv[3]))
