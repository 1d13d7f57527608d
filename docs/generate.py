"""Writes what in docs/ is made from the code: commands.md and views.md.

    python docs/generate.py [--check]

With --check it only says whether they differ, and exits with 1 then.
"""

import argparse
import importlib
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

from rankscope.app.cli import COMMANDS
from rankscope.app.opening import open_store

DOCS = Path(__file__).parent
MADE = "<!-- Made by `make docs`: do not edit. -->"

ABOUT_COMMANDS = """Status 0 done, 1 the thing asked about is not there or failed, 2 wrong usage. Results go
to stdout, all else to stderr. Where a command takes a RUN, `latest` works."""

# Every variable that the code reads or sets, and what it means to a user.
ENVIRONMENT = {
    "RANKSCOPE": "`0` switches the recorder off: every call does nothing",
    "RANKSCOPE_RUN": "name of the run; `--run` goes before it",
    "RANKSCOPE_STORE": "the store; `--store` goes before it, `rankscope.duckdb` here is the default",
    "RANKSCOPE_SPOOL": "folder that ranks record into; `--spool` goes before it",
    "RANKSCOPE_DETAIL": "how much of its collectives a rank keeps: `all`, `sampled` or `ring`",
    "RANKSCOPE_STALL_S": "seconds that a collective may take before a rank looks closer, default 60",
    "RANKSCOPE_TOKEN": "token of a `quack:` store that another host serves",
    "RANKSCOPE_LAUNCH_ID": "set by `rankscope run`: which launch of the run its processes belong to",
    "RANKSCOPE_PACKAGE": "set by `rankscope run`: where its ranks find this package",
    "RANKSCOPE_PID": "set by a rank: its own process, so that its children know they are not the rank",
}


def commands_page() -> str:
    """All commands with their help texts, and the environment."""
    parts = ["# Commands", MADE, ABOUT_COMMANDS]
    for name in COMMANDS:
        module = importlib.import_module(f"rankscope.app.cli.{name}")
        parser = argparse.ArgumentParser(
            prog=f"rankscope {module.NAME}", description=module.HELP, formatter_class=_Formatter
        )
        module.add_arguments(parser)
        parts += [f"## rankscope {module.NAME}", *_helps(parser)]
    parts += [
        "## Environment",
        _table(("variable", "meaning"), [(f"`{k}`", v) for k, v in ENVIRONMENT.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _helps(parser: argparse.ArgumentParser) -> list[str]:
    """The help of a command, then of the commands below it."""
    texts = [f"```text\n{parser.format_help().strip()}\n```"]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                below.formatter_class = _Formatter
                texts += _helps(below)
    return texts


def views_page() -> str:
    """All views with their columns, from v_help."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "empty.duckdb", create=True, spool=Path(folder) / "spool")
        rows = store.rows("FROM v_help")
        store.close()
    parts = ["# Views", MADE, "The public interface of a store; in SQL it is `FROM v_help`."]
    for view, columns in groupby(rows, key=lambda row: row["view"]):
        about, *described = _split(list(columns))
        parts += [f"## {view}", about] if about else [f"## {view}"]
        if described:
            parts.append(_table(("column", "type", "unit", "meaning"), described))
    return "\n\n".join(parts) + "\n"


def _split(rows: list[dict[str, Any]]) -> list[Any]:
    about = " ".join(row["meaning"] for row in rows if not row["column"])
    columns = [row for row in rows if row["column"]]
    return [about, *((f"`{r['column']}`", r["type"], r["unit"] or "", r["meaning"]) for r in columns)]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


class _Formatter(argparse.HelpFormatter):
    """The same width on every terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100, max_help_position=32)


PAGES = {"commands.md": commands_page, "views.md": views_page}


def main() -> int:
    check = "--check" in sys.argv[1:]
    old = 0
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if path.exists() and path.read_text() == text:
            continue
        if check:
            print(f"docs/{name} is not what the code says: run make docs")
            old += 1
        else:
            path.write_text(text)
            print(f"wrote docs/{name}")
    return min(old, 1)


if __name__ == "__main__":
    sys.exit(main())
