"""How long the questions take that pages ask of a large store: each under a second and under 4 GB.

    python tests/bench/make_large_store.py large.duckdb
    python tests/bench/bench_views.py large.duckdb

Asked are the charts' own queries (analytics/queries) and, per public view, what view_questions.toml says.
"""

import argparse
import re
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import duckdb

import rankscope

LIMIT_S = 1.0
MEMORY = "4GB"  # DuckDB refuses what needs more
_QUERIES = Path(rankscope.__file__).parent / "analytics" / "queries"
_VIEWS = Path(__file__).with_name("view_questions.toml")


@dataclass(frozen=True)
class Answer:
    """One question's time. `problem` is what DuckDB said instead of an answer."""

    name: str
    seconds: float
    rows: int
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Answered within the limit."""
        return not self.problem and self.seconds < LIMIT_S


def measure(path: Path, run_id: str = "large", rank: int = 4711) -> list[Answer]:
    """Ask each question twice over a connection with little memory; the second time counts."""
    with duckdb.connect(str(path), read_only=True, config={"memory_limit": MEMORY}) as con:
        values = _values(con, run_id, rank)
        return [_ask(con, name, sql, values) for name, sql in questions().items()]


def questions() -> dict[str, str]:
    """All questions by name."""
    charts = {f"chart {path.stem}": path.read_text() for path in sorted(_QUERIES.glob("*.sql"))}
    return charts | tomllib.loads(_VIEWS.read_text())


def _values(con: duckdb.DuckDBPyConnection, run_id: str, rank: int) -> dict[str, object]:
    """A value for each parameter that a question may have."""
    row = con.execute(
        "SELECT began_ns, ended_ns, ranks FROM v_run WHERE run_id = $run", {"run": run_id}
    ).fetchone()
    if row is None:
        raise SystemExit(f"there is no run {run_id} in this store")
    one = {"run": run_id, "rank": rank, "attempt": 0, "incident": 1, "host": None, "group": None}
    sizes = {"limit": 40, "points": 2000, "buckets": 500, "window": 30, "lanes": 100, "every": 1}
    sizes["picked"] = list(range(32))
    words = {"category": "lost", "by": "host", "scalar": "loss"}
    return one | sizes | words | {"t0": row[0], "t1": row[1], "ranks": row[2]}


def _ask(con: duckdb.DuckDBPyConnection, name: str, sql: str, values: dict[str, object]) -> Answer:
    wanted = set(re.findall(r"\$(\w+)", re.sub(r"--.*", "", sql)))
    if not wanted <= set(values):
        return Answer(name, 0, 0, f"no value is known for {', '.join(sorted(wanted - set(values)))}")
    asked = {key: values[key] for key in wanted}
    began = time.perf_counter()
    try:
        con.execute(sql, asked).to_arrow_table()
        began = time.perf_counter()
        rows = con.execute(sql, asked).to_arrow_table().num_rows
    except duckdb.Error as error:
        return Answer(name, time.perf_counter() - began, 0, str(error).splitlines()[0])
    return Answer(name, time.perf_counter() - began, rows)


def main() -> int:
    """Print the times; 1 when one is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", type=Path)
    parser.add_argument("--run", default="large")
    parser.add_argument("--rank", type=int, default=4711)
    args = parser.parse_args()
    answers = measure(args.store, args.run, args.rank)
    for answer in answers:
        mark = "ok  " if answer.ok else "OVER"
        print(
            f"{mark} {answer.seconds * 1000:8.0f} ms {answer.rows:8d} rows  {answer.name}  {answer.problem}"
        )
    return 0 if all(answer.ok for answer in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
