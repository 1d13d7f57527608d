"""Hooks: one file per thing hooked, installed in this order."""

from rankscope.ingest.recorder import Recorder


def install(recorder: Recorder) -> None:
    """Hook everything that can be hooked."""
