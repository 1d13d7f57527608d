"""How recording begins in a process that `rankscope run` started: see sitecustomize.py beside this file."""

import os

from rankscope.ingest import hooks, recorder


def begin() -> None:
    """Record this process if it is a rank; else be ready for it to become one.

    A process without RANK may be anything: a shell's tool, a launcher, a trainer of one process. It becomes
    a rank when it makes an optimizer or a process group, and a launcher when it runs torchelastic's agent.
    """
    if os.environ.get("RANK"):
        recorder.init()
    else:
        hooks.install()
