"""Put a wrapper where a function was, under all names by which it may be called."""

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def put(module: ModuleType, wrapped: Mapping[str, Callable[..., Any]]) -> None:
    """Replace functions of `module` by name, and where other modules have taken them from it already."""
    taken: dict[int, Callable[..., Any]] = {}
    for name, wrapper in wrapped.items():
        taken[id(getattr(module, name))] = wrapper
        setattr(module, name, wrapper)
    if getattr(module.__spec__, "_initializing", False):
        return  # just being imported: nobody has taken anything yet
    for other in list(sys.modules.values()):
        names = getattr(other, "__dict__", None)
        if not isinstance(names, dict) or getattr(other, "__name__", "").startswith("rankscope."):
            continue
        for name, value in list(names.items()):
            wrapper_of = taken.get(id(value))
            if wrapper_of is not None:
                names[name] = wrapper_of
