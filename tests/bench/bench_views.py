"""How long the views take that pages read, on a large store: each under a second and under 4 GB.

python tests/bench/make_large_store.py large.duckdb
python tests/bench/bench_views.py large.duckdb
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb

LIMIT_S = 1.0
MEMORY = "4GB"  # DuckDB refuses what needs more
# What a page asks of each view: all of a small one, a run's worth of a wide one summed, one rank of the widest.
QUESTIONS: dict[str, str] = {
    "runs": "SELECT * FROM v_run ORDER BY began_ns",
    "run": "SELECT * FROM v_run WHERE run_id = $run",
    "attempts": "SELECT * FROM v_attempt WHERE run_id = $run",
    "ledger": "SELECT * FROM v_ledger_total WHERE run_id = $run",
    "ledger by attempt": "SELECT attempt, category, sum(ns) FROM v_ledger WHERE run_id = $run GROUP BY ALL",
    "ledger by host": "SELECT host, category, sum(ns) FROM v_ledger WHERE run_id = $run GROUP BY ALL",
    "ledger, worst ranks": "SELECT rank, sum(ns) FILTER (category = 'productive') AS ns FROM v_ledger "
    "WHERE run_id = $run GROUP BY rank ORDER BY ns LIMIT 40",
    "ledger by cause": "SELECT * FROM v_ledger_cause WHERE run_id = $run",
    "ledger by minute": "SELECT * FROM v_ledger_minute WHERE run_id = $run",
    "ledger by step": "SELECT * FROM v_ledger_step WHERE run_id = $run",
    "ledger of one rank": "SELECT * FROM v_ledger_interval WHERE run_id = $run AND rank = $rank ORDER BY begin_ns",
    "records of one rank": "SELECT * FROM v_ledger_source WHERE run_id = $run AND rank = $rank",
    "sliding hour": "SELECT * FROM v_ett_hour WHERE run_id = $run",
    "steps": "SELECT * FROM v_step_summary WHERE run_id = $run ORDER BY attempt, step",
    "steps of one rank": "SELECT * FROM v_step WHERE run_id = $run AND rank = $rank ORDER BY begin_ns",
    "start-up by phase": "SELECT * FROM v_init_phase WHERE run_id = $run",
    "start-up, slowest ranks": "SELECT rank, sum(duration_ns) AS ns FROM v_init_rank WHERE run_id = $run "
    "GROUP BY rank ORDER BY ns DESC LIMIT 20",
    "incidents": "SELECT * FROM v_incident WHERE run_id = $run",
    "evidence": "SELECT * FROM v_evidence WHERE run_id = $run AND ordinal <= 20",
    "recovery": "SELECT * FROM v_restart_cost WHERE run_id = $run",
    "expected ratio": "SELECT * FROM v_ettr_inputs WHERE run_id = $run",
    "coverage": "SELECT * FROM v_coverage WHERE run_id = $run",
    "lateness by host": "SELECT host, avg(late_mean_ns) FROM v_lateness WHERE run_id = $run GROUP BY host",
    "lateness by mesh": "SELECT mesh ->> 'dp' AS dp, mesh ->> 'pp' AS pp, avg(late_mean_ns) FROM v_lateness "
    "WHERE run_id = $run GROUP BY ALL",
    "imposed wait": "SELECT rank, imposed_ns FROM v_imposed_wait WHERE run_id = $run ORDER BY imposed_ns DESC LIMIT 20",
    "failures by cause": "SELECT * FROM v_failure_cause",
    "failures by host": "SELECT * FROM v_host_failure ORDER BY failures DESC LIMIT 20",
    "failure rate": "SELECT * FROM v_failure_rate",
    "restarts": "SELECT * FROM v_restart WHERE run_id = $run",
    "liveness": "SELECT * FROM v_liveness",
    "checkpoints": "SELECT * FROM v_checkpoint WHERE run_id = $run",
    "ranks": "SELECT count(*), min(ended_ns), max(ended_ns) FROM v_rank WHERE run_id = $run",
}


@dataclass(frozen=True)
class Answer:
    """One question's time. `problem` is what DuckDB said instead of an answer."""

    name: str
    seconds: float
    rows: int
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Within the limit."""
        return not self.problem and self.seconds < LIMIT_S


def measure(path: Path, run_id: str = "large", rank: int = 4711) -> list[Answer]:
    """Ask each question twice, in an own process' connection with little memory; the second time counts."""
    answers = []
    with duckdb.connect(str(path), read_only=True, config={"memory_limit": MEMORY}) as con:
        for name, sql in QUESTIONS.items():
            values = {key: value for key, value in {"run": run_id, "rank": rank}.items() if f"${key}" in sql}
            try:
                for _ in range(2):
                    began = time.perf_counter()
                    rows = con.execute(sql, values).to_arrow_table().num_rows
                    seconds = time.perf_counter() - began
                answers.append(Answer(name, seconds, rows))
            except duckdb.Error as error:
                answers.append(Answer(name, time.perf_counter() - began, 0, str(error).splitlines()[0]))
    return answers


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
