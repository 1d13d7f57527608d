"""A rank whose collectives lie in its ring is killed within one: the store has them all, one of them open."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from handmade import collect

from rankscope.ingest.store import Store

_RANK = """
import os, signal
import rankscope
recorder = rankscope.init(os.environ["SPOOL"], run="run", hooks=False, rank=5, world_size=8)
for _ in range(60):
    with recorder.step() as step:
        for number in range(3):
            seq = 3 * step.number + number
            token = recorder.collective_begin("all_reduce", "0", seq, 4, "float32|1|x.py:1 in f")
            recorder.collective_end(token)
recorder.collective_begin("all_gather", "0", 180, 4)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_last_collectives_of_a_killed_rank(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    environment |= {"RANKSCOPE_DETAIL": "ring", "SPOOL": str(tmp_path / "s.spool")}
    done = subprocess.run([sys.executable, "-c", _RANK], env=environment, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    with Store.open(tmp_path / "s.duckdb") as store:
        assert collect(store, tmp_path / "s.spool") == []
        assert collect(store, tmp_path / "s.spool") == []
        rows = store.rows("SELECT seq, op, site, state, step FROM collective ORDER BY seq")
        assert [row["seq"] for row in rows] == list(range(181))
        assert {row["state"] for row in rows[:-1]} == {"completed"}
        assert rows[100] == {
            "seq": 100, "op": "all_reduce", "site": "x.py:1 in f", "state": "completed", "step": 33,
        }  # fmt: skip
        assert (rows[-1]["op"], rows[-1]["state"]) == ("all_gather", "started")
        sums = store.rows("SELECT step, count, bytes, last_seq FROM collective_rollup ORDER BY step")
        assert [tuple(row.values()) for row in sums] == [(n, 3, 12, 3 * n + 2) for n in range(60)]
        (source,) = store.rows("SELECT dropped, errors, complete FROM source")
        assert source == {"dropped": 0, "errors": 0, "complete": True}
    assert list((tmp_path / "s.spool").rglob("*.ring")) == []
