"""A rank that kept its collectives in a ring and was killed inside one: the collector has its last act."""

import os
import subprocess
import sys
from pathlib import Path

from handmade import collect

from rankscope.ingest.store import Store

STEPS = 60
# 20 first steps in full, then the ring; killed inside the collective of the last step.
_RANK = """
import os, signal, sys
import rankscope
rec = rankscope.init(sys.argv[1], run="ring", hooks=False, rank=1, world_size=100_000)
for number in range(int(sys.argv[2])):
    with rec.step(number):
        for _ in range(3):
            token = rec.collective_begin("all_reduce", "0", number, 64, "float32|[16]|")
            if number == int(sys.argv[2]) - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            rec.collective_end(token)
"""


def test_ring_of_a_killed_rank_is_read(tmp_path: Path) -> None:
    spool = tmp_path / "s.spool"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    rank = subprocess.run(
        [sys.executable, "-c", _RANK, str(spool), str(STEPS)],
        env=environment | {"RANKSCOPE_DETAIL": "ring"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert rank.returncode == -9, rank.stderr
    assert len(list(spool.rglob("*.ring"))) == 1
    with Store.open(tmp_path / "s.duckdb") as store:
        assert collect(store, spool) == []
        ended = store.rows(
            "SELECT seq, count(*) AS n FROM collective WHERE end_ns IS NOT NULL GROUP BY seq ORDER BY seq"
        )
        assert ended == [{"seq": seq, "n": 3} for seq in range(STEPS - 1)]
        opened = store.rows("SELECT seq, op, pg, step FROM collective WHERE end_ns IS NULL")
        assert opened == [{"seq": STEPS - 1, "op": "all_reduce", "pg": "0", "step": STEPS - 1}]
        rolled = store.rows("SELECT step, count FROM collective_rollup ORDER BY step")
        assert rolled == [{"step": step, "count": 3} for step in range(STEPS - 1)]
        assert store.rows("SELECT complete, dropped, errors FROM source") == [
            {"complete": True, "dropped": 0, "errors": 0}
        ]
    assert [path for path in spool.rglob("*") if path.suffix in (".seg", ".ring")] == []
