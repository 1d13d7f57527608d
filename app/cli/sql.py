"""`rankscope sql`: one question in SQL, read-only."""

import argparse
from pathlib import Path

NAME = "sql"
HELP = "ask the store in SQL: FROM v_help lists the views"
FORMATS = ("table", "csv", "json", "parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="SQL", help="one SELECT; '-' reads it from stdin")
    parser.add_argument("--store", help="default: $RANKSCOPE_STORE, else rankscope.duckdb")
    parser.add_argument("--format", choices=FORMATS, help="default: what --out ends with, else table")
    parser.add_argument("--out", type=Path, help="file to write to")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="seconds (default: 60)")


def run(args: argparse.Namespace) -> int:
    import sys

    from rankscope.app.opening import open_store
    from rankscope.app.tables import write_table
    from rankscope.ingest.errors import UserError

    query = sys.stdin.read() if args.query == "-" else args.query
    with open_store(args.store) as store:
        try:
            table = store.query_untrusted(query, time_limit_s=args.time_limit)
        except UserError as error:
            # One line: DuckDB's drawing of the place in the query is left out.
            problem = " ".join(str(error).split("\nLINE ")[0].split())
            if "does not exist" in problem or "not found" in problem:
                problem += ' (rankscope sql "FROM v_help" lists views and columns)'
            raise UserError(problem, status=error.status) from error
    form = args.format or _form_of(args.out)
    if form == "parquet" and args.out is None:
        raise UserError("parquet is no text: name a file with --out", status=2)
    write_table(table, form, args.out)
    return 0


def _form_of(out: Path | None) -> str:
    """The form that the file's name asks for; a table without a file."""
    ending = out.suffix.removeprefix(".") if out is not None else ""
    return ending if ending in FORMATS else ("table" if out is None else "csv")
