"""The recorder of this process as hooks want it: a rank's, or none."""

from rankscope.ingest import recorder as _module
from rankscope.ingest.recorder import Recorder


def rank_recorder() -> Recorder | None:
    """The recorder, when this process is a rank that records."""
    found = _module._current
    return found if found is not None and found.enabled and found.identity.role == "rank" else None
