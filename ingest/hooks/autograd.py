"""Backward passes, as torch.autograd.backward sees them: on a GPU the time to launch, not to run them."""

import functools
from types import ModuleType
from typing import Any

from rankscope.ingest.hooks.guard import Guard
from rankscope.ingest.hooks.here import rank_recorder
from rankscope.ingest.hooks.steps import steps
from rankscope.ingest.layout import Flag
from rankscope.ingest.vocabulary import SpanCategory

_guard = Guard("autograd")
_ERROR = int(Flag.ERROR)


def attach(module: ModuleType) -> None:
    """Watch torch.autograd.backward; Tensor.backward calls it by this name."""
    import torch

    original = module.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or _guard.off:
            return original(*args, **kwargs)
        token = recorder = None
        with _guard:
            recorder = rank_recorder()
            if recorder is not None:
                steps.backward(recorder)
                token = recorder.begin(SpanCategory.BACKWARD)
        if recorder is None or token is None:
            return original(*args, **kwargs)
        failed = True
        try:
            result = original(*args, **kwargs)
            failed = False
        finally:
            with _guard:
                recorder.end(token, _ERROR if failed else 0)
        return result

    setattr(module, "backward", backward)  # noqa: B010
