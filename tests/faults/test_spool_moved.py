"""A spool that is reached by another path, or was moved with its store, is still the same spool."""

from pathlib import Path

import pytest
from handmade import HandWriter, collect, living

from rankscope.ingest.store import Store


def _write(spool: Path) -> HandWriter:
    writer = living(spool)
    for step in range(5):
        writer.scalar(1.0, step=step)
    return writer


def _steps(store: Store) -> list[int]:
    return [row["step"] for row in store.rows("SELECT step FROM scalar ORDER BY step")]


@pytest.mark.parametrize("way", ["dotted", "linked", "moved"])
def test_another_path_to_a_spool_reads_nothing_twice(tmp_path: Path, way: str) -> None:
    spool = tmp_path / "here" / "s.spool"
    spool.parent.mkdir()
    writer = _write(spool)
    with Store.open(tmp_path / "s.duckdb") as store:
        assert collect(store, spool) == []
        assert _steps(store) == [0, 1, 2, 3, 4]
    if way == "dotted":
        (tmp_path / "there").mkdir()
        again = tmp_path / "there" / ".." / "here" / "s.spool"
    elif way == "linked":
        again = tmp_path / "link"
        again.symlink_to(spool)
    else:
        again = spool.rename(tmp_path / "elsewhere")
    if way != "moved":
        writer.scalar(1.0, step=5)
    with Store.open(tmp_path / "s.duckdb") as store:
        assert collect(store, again) == []
        assert _steps(store) == [0, 1, 2, 3, 4] + ([5] if way != "moved" else [])
        assert len(store.rows("SELECT * FROM source")) == 1
