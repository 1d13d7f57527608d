"""Trainers of other people, run for real and small, with nothing added to them."""

import sys
from pathlib import Path

import pytest
from launched import run_recorded

pytest.importorskip("torch")
pytestmark = pytest.mark.training

_HUGGINGFACE = """
import torch
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels=None):
        y = self.layer(x).squeeze(-1)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}

data = [{"x": torch.ones(4), "labels": torch.tensor(1.0)} for _ in range(16)]
arguments = TrainingArguments(
    output_dir="out", max_steps=4, per_device_train_batch_size=2, gradient_accumulation_steps=2,
    save_steps=2, logging_steps=1, report_to=[], use_cpu=True, eval_strategy="steps", eval_steps=4,
)
Trainer(Net(), arguments, train_dataset=data, eval_dataset=data[:4]).train()
"""

_LIGHTNING = """
import torch
import lightning.pytorch as pl

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        return self.layer(batch).mean()
    def validation_step(self, batch, index):
        self.log("val", self.layer(batch).mean())
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

data = torch.utils.data.DataLoader(torch.ones(12, 4), batch_size=2)
trainer = pl.Trainer(
    max_steps=3, accumulate_grad_batches=2, accelerator="cpu", logger=False, enable_progress_bar=False,
    enable_model_summary=False, num_sanity_val_steps=0, default_root_dir="out",
)
trainer.fit(Net(), data, data)
"""

_TORCHTITAN = """
import torch
from torchtitan.observability import structured_logger as sl

sl.init_structured_logger(source="training", output_dir="out")
with sl.log_trace_span("model_parallelism_init"):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 4):
    sl.set_step(step)
    with sl.log_trace_span("step"):
        with sl.log_trace_span("fetching_batch"):
            batch = torch.ones(2, 4)
        with sl.log_trace_span("fwd_bwd"):
            loss = model(batch).mean()
            loss.backward()
        optimizer.step()
        sl.log_trace_scalar({"train.loss": loss.item()})
sl.set_step(4)
try:
    with sl.log_trace_span("step"):
        raise ValueError("a bad batch")
except ValueError:
    pass
"""


def test_huggingface(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    (tmp_path / "train.py").write_text(_HUGGINGFACE)
    run = run_recorded(tmp_path, sys.executable, "train.py", timeout_s=240)
    assert run.status == 0, run.output
    assert _steps(run.rows("SELECT step, committed FROM span WHERE category = 'step' ORDER BY step")) == [
        (0, True), (1, True), (2, True), (3, True)
    ]  # fmt: skip
    assert run.value("SELECT count(*) FROM span WHERE category = 'backward'") == 8
    assert run.value("SELECT count(*) FROM span WHERE category = 'eval'") == 1
    assert run.value("SELECT count(*) FROM scalar WHERE name = 'loss'") == 4
    assert run.value("SELECT count(*) FROM span WHERE category = 'checkpoint_save'") > 0
    assert run.rows("SELECT last_error FROM source WHERE errors > 0") == []


def test_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    (tmp_path / "train.py").write_text(_LIGHTNING)
    run = run_recorded(tmp_path, sys.executable, "train.py", timeout_s=240)
    assert run.status == 0, run.output
    assert _steps(run.rows("SELECT step, committed FROM span WHERE category = 'step' ORDER BY step")) == [
        (0, True), (1, True), (2, True)
    ]  # fmt: skip
    assert run.value("SELECT count(*) FROM span WHERE category = 'backward'") == 6
    assert run.value("SELECT count(*) FROM span WHERE category = 'eval'") == 1
    assert run.rows("SELECT last_error FROM source WHERE errors > 0") == []


def test_torchtitan(tmp_path: Path) -> None:
    pytest.importorskip("torchtitan.observability.structured_logger")
    (tmp_path / "train.py").write_text(_TORCHTITAN)
    run = run_recorded(tmp_path, sys.executable, "train.py", timeout_s=120)
    assert run.status == 0, run.output
    assert _steps(run.rows("SELECT step, committed FROM span WHERE category = 'step' ORDER BY step")) == [
        (1, True), (2, True), (3, True), (4, False)
    ]  # fmt: skip
    assert run.value("SELECT count(*) FROM span WHERE name = 'fetching_batch' AND step BETWEEN 1 AND 3") == 3
    assert run.value("SELECT count(*) FROM span WHERE category = 'optimizer'") == 3
    assert [row["step"] for row in run.rows("SELECT step FROM scalar ORDER BY step")] == [1, 2, 3]
    assert run.rows("SELECT last_error FROM source WHERE errors > 0") == []


def _steps(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(row["step"], row["committed"]) for row in rows]
