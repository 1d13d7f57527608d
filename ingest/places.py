"""Where things lie when nobody says so: the store, and the spool beside it. Light enough for a trainer."""

import os
from pathlib import Path

DEFAULT_STORE = "rankscope.duckdb"


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
