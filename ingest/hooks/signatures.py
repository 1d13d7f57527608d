"""What a collective carries and where it was called: 'float32|4096x1024|train.py:123 in train'.

A text is made once for each place and shape, and found again by a dictionary.
"""

import os
from types import CodeType, FrameType
from typing import Any, Final

MAX_KEPT: Final = 4096  # beyond it, sizes are left out: shapes that change with every call would fill memory
_TORCH: Final = f"{os.sep}torch{os.sep}"
_HOOKS: Final = os.path.dirname(__file__)  # noqa: PTH120
_MAX_FRAMES: Final = 40

# By id of the code, kept beside the text so that the id stays its own: hashing a code reads all of it.
_kept: dict[tuple[Any, ...], tuple[str, CodeType]] = {}


def measure(value: Any) -> tuple[int, Any, Any, int]:
    """(bytes, dtype, shape of the first, count) of a tensor or a list of tensors."""
    if isinstance(value, (list, tuple)):
        if not value or not hasattr(value[0], "dtype"):
            return 0, None, (), 0
        first = value[0]
        return sum(t.nbytes for t in value), first.dtype, first.shape, len(value)
    return value.nbytes, value.dtype, value.shape, 1


def signature(frame: FrameType | None, dtype: Any, shape: Any, count: int) -> str:
    """'dtype|sizes|site', where the site is the first caller from `frame` on that is not torch or us."""
    if frame is None:
        return _text(dtype, shape, count, "")
    code = frame.f_code
    key = (id(code), frame.f_lasti, dtype, shape, count)
    found = _kept.get(key)
    if found is None:
        if len(_kept) >= MAX_KEPT:
            return f"{str(dtype)[6:]}||{_site(frame)}"
        found = _kept[key] = (_text(dtype, shape, count, _site(frame)), code)
    return found[0]


def _text(dtype: Any, shape: Any, count: int, site: str) -> str:
    sizes = "x".join(map(str, shape)) + (f" *{count}" if count > 1 else "")
    return f"{str(dtype)[6:] if dtype is not None else ''}|{sizes}|{site}"


def _site(frame: FrameType) -> str:
    walked: FrameType | None = frame
    for _ in range(_MAX_FRAMES):
        if walked is None:
            return ""
        code = walked.f_code
        if _TORCH not in code.co_filename and not code.co_filename.startswith(
            (_HOOKS, "<frozen", "<string>")
        ):
            return f"{code.co_filename.rpartition(os.sep)[2]}:{walked.f_lineno} in {code.co_name}"
        walked = walked.f_back
    return ""
