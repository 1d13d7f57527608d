"""Act on a module right after its import, so that nothing is imported only to be watched.

after_import("torch.serialization", attach)      # attach(module), now if it is imported already
"""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

Callback = Callable[[ModuleType], None]
_waiting: dict[str, list[Callback]] = {}


def after_import(name: str, callback: Callback) -> None:
    """Call `callback` with module `name` once its code has run; it must not raise."""
    module = sys.modules.get(name)
    if module is not None:
        callback(module)
        return
    _waiting.setdefault(name, []).append(callback)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]


class _Finder:
    """Finds nothing itself: it asks the others, and adds the callbacks to what they found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _waiting:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                _call_after(spec)
                return spec
        return None


def _call_after(spec: ModuleSpec) -> None:
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None or isinstance(loader, type):
        return  # built into the interpreter: none of what we watch

    def execute_then_call(module: ModuleType) -> None:
        execute(module)
        for callback in _waiting.pop(spec.name, ()):
            callback(module)

    # On this one loader object, so that its type and everything else about it stay as they are.
    loader.exec_module = execute_then_call  # type: ignore[union-attr,method-assign]
