"""torch.compile, FSDP2 and DTensor under the hooks: compiled code still compiles, eager code is seen."""

import shutil
from pathlib import Path

import pytest
from launched import Launched, run_recorded, torchrun

pytest.importorskip("torch")
pytestmark = pytest.mark.training

_COMPILED = """
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.nn.parallel import DistributedDataParallel

BACKEND = "@backend@"
dist.init_process_group("gloo")
size = dist.get_world_size()

@torch.compile(fullgraph=True, backend=BACKEND)
def classic(x):
    y = x * 2
    dist.all_reduce(y)
    return y + 1

@torch.compile(fullgraph=True, backend=BACKEND)
def functional(x):
    return funcol.all_reduce(x * 2, "sum", dist.group.WORLD) + 1

assert classic(torch.ones(4)).tolist() == [2 * size + 1] * 4
assert functional(torch.ones(4)).tolist() == [2 * size + 1] * 4

torch.manual_seed(0)
model = torch.compile(DistributedDataParallel(torch.nn.Linear(4, 4)), backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters())
step = torch.compile(optimizer.step, backend="aot_eager")
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    step()
    optimizer.zero_grad()
print("all steps done", flush=True)
dist.destroy_process_group()
"""

_SHARDED = """
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
whole = distribute_tensor(torch.arange(8.0), mesh, [Shard(0)]).redistribute(mesh, [Replicate()])
assert whole.to_local().tolist() == list(range(8))
assert funcol.all_reduce(torch.ones(2), "sum", mesh.get_group()).tolist() == [2.0, 2.0]
dist.destroy_process_group()
"""


def test_what_is_compiled_still_compiles(tmp_path: Path) -> None:
    backend = "inductor" if shutil.which("g++") is not None else "aot_eager"
    (tmp_path / "train.py").write_text(_COMPILED.replace("@backend@", backend))
    run = run_recorded(tmp_path, *torchrun("train.py"), timeout_s=300)
    assert run.status == 0, run.output
    assert run.output.splitlines().count("all steps done") == 2
    assert run.rows("SELECT last_error FROM source WHERE errors > 0") == []


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    folder = tmp_path_factory.mktemp("sharded")
    (folder / "train.py").write_text(_SHARDED)
    return run_recorded(folder, *torchrun("train.py"))


def test_sharded_training_is_seen(sharded: Launched) -> None:
    assert sharded.status == 0, sharded.output
    ops = {row["op"] for row in sharded.rows("SELECT DISTINCT op FROM collective WHERE rank = 0")}
    assert ops & {"all_gather_single", "all_gather_into_tensor"}
    assert ops & {"reduce_scatter_single", "reduce_scatter_tensor"}
    assert sharded.value("SELECT count(*) FROM collective WHERE end_ns IS NULL") == 0
    assert sharded.value("SELECT count(*) FROM span WHERE category = 'step' AND rank = 0 AND committed") == 2
    assert sharded.rows("SELECT last_error FROM source WHERE errors > 0") == []


def test_functional_collectives_end_when_they_are_waited_for(sharded: Launched) -> None:
    calls = sharded.rows(
        "SELECT op, state, site FROM collective WHERE rank = 1 AND op = 'all_reduce' AND is_async"
    )
    assert [(row["op"], row["state"]) for row in calls] == [("all_reduce", "completed")]
    assert calls[0]["site"].startswith("train.py:")
