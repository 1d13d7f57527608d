"""What Rankscope needs of a machine, each thing tried."""

import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rankscope.ingest.errors import UserError

# What each part needs beyond the recorder, which needs nothing: distribution, and what it is for.
_WANTED = (
    ("duckdb", True, "the store"),
    ("duckdb-extension-quack", True, "reading a store that another process has open"),
    ("duckdb-extension-httpfs", True, "reading a store that another process has open"),
    ("duckdb-extension-ducklake", False, "stores in a lake"),
    ("pyarrow", True, "the collector"),
    ("numpy", True, "the collector"),
    ("streamlit", True, "the dashboard"),
    ("plotly", True, "the dashboard"),
    ("torch", False, "hooks in a trainer, and the demo"),
    ("torchft-nightly", False, "fault-tolerant training"),
)
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "fuse.sshfs", "9p"}
)


@dataclass(frozen=True)
class Check:
    """One thing that was tried."""

    what: str
    ok: bool
    found: str
    needed: bool = True
    advice: str = ""


def check_all(store_url: str | None) -> list[Check]:
    """Try everything; nothing is left behind."""
    return [_python(), *_packages(), _accelerator(), _store(store_url), *_spool(store_url), _browser()]


def _python() -> Check:
    version = sys.version.split()[0]
    return Check("Python", sys.version_info >= (3, 11), version, advice="Python 3.11 or newer is needed")


def _packages() -> list[Check]:
    checks = []
    for name, needed, purpose in _WANTED:
        try:
            version = importlib.metadata.version(name)
            checks.append(Check(name, True, f"{version} ({purpose})", needed))
        except importlib.metadata.PackageNotFoundError:
            extra = "torchft" if name.startswith("torchft") else "dash"
            advice = "pip install torch" if name == "torch" else f"pip install 'rankscope[{extra}]'"
            checks.append(Check(name, False, f"not installed ({purpose})", needed, advice))
    return checks


def _accelerator() -> Check:
    try:
        from rankscope.ingest import _fast  # type: ignore[attr-defined]
    except ImportError:
        return Check(
            "recorder in C",
            False,
            "not built, the Python one is used",
            False,
            "a C compiler at install time builds it",
        )
    return Check("recorder in C", True, str(_fast.__file__), False)


def _store(url: str | None) -> Check:
    from rankscope.ingest.places import default_url
    from rankscope.ingest.store import Store

    where = url or default_url()
    if not where.startswith(("quack:", "ducklake:")) and not Path(where).exists():
        return Check("store", True, f"{where} is not there yet: the first run makes it", False)
    try:
        with Store.open(where, create=False) as store:
            row = store.rows("SELECT count(*) AS runs FROM run")[0]
            how = "open here" if store.is_owner else f"served by {store.remote}"
            return Check("store", True, f"{where}, {row['runs']} runs, {how}", False)
    except UserError as error:
        return Check("store", False, str(error))


def _spool(url: str | None) -> list[Check]:
    from rankscope.ingest.spool import spool_of

    spool = spool_of(url).absolute()
    place = next(folder for folder in (spool, *spool.parents) if folder.is_dir())
    kind = _file_system(place)
    checks = [
        Check(
            "spool",
            kind not in _NETWORK_FILE_SYSTEMS,
            f"{spool} on {kind}",
            advice="mapped files and network file systems do not go together: --spool /dev/shm/rankscope",
        )
    ]
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            os.posix_fallocate(file.fileno(), 0, 1 << 22)
    except OSError as error:
        checks.append(
            Check("room for a segment", False, f"{place}: {error.strerror}", advice="use another --spool")
        )
    else:
        free = shutil.disk_usage(place).free
        checks.append(
            Check("room for segments", free > 1 << 30, f"{free / 1e9:.1f} GB free", False, "below 1 GB")
        )
    return checks


def _file_system(path: Path) -> str:
    """Type of the file system that holds `path`, as the kernel calls it."""
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return kind
    for mount in mounts:
        _, where, found, *_ = mount.split(" ")
        where = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), where)
        if path.is_relative_to(where) and len(where) >= len(best):
            best, kind = where, found
    return kind


def _browser() -> Check:
    found = next(
        (path for name in ("chromium", "google-chrome", "firefox") if (path := shutil.which(name))), None
    )
    return Check(
        "browser",
        found is not None,
        found or "none here",
        False,
        "any browser that reaches 127.0.0.1 will do",
    )
