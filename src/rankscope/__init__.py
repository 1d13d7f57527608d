"""Rankscope: where the GPU-hours of a training run went, and which rank took them.

The smallest use, in a trainer:

    import rankscope
    rec = rankscope.init()
    for batch in rec.data(loader):
        with rec.step() as step:
            ...
    rec.close()
"""

from rankscope.ingest.recorder import Recorder, init

__version__ = "0.1.0"
__all__ = ["Recorder", "__version__", "init"]
