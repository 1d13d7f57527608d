"""What the demo is made of: plan, progress, data order, checkpoints."""

import itertools
from pathlib import Path

import pytest
import torch

from rankscope.app.demo.plan import make_plan
from rankscope.ingest.errors import UserError
from rankscope.sample_data.progress import Progress, append_progress, last_progress, read_progress
from rankscope.sample_data.trainers import checkpoint
from rankscope.sample_data.trainers.corpus import ExactOrder, Windows, load_corpus
from rankscope.sample_data.trainers.model import ByteTransformer, Shape


@pytest.mark.parametrize("steps", [10, 23, 60, 200, 1000])
def test_fault_comes_between_two_checkpoints(tmp_path: Path, steps: int) -> None:
    plan = make_plan(store=str(tmp_path / "s.duckdb"), steps=steps)
    assert plan.kill_step > plan.checkpoint_every, "something to resume from"
    assert plan.kill_step % plan.checkpoint_every >= 1, "something to lose"
    assert plan.kill_step < plan.steps, "something left to do"


def test_plan_keeps_its_files_beside_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANKSCOPE_SPOOL", raising=False)
    plan = make_plan(store=str(tmp_path / "s.duckdb"), run="a")
    assert plan.spool == tmp_path / "s.spool"
    assert plan.folder == tmp_path / "s.demo" / "a"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"store": "quack:host:1"}, 1),
        ({"kill_rank": 4}, 2),
        ({"steps": 3}, 2),
        ({"steps": 50, "kill_step": 50}, 2),
        ({"run": "../elsewhere"}, 2),
    ],
)
def test_impossible_plans_are_refused(asked: dict[str, object], status: int) -> None:
    with pytest.raises(UserError) as error:
        make_plan(**asked)  # type: ignore[arg-type]
    assert error.value.status == status


def test_a_name_is_used_once(tmp_path: Path) -> None:
    plan = make_plan(store=str(tmp_path / "s.duckdb"), run="a")
    plan.folder.mkdir(parents=True)
    with pytest.raises(UserError, match="--run"):
        make_plan(store=str(tmp_path / "s.duckdb"), run="a")


def test_half_written_progress_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    assert last_progress(path) is None
    told = [Progress(step, 3, 1.0 / step, step) for step in (1, 2)]
    for now in told:
        append_progress(path, now)
    with path.open("a") as file:
        file.write('{"step": 3')
    assert last_progress(path) == told[-1]
    assert read_progress(path) == told


def test_order_after_a_restart_is_as_without_one() -> None:
    def seen(first_step: int, steps: int) -> list[int]:
        order = ExactOrder(samples=50, batch_size=3, rank=1, world_size=2, first_step=first_step)
        return list(itertools.islice(order, 3 * steps))

    whole = seen(0, 20)  # more than two epochs of 8 steps
    for step in range(20):
        assert seen(step, 20 - step) == whole[3 * step :]


def test_ranks_share_an_epoch_without_overlap() -> None:
    shares = [list(itertools.islice(ExactOrder(48, 3, rank, 4, 0), 12)) for rank in range(4)]
    assert sorted(itertools.chain(*shares)) == list(range(48))


def test_windows_cut_the_corpus() -> None:
    corpus = load_corpus(1000)
    windows = Windows(corpus, 97)
    assert len(windows) == 10
    assert windows[9].tolist() == corpus[9 * 97 : 10 * 97].tolist()


def test_model_has_a_few_hundred_thousand_weights_and_learns_one_batch() -> None:
    torch.manual_seed(0)
    shape = Shape()
    model = ByteTransformer(shape)
    assert 200_000 < sum(weight.numel() for weight in model.parameters()) < 800_000
    windows = Windows(load_corpus(10_000), shape.context + 1)
    batch = torch.stack([windows[index] for index in range(2)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        loss = model(batch)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] - 1


def test_newest_whole_checkpoint_is_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    assert checkpoint.load_latest(folder) is None
    for step in (5, 10, 100):
        checkpoint.save(folder, step, {"weight": torch.tensor([float(step)])})
    (folder / "step-200.draft").write_bytes(b"killed while writing")
    found = checkpoint.load_latest(folder)
    assert found is not None
    step, state = found
    assert (step, state["weight"].item()) == (100, 100.0)
    assert sorted(path.name for path in folder.glob("*.pt")) == ["step-10.pt", "step-100.pt"]
