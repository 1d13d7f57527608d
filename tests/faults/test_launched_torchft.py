"""torchft for real: two replica groups under a lighthouse, with their quorums, commits and healing."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from launched import RANKSCOPE, Launched

pytest.importorskip("torch")
pytest.importorskip("torchft")
pytestmark = pytest.mark.training

_TRAINER = """
import os
from datetime import timedelta
import torch
from torch.distributed import TCPStore
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

group = int(os.environ["REPLICA_GROUP_ID"])
store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
net = torch.nn.Linear(4, 1)
def load(state):
    model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"])
def save():
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
manager = Manager(
    pg=ProcessGroupGloo(timeout=timedelta(seconds=10)), load_state_dict=load, state_dict=save,
    min_replica_size=1, replica_id=f"train_{group}", store_addr="localhost", store_port=store.port,
    rank=0, world_size=1, lighthouse_addr=os.environ["LIGHTHOUSE"], timeout=timedelta(seconds=20),
)
model = DistributedDataParallel(manager, net)
optimizer = Optimizer(manager, torch.optim.SGD(model.parameters(), lr=0.1))
while manager.current_step() < 6:
    optimizer.zero_grad()
    model(torch.ones(2, 4)).mean().backward()
    optimizer.step()
manager.shutdown(wait=False)
print("trained", flush=True)
os._exit(0)
"""


@contextlib.contextmanager
def _lighthouse() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = str(Path(sys.executable).with_name("torchft_lighthouse"))
    server = subprocess.Popen(
        [program, "--min_replicas", "2", "--join_timeout_ms", "1000", "--quorum_tick_ms", "100",
         "--heartbeat_timeout_ms", "2000", "--bind", f"127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def test_replica_groups(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TRAINER)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE")}
    with _lighthouse() as address:
        groups = [
            subprocess.Popen(
                [*RANKSCOPE, "run", "--run", "it", "--spool", "spool", "--", sys.executable, "train.py"],
                cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=environment | {
                    "REPLICA_GROUP_ID": str(group), "LIGHTHOUSE": address, "OMP_NUM_THREADS": "1",
                    "RANKSCOPE_LAUNCH_ID": "one-launch", "RANK": str(group), "WORLD_SIZE": "2",
                },
            )
            for group in range(2)
        ]  # fmt: skip
        outputs = [group.communicate(timeout=150)[0] for group in groups]
    assert [group.returncode for group in groups] == [0, 0], outputs
    run = Launched(tmp_path, subprocess.CompletedProcess([], 0, "", ""))

    steps = run.rows(
        "SELECT DISTINCT rank, step FROM span WHERE category = 'step' AND committed ORDER BY ALL"
    )
    assert {row["step"] for row in steps if row["rank"] == 0} >= {1, 2, 3, 4, 5}
    assert run.value("SELECT count(*) FROM span WHERE category = 'quorum' AND name = 'quorum'") >= 10
    assert run.value("SELECT count(*) FROM span WHERE category = 'reconfigure'") >= 2
    members = run.rows("SELECT DISTINCT replica_group FROM quorum_member ORDER BY ALL")
    assert [row["replica_group"] for row in members] == [0, 1]
    assert run.value("SELECT count(*) FROM quorum_member WHERE healing") >= 1  # at step 0 one heals the other
    assert run.value("SELECT count(*) FROM span WHERE category = 'heal'") >= 2
    assert run.value("SELECT max(value) FROM scalar WHERE name = 'participants'") == 2
    assert run.rows("SELECT last_error FROM source WHERE errors > 0") == []
