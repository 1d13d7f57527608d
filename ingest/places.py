"""Where things lie when nobody says so: the store, and the spool beside it. Light enough for a trainer."""

import os
from pathlib import Path
from typing import Final

DEFAULT_STORE = "rankscope.duckdb"
# File systems of other hosts: what is written there through a map may come late, torn, or not at all.
_NETWORK: Final = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "beegfs", "ceph", "glusterfs", "gpfs", "lustre",
    "ncpfs", "orangefs", "ocfs2", "panfs", "vboxsf", "virtiofs", "wekafs",
)  # fmt: skip


def local_spool(folder: Path) -> tuple[Path, str]:
    """`folder`, or one on the host's own disk when it is on a network file system, and which that is."""
    kind = file_system_of(folder)
    if kind in _NETWORK or (kind.startswith("fuse.") and "overlay" not in kind):
        import tempfile

        return Path(tempfile.gettempdir()) / f"rankscope-{os.getuid()}.spool", kind
    return folder, ""


def file_system_of(folder: Path) -> str:
    """The kind of file system `folder` is or will be on, as the kernel names it; '' when unknown."""
    path = os.path.realpath(folder)
    best, kind = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:  # noqa: PTH123
            for line in mounts:
                _, point, found, *_ = line.split(" ")
                point = point.encode("latin-1", "replace").decode("unicode_escape")
                inside = path == point or path.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):  # the last of several mounts on a place is seen
                    best, kind = point, found
    except (OSError, ValueError):
        return ""
    return kind


def default_url() -> str:
    """$RANKSCOPE_STORE, else rankscope.duckdb in the working directory."""
    return os.environ.get("RANKSCOPE_STORE") or DEFAULT_STORE


def spool_of(store_url: str | None = None) -> Path:
    """$RANKSCOPE_SPOOL, else the folder that belongs to the store: its path with .spool for .duckdb."""
    named = os.environ.get("RANKSCOPE_SPOOL")
    if named:
        return Path(named)
    url = store_url if store_url is not None else default_url()
    if url.startswith(("quack:", "ducklake:")):
        return Path("rankscope.spool")
    return Path(url.removesuffix(".duckdb") + ".spool")
