"""DDP must give the same results, to the last bit, when it is watched: on three ranks, on uneven inputs."""

from pathlib import Path

import pytest
from launched import run_plain, run_recorded, torchrun

pytest.importorskip("torch")
pytestmark = pytest.mark.training

_TRAINER = """
import copy, io, os
import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()

def made(**options):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    return DistributedDataParallel(layers, bucket_cap_mb=0.0005, **options)

def trained(model, batches, seed=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(100 * seed + rank)
    for _ in range(batches):
        optimizer.zero_grad()
        model(torch.randn(4, 8, generator=generator)).pow(2).mean().backward()
        optimizer.step()

def show(name, model):
    bits = [p.detach().view(torch.int32).sum(dtype=torch.int64).item() for p in model.parameters()]
    os.write(1, f"bits {name} {rank} {bits}\\n".encode())  # one write: ranks share the stream

def doubled(state, bucket):
    state.append(bucket.index())
    future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(lambda done: done.value()[0] * 2)

plain = made()
trained(plain, 4)
show("plain", plain)

views = made(gradient_as_bucket_view=True, find_unused_parameters=True)
trained(views, 4)
with views.no_sync():
    views(torch.ones(1, 8)).sum().backward()
trained(views, 1)
show("views", views)

for divide in (True, False):
    uneven = made()
    trained(uneven, 1)
    with Join([uneven], divide_by_initial_world_size=divide):
        trained(uneven, 2 + rank, seed=2)
    show(f"uneven {divide}", uneven)

early, late = made(), made()
calls = []
early.register_comm_hook(calls, doubled)
trained(early, 2)
show("early", early)
trained(copy.deepcopy(plain), 1)
torch.save(plain, io.BytesIO())
trained(plain, 1)
show("copied", plain)
if "@watched@":
    trained(late, 1)  # without us, torch takes no hook after this
    late.register_comm_hook(calls, doubled)
    before = len(calls)
    trained(late, 1)
    assert len(calls) > before
    try:
        late.register_comm_hook(calls, doubled)
    except RuntimeError as error:
        os.write(1, b"refused\\n")
dist.destroy_process_group()
"""


def test_results_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    outputs = []
    for name in ("plain", "watched"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(_TRAINER.replace("@watched@", "yes" if name == "watched" else ""))
        command = torchrun("train.py", ranks=3)
        if name == "plain":
            done = run_plain(folder, *command, timeout_s=240)
            assert done.returncode == 0, done.stdout + done.stderr
            outputs.append(done.stdout)
        else:
            run = run_recorded(folder, *command, timeout_s=240)
            assert run.status == 0, run.output
            outputs.append(run.output)
            assert run.output.count("refused") == 3
            assert run.rows("SELECT last_error FROM source WHERE errors > 0") == []
            assert run.value("SELECT count(*) FROM rank WHERE role = 'rank'") == 3, run.output
            assert run.value("SELECT count(*) FROM collective WHERE site LIKE 'ddp bucket%'") > 0
            assert run.value("SELECT count(*) FROM collective WHERE end_ns IS NULL") == 0
    plain, watched = (
        sorted(line for line in text.splitlines() if line.startswith("bits")) for text in outputs
    )
    assert len(plain) == 3 * 6
    assert watched == plain
