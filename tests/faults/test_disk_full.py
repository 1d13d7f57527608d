"""A store on a full disk: the collector says so, waits, and loses nothing."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import HandWriter, collect

from rankscope.ingest import collector as collector_module
from rankscope.ingest.collector import Collector
from rankscope.ingest.store import Store

ROOM = "24m"
STEPS = 40_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk here: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_full_disk_is_waited_out(small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "RETRY_S", 0.05)
    spool = tmp_path / "s.spool"
    for rank in range(3):
        writer = HandWriter(spool, rank=rank)
        for step in range(STEPS):
            writer.scalar(float(step) + 0.1 * rank, step=step, name=f"{rank} {step % 1000} {'x' * 100}")
    said: list[str] = []
    told, stop = threading.Event(), threading.Event()

    def say(line: str) -> None:
        said.append(line)
        told.set()

    with Store.open(small_disk / "s.duckdb") as store:
        free = os.statvfs(small_disk)
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file:  # leaves room for the store, not for what comes
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - 256_000)
        with Collector(store, spool, say=say) as collector:
            thread = threading.Thread(target=collector.run, args=(stop,))
            thread.start()
            try:
                assert told.wait(60), "nothing was said of the full disk"
                assert "trying again" in said[0]
                assert len(list(spool.rglob("*.seg"))) == 3  # nothing is deleted that is not in the store
            finally:
                ballast.unlink()
                stop.set()
                thread.join(60)
            assert not thread.is_alive()
        assert len([line for line in said if "trying again" in line]) == 1
        assert collect(store, spool) == []
        for rank in range(3):
            found = store.rows(
                "SELECT count(*) AS n, count(DISTINCT step) AS steps FROM scalar WHERE rank = $rank",
                {"rank": rank},
            )
            assert found == [{"n": STEPS, "steps": STEPS}]
        assert store.rows("SELECT sum(dropped) AS dropped, sum(errors) AS errors FROM source") == [
            {"dropped": 0, "errors": 0}
        ]
