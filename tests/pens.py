"""Both pens, for tests that run with either."""

import pytest

from rankscope.ingest.pens import fast_pen

PENS = [
    pytest.param(False, id="python"),
    pytest.param(
        True, id="c", marks=pytest.mark.skipif(fast_pen() is None, reason="the pen in C is not built")
    ),
]
