"""A small soak: writers and collectors killed at random. The large one is tests/bench/soak.py."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def _soak() -> ModuleType:
    path = Path(__file__).parents[1] / "bench" / "soak.py"
    spec = importlib.util.spec_from_file_location("soak", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["soak"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_twenty_five_kills(tmp_path: Path) -> None:
    outcome = _soak().soak(tmp_path, kills=25, limit_s=240, seed=7)
    assert outcome.writers_killed + outcome.collectors_killed >= 25
    assert outcome.events > 0
    assert outcome.is_good, vars(outcome)
