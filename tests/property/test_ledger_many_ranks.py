"""Ten thousand ranks with random lives: each one's ledger closes exactly, with no gap or overlap."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from facts import EPOCH_NS, empty_store

from rankscope.analytics import catalog
from rankscope.ingest.vocabulary import SpanCategory

RANKS = 10_000
_LENGTH_NS = 100_000_000_000
_CATEGORIES = [category.value for category in SpanCategory if category not in ("step", "restart")]


@pytest.mark.parametrize("seed", [1])
def test_ten_thousand_random_ranks_close(seed: int) -> None:
    rng = np.random.default_rng(seed)
    con = empty_store()
    spawn = EPOCH_NS + rng.integers(0, _LENGTH_NS // 4, RANKS)
    end = spawn + rng.integers(0, _LENGTH_NS // 2, RANKS)
    rank = np.arange(RANKS, dtype=np.int32)
    con.execute(
        "INSERT INTO run (run_id, planned_ranks, origin) VALUES ('many', $ranks, 'recorded')",
        {"ranks": RANKS},
    )
    con.execute(
        "INSERT INTO attempt (run_id, attempt, launch_id, restart_count, world_size) "
        "VALUES ('many', 0, 'l', 0, $ranks)",
        {"ranks": RANKS},
    )
    _insert(con, "rank", {"rank": rank, "spawn_ns": spawn, "began_ns": spawn, "role": ["rank"] * RANKS})
    dead = rng.random(RANKS) < 0.8
    codes = rng.choice([0, -9, -15, 1], RANKS)
    _insert(con, "process_exit", {"rank": rank[dead], "time_ns": end[dead], "exit_code": codes[dead]})
    _insert(con, "heartbeat", {"rank": rank, "last_ns": end, "source_id": np.arange(RANKS)})

    # Spans of every kind, anywhere in a life and beyond it; a tenth of the steps never ended.
    of = rng.integers(0, RANKS, RANKS * 12)
    begin = spawn[of] + (rng.random(len(of)) * (end - spawn)[of]).astype(np.int64)
    stop = begin + rng.integers(0, _LENGTH_NS // 8, len(of))
    kind = rng.choice([*_CATEGORIES, *["step"] * len(_CATEGORIES)], len(of))
    is_step = kind == "step"
    is_open = is_step & (rng.random(len(of)) < 0.1)
    step = rng.integers(0, 50, len(of))
    closed = ~is_open
    _insert(
        con, "span",
        {
            "rank": of[closed], "category": kind[closed], "step": step[closed], "begin_ns": begin[closed],
            "end_ns": np.minimum(stop, np.maximum(begin, end[of]))[closed],
            "committed": (rng.random(len(of)) < 0.9)[closed], "status": ["ok"] * int(closed.sum()),
        },
    )  # fmt: skip
    _insert(
        con, "open_span",
        {"rank": of[is_open], "category": kind[is_open], "step": step[is_open], "begin_ns": begin[is_open]},
    )  # fmt: skip
    catalog.refresh(con, "many")

    frame = con.execute("SELECT end_ns - begin_ns FROM d_frame").fetchone()
    assert frame is not None
    wrong = con.execute(
        "SELECT count(*) FROM (SELECT rank, sum(ns) AS ns FROM v_ledger GROUP BY rank) WHERE ns <> $wall",
        {"wall": frame[0]},
    ).fetchone()
    assert wrong == (0,)
    total = con.execute("SELECT ledger_total_ns FROM v_run").fetchone()
    assert total is not None and int(total[0]) == frame[0] * RANKS
    torn = con.execute(
        """
        SELECT count(*) FROM (
            SELECT begin_ns, end_ns, lag(end_ns) OVER (PARTITION BY rank ORDER BY begin_ns) AS before_ns
            FROM v_ledger_interval)
        WHERE begin_ns >= end_ns OR before_ns <> begin_ns
        """
    ).fetchone()
    assert torn == (0,)
    seen = {row[0] for row in con.execute("SELECT DISTINCT category FROM v_ledger").fetchall()}
    assert {"lost", "productive", "init", "quorum", "heal", "checkpoint", "absent", "unexplained"} <= seen


def _insert(con: duckdb.DuckDBPyConnection, table: str, columns: dict[str, object]) -> None:
    rows = pa.table(columns)
    size = rows.num_rows
    rows = rows.append_column("run_id", pa.array(["many"] * size))
    for name in ("attempt", "incarnation"):
        rows = rows.append_column(name, pa.array(np.zeros(size, dtype=np.int32)))
    con.register("incoming", rows)
    con.execute(f"INSERT INTO {table} BY NAME FROM incoming")
    con.unregister("incoming")
