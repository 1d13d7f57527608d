"""A store of one very large run, made by SQL: by default 100,000 ranks x 2,000 steps, 200 million roll-ups.

    python tests/bench/make_large_store.py large.duckdb [--ranks 100000] [--steps 2000] [--memory 12GB]

One rank in the middle is killed at 60 % of the steps, and all resume at 50 %. Rank 17 is slow. Facts arrive
in the order of time, as from a collector; the derived tables are made by the same refresh as everywhere.
"""

import argparse
import time
from pathlib import Path

import duckdb

import rankscope
from rankscope.analytics import catalog

RUN = "large"
EPOCH_NS = 1_700_000_000_000_000_000
STEP_NS = 20_000_000_000
INIT_NS = 300_000_000_000
DETECT_NS = 45_000_000_000
RESTART_NS = 240_000_000_000
SLOW_RANK = 17
RANKS_A_HOST = 8
CHUNK_ROWS = 20_000_000
_SQL = Path(__file__).with_name("large_store")


def make(path: Path, ranks: int, steps: int, memory: str) -> None:
    """Write the store; an existing one is refused by DuckDB's own CREATE.

    Args:
        memory: what DuckDB may take while writing, as '8GB'.
    """
    failed_step, resumed_step = steps * 6 // 10, steps // 2
    resumed_ns = EPOCH_NS + INIT_NS + failed_step * STEP_NS + DETECT_NS + RESTART_NS
    attempts = [
        # attempt, spawn, first step, end of its steps
        (0, EPOCH_NS, 0, failed_step),
        (1, resumed_ns, resumed_step, steps),
    ]
    with duckdb.connect(str(path)) as con:
        con.execute(f"SET memory_limit = '{memory}'")
        con.execute((Path(rankscope.__file__).parent / "ingest" / "schema.sql").read_text())
        catalog.install(con)
        common = {"run": RUN, "ranks": ranks, "host_ranks": RANKS_A_HOST, "victim": ranks // 2}
        _run(con, "run", common | {"begin": EPOCH_NS})
        for attempt, spawn_ns, first, end in attempts:
            begun_ns = spawn_ns + INIT_NS
            ended_ns = begun_ns + (end - first) * STEP_NS + (DETECT_NS if attempt == 0 else 0)
            values = common | {"attempt": attempt, "spawn": spawn_ns, "begun": begun_ns, "ended": ended_ns}
            for name in ("attempt", "rank", "source", "process_exit", "init", "process_group"):
                _run(con, name, values)
            chunk = max(1, CHUNK_ROWS // ranks)
            for low in range(first, end, chunk):
                part = values | {
                    "low": low,
                    "high": min(low + chunk, end),
                    "first": first,
                    "step_ns": STEP_NS,
                    "slow": SLOW_RANK,
                }
                for name in ("step", "collective_rollup", "checkpoint"):
                    _run(con, name, part)
            if attempt == 0:
                _run(
                    con, "open_step", values | {"step": end, "step_begin": begun_ns + (end - first) * STEP_NS}
                )
        began = time.monotonic()
        catalog.refresh(con, RUN)
        print(f"refresh {time.monotonic() - began:.1f} s")
        con.execute("CHECKPOINT")


def _run(con: duckdb.DuckDBPyConnection, name: str, values: dict[str, object]) -> None:
    sql = (_SQL / f"{name}.sql").read_text()
    began = time.monotonic()
    con.execute(sql, {key: value for key, value in values.items() if f"${key}" in sql})
    if time.monotonic() - began > 5:
        print(f"{name} {time.monotonic() - began:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", type=Path)
    parser.add_argument("--ranks", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--memory", default="12GB")
    args = parser.parse_args()
    began = time.monotonic()
    make(args.store, args.ranks, args.steps, args.memory)
    size = args.store.stat().st_size
    print(f"{args.ranks} ranks x {args.steps} steps: {size / 1e9:.1f} GB in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
