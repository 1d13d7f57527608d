"""Acting on a module right after its import."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rankscope.ingest.hooks.guard import Guard, around
from rankscope.ingest.hooks.postimport import after_import


def test_it_acts_after_the_module_has_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_module.py").write_text("value = 1\ndef function():\n    return value\n")
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[int] = []
    after_import("late_module", lambda module: seen.append(module.value))
    assert seen == []
    module = importlib.import_module("late_module")
    assert seen == [1]
    assert "return value" in inspect.getsource(module.function)  # its loader is still its own
    importlib.reload(module)
    assert seen == [1]


def test_it_acts_at_once_when_that_is_past() -> None:
    seen: list[ModuleType] = []
    after_import("json", seen.append)
    assert seen == [sys.modules["json"]]


def test_arming_all_hooks_imports_nothing_to_watch() -> None:
    program = """
import sys
from rankscope.ingest import hooks
hooks.install()
import json
names = {name.partition('.')[0] for name in sys.modules}
watched = names & {'torch', 'numpy', 'transformers', 'lightning', 'torchft'}
sys.exit(str(watched) if watched else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_hook_of_the_list_has_its_file() -> None:
    from rankscope.ingest import hooks

    folder = Path(hooks.__file__).parent
    for hook in hooks.HOOKS:
        assert "def attach(" in (folder / f"{hook.file}.py").read_text(), hook


def test_what_raises_in_a_hook_does_not_reach_the_caller() -> None:
    guard = Guard("unit begin")
    calls: list[str] = []

    def begin(args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        calls.append("begin")
        raise KeyError("ours")

    watched = around(guard, lambda x: x + 1, begin, lambda token, result, error: calls.append("end"))
    assert [watched(1), watched(2)] == [2, 3]
    assert calls == ["begin"]  # off after the first
    assert (guard.off, guard.errors) == (True, 1)


def test_what_the_original_raises_passes_even_when_the_hook_fails_too() -> None:
    guard = Guard("unit end")

    def end(token: object, result: object, error: BaseException | None) -> None:
        raise KeyError("ours")

    def original() -> None:
        raise ZeroDivisionError("theirs")

    with pytest.raises(ZeroDivisionError, match="theirs"):
        around(guard, original, lambda args, kwargs: True, end)()
    assert guard.off


def test_an_interrupt_is_not_swallowed() -> None:
    guard = Guard("unit interrupt")
    with pytest.raises(KeyboardInterrupt), guard:
        raise KeyboardInterrupt
    assert not guard.off
