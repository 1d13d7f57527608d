"""DuckDB's extensions from their Python wheels: nothing is installed or downloaded at run time."""

import importlib
from pathlib import Path

import duckdb

from rankscope.ingest.errors import UserError


def load_extensions(con: duckdb.DuckDBPyConnection, *names: str) -> None:
    """LOAD each extension in order, e.g. ("httpfs", "quack"): quack needs httpfs before it.

    Raises:
        UserError: the wheel is missing, or built for another DuckDB.
    """
    for name in names:
        try:
            module = importlib.import_module(f"duckdb_extension_{name}")
        except ImportError as error:
            wheel = name.replace("_", "-")
            raise UserError(
                f"DuckDB's extension '{name}' is not installed: pip install 'rankscope[dash]' "
                f"(it brings duckdb-extension-{wheel}=={duckdb.__version__})"
            ) from error
        folder = Path(str(module.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        binary = folder / f"{name}.duckdb_extension"
        if not binary.is_file():
            raise UserError(
                f"DuckDB's extension '{name}' is not built for DuckDB {duckdb.__version__}: "
                f"pip install duckdb-extension-{name.replace('_', '-')}=={duckdb.__version__}"
            )
        con.execute("LOAD '{}'".format(str(binary).replace("'", "''")))
