"""The documentation says what is there: commands, settings, views, links and examples."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rankscope.app.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FOLDERS = ("app", "ingest", "analytics", "emulation", "sample_data")


def indented_code(page: Path, first_word: str) -> list[str]:
    """Blocks of code in a page that begin with a word."""
    blocks = re.findall(r"(?:^ {4}.*\n(?:[ \t]*\n(?= {4}))?)+", page.read_text(), re.MULTILINE)
    blocks = [re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for block in blocks]
    return [block for block in blocks if block.startswith(first_word)]


def test_pages_made_from_the_code_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_command_has_its_section(command: str) -> None:
    assert f"## rankscope {command}\n" in (ROOT / "docs" / "commands.md").read_text()


def test_every_environment_variable_is_documented() -> None:
    used = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            used |= set(re.findall(r"\bRANKSCOPE(?:_[A-Z]+)*\b", path.read_text()))
    documented = set(re.findall(r"\bRANKSCOPE(?:_[A-Z]+)*\b", (ROOT / "docs" / "commands.md").read_text()))
    assert used == documented


def test_every_view_is_documented(tmp_path: Path) -> None:
    from rankscope.app.opening import open_store

    store = open_store(tmp_path / "empty.duckdb", create=True, spool=tmp_path / "spool")
    names = store.rows("SELECT view_name AS name FROM duckdb_views() WHERE view_name LIKE 'v!_%' ESCAPE '!'")
    store.close()
    page = (ROOT / "docs" / "views.md").read_text()
    assert names
    assert [row["name"] for row in names if f"## {row['name']}\n" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) + re.findall(r'src(?:set)?="([^"]+)"', text)
    local = [target for target in targets if not target.startswith(("http:", "https:"))]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"({name})" not in index} == set()


@pytest.mark.parametrize("page", ["README.md", "docs/embed.md"])
def test_embedding_examples_are_python(page: str) -> None:
    blocks = indented_code(ROOT / page, "import rankscope")
    assert blocks
    for block in blocks:
        ast.parse(block)


@pytest.mark.training
@pytest.mark.xdist_group("demo")
def test_sql_examples_give_rows_on_a_real_run(demo_run: Any, tmp_path: Path) -> None:
    from rankscope.app.opening import open_store

    examples = [
        *re.findall(r'rankscope sql "([^"]+)"', (ROOT / "README.md").read_text()),
        *re.findall(r'rankscope sql "([^"]+)"', (ROOT / "docs" / "sql.md").read_text()),
        *indented_code(ROOT / "docs" / "sql.md", "SELECT"),
    ]
    assert len(examples) >= 9
    store = open_store(demo_run.copy_store(tmp_path), spool=tmp_path / "spool")
    try:
        for example in examples:
            assert store.query_untrusted(example).num_rows > 0, example
    finally:
        store.close()


def test_make_help_names_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^\.PHONY: (\w+)$", makefile, re.MULTILINE)) - {"help", "setup", "browser"}
    shown = set(re.findall(r"@echo 'make (\w+)", makefile))
    assert targets == shown
