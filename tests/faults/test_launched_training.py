"""Plain training scripts, not a line of them changed: what `rankscope run` sees of them."""

from pathlib import Path

import pytest
from launched import Launched, run_plain, run_recorded, torchrun

pytest.importorskip("torch")
pytestmark = pytest.mark.training

_TRAINER = """
import os, sys
import torch
import torch.distributed as dist
from torch.distributed import all_reduce
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
layers = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
model = DistributedDataParallel(layers, bucket_cap_mb=0.001)
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(24, 8) + rank), batch_size=4)
for number, (x,) in enumerate(loader):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if number == 2 and rank == 0:
        torch.save(model.module.state_dict(), "checkpoint.pt")
dist.barrier()
torch.load("checkpoint.pt")
other = dist.new_group([1, 0], group_desc="pair")
dist.all_reduce(torch.ones(3), group=other, async_op=True).wait()
all_reduce(torch.ones(5))
dist.all_gather_object([None] * size, {"rank": rank})
dist.all_gather_single(torch.empty(2 * size), torch.ones(2))
if rank == 0:
    dist.send(torch.ones(2), 1)
else:
    dist.recv(torch.ones(2), 0)
pair = [dist.P2POp(dist.isend, torch.ones(2), 1 - rank), dist.P2POp(dist.irecv, torch.empty(2), 1 - rank)]
for work in dist.batch_isend_irecv(pair):
    work.wait()
with dist.distributed_c10d._coalescing_manager():
    dist.all_reduce(torch.ones(2))
    dist.all_reduce(torch.ones(2))
total = sum(p.double().sum().item() for p in model.parameters())
print(f"weights of {rank}: {total!r}")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "train.py").write_text(_TRAINER)
    return run_recorded(folder, *torchrun("train.py"))


def test_it_ends_as_it_would(trained: Launched, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TRAINER)
    plain = run_plain(tmp_path, *torchrun("train.py"))
    assert trained.status == plain.returncode == 0, trained.output
    assert _weights(trained.output) == _weights(plain.stdout) != []


def test_all_phases_of_start_up_are_there(trained: Launched) -> None:
    phases = trained.rows(
        "SELECT rank, list(DISTINCT name) AS names FROM span WHERE category = 'init' GROUP BY rank"
    )
    seen = {row["rank"]: set(row["names"]) for row in phases}
    wanted = {"spawn", "import", "store", "process_group", "communicator", "model", "first_batch"}
    assert wanted <= seen[0]
    assert wanted <= seen[1]
    assert {"rendezvous", "spawn"} <= seen[-1]
    assert trained.value("SELECT count(*) FROM span WHERE end_ns < begin_ns") == 0


def test_steps_are_found_and_committed(trained: Launched) -> None:
    steps = trained.rows("SELECT rank, step, committed FROM span WHERE category = 'step' ORDER BY rank, step")
    assert [(row["rank"], row["step"]) for row in steps] == [
        (rank, step) for rank in (0, 1) for step in range(6)
    ]
    assert all(row["committed"] for row in steps)
    counts = trained.rows(
        "SELECT category, count(*) AS n FROM span WHERE rank = 1 GROUP BY category ORDER BY category"
    )
    seen = {row["category"]: row["n"] for row in counts}
    assert seen["forward"] == seen["backward"] == seen["optimizer"] == 6
    assert seen["data_wait"] == 8  # start of the loader, 6 batches, and the end of the data


def test_checkpoints_carry_the_step_to_resume_at(trained: Launched) -> None:
    (save,) = trained.rows("SELECT rank, step, status FROM span WHERE category = 'checkpoint_save'")
    assert (save["rank"], save["step"], save["status"]) == (0, 3, "ok")
    assert trained.value("SELECT count(*) FROM span WHERE category = 'checkpoint_load'") == 2


def test_every_collective_begins_and_ends(trained: Launched) -> None:
    assert trained.value("SELECT count(*) FROM collective WHERE end_ns IS NULL OR state <> 'completed'") == 0
    calls = trained.rows("SELECT rank, op, count(*) AS n FROM collective GROUP BY rank, op")
    seen = {(row["rank"], row["op"]): row["n"] for row in calls}
    for rank in (0, 1):
        for op in (
            "barrier", "all_gather_object", "all_gather_single", "isend", "irecv", "all_reduce_coalesced",
        ):  # fmt: skip
            assert seen[rank, op] == 1, op
    assert seen[0, "send"] == seen[1, "recv"] == 1


def test_positions_in_a_group_match_on_all_ranks(trained: Launched) -> None:
    unmatched = trained.value("""
        SELECT count(*) FROM (
            SELECT pg, seq, count(DISTINCT rank) AS ranks, count(DISTINCT (op, bytes, site)) AS kinds
            FROM collective WHERE NOT is_p2p GROUP BY pg, seq HAVING ranks <> 2 OR kinds <> 1)""")
    assert unmatched == 0


def test_buckets_of_ddp_are_seen(trained: Launched) -> None:
    buckets = trained.rows(
        "SELECT rank, step, bytes, is_async FROM collective WHERE site LIKE 'ddp bucket%' ORDER BY rank, step"
    )
    assert {(row["rank"], row["step"]) for row in buckets} == {
        (rank, step) for rank in (0, 1) for step in range(6)
    }
    weights = 8 * 64 + 64 + 64 + 1
    per_step = trained.rows(
        "SELECT sum(bytes) AS bytes FROM collective WHERE site LIKE 'ddp bucket%' GROUP BY rank, step"
    )
    assert {int(row["bytes"]) for row in per_step} == {4 * weights}


def test_groups_have_their_members_and_calls_their_site(trained: Launched) -> None:
    groups = trained.rows(
        "SELECT DISTINCT description, ranks, backend FROM process_group ORDER BY description"
    )
    assert [(row["description"], row["ranks"]) for row in groups] == [
        ("default_pg", [0, 1]),
        ("pair", [0, 1]),
    ]
    sites = trained.rows("SELECT DISTINCT site, sizes FROM collective WHERE bytes = 20")
    assert [(row["site"].split(":")[0], row["sizes"]) for row in sites] == [("train.py", "5")]


def test_no_hook_failed(trained: Launched) -> None:
    assert trained.rows("SELECT last_error FROM source WHERE errors > 0 OR dropped > 0") == []
    run = trained.rows("SELECT framework, backend, device_kind, planned_ranks FROM run")[0]
    assert run["framework"].startswith("torch 2")
    assert (run["backend"], run["planned_ranks"]) == ("gloo", 2)


def _weights(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if line.startswith("weights of"))
