"""What stands between a hook and the trainer: a hook that raises is switched off, counted and told of.

guard = Guard("ddp")  # "off" once it failed
with guard: ...                 # swallows what our own code raises, and switches the hook off
watched = around(guard, original, begin, end)
"""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from rankscope.ingest.recorder import current

ALL: Final[dict[str, "Guard"]] = {}


class Guard:
    """One hook's fuse. `off` is looked at before each use; `errors` counts what went wrong."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.off = False
        self.errors = 0
        ALL[name] = self

    def failed(self, error: BaseException) -> None:
        """The hook raised: it will not be used again in this process."""
        self.off = True
        self.errors += 1
        recorder = current()
        if recorder is not None:
            message = f"{type(error).__name__}: {error}"
            recorder.event("hook_error", hook=self.name, message=message[:1000], errors=self.errors)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.failed(error)
        return True


def around(
    guard: Guard,
    original: Callable[..., Any],
    begin: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    end: Callable[[Any, Any, BaseException | None], None],
) -> Callable[..., Any]:
    """`original` with `begin` called before and `end` after it, whatever these two do.

    Args:
        begin: takes (args, kwargs) and returns a token; None: there is nothing to record of this call.
        end: takes (token, result, error of the original or None).
    """

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if guard.off:
            return original(*args, **kwargs)
        token = None
        with guard:
            token = begin(args, kwargs)
        if token is None:
            return original(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            with guard:
                end(token, None, error)
            raise
        with guard:
            end(token, result, None)
        return result

    return watched
