"""Runs first in every Python that `rankscope run` starts, by way of PYTHONPATH, and begins to record ranks.

It must work, or do nothing, in any interpreter: also where rankscope is not installed, or Python is older.
"""

import os
import sys


def _chain(here):  # type: ignore[no-untyped-def]
    """Run the sitecustomize that this one hides, if there is one, as if we were not here."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    ours = sys.modules.get("sitecustomize")
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])  # noqa: PTH100
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
        raise


def _begin(here):  # type: ignore[no-untyped-def]
    owner = os.environ.get("RANKSCOPE_PID", "")
    if os.environ.get("RANKSCOPE") == "0" or "RANKSCOPE_SPOOL" not in os.environ:
        return
    if owner and owner != str(os.getpid()):
        return  # a child of a rank: a data loader's worker, a compiler
    try:
        _make_importable(os.path.dirname(os.path.dirname(here)))  # noqa: PTH120
        from rankscope.ingest import boot

        boot.begin()
    except Exception as error:
        if "RANK" in os.environ:
            sys.stderr.write("rankscope: not recording this process: %s\n" % error)  # noqa: UP031


def _make_importable(package):  # type: ignore[no-untyped-def]
    """Where rankscope is not installed, make exactly it importable, and nothing that lies beside it."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    if find_spec("rankscope") is not None:
        return
    folder = os.environ.get("RANKSCOPE_PACKAGE", package)
    spec = spec_from_file_location(
        "rankscope",
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    if spec is not None and spec.loader is not None:
        sys.modules["rankscope"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


_here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
try:
    _chain(_here)
finally:
    _begin(_here)
