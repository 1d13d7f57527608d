"""Real processes: a rank is killed inside a gather, and every survivor names it."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch.distributed")

WORLD, VICTIM = 3, 1

RANK = textwrap.dedent(
    """
    import sys
    import torch.distributed as dist
    from rankscope.emulation.bootstrap import BootstrapError, RingAllGather, form_ring

    path, rank, world = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ring = form_ring(dist.FileStore(path, world), rank, world, timeout_s=120)
    gather = RingAllGather(ring, timeout_s=120)
    print("formed", gather.gather(b"%d" % rank), flush=True)
    sys.stdin.readline()
    try:
        gather.gather(b"again")
        print("no error", flush=True)
    except BootstrapError as error:
        print("culprit", error.culprit, error.reason.name, flush=True)
    """
)


@pytest.mark.training
def test_killed_rank_is_named_by_every_survivor(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(tmp_path / "store"), str(rank), str(WORLD)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for rank in range(WORLD)
    ]  # fmt: skip
    try:
        for process in ranks:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "formed [b'0', b'1', b'2']"
        ranks[VICTIM].send_signal(signal.SIGKILL)
        ranks[VICTIM].wait()
        for rank, process in enumerate(ranks):
            if rank != VICTIM:
                out, _ = process.communicate("go\n", timeout=120)
                assert out.strip() == f"culprit {VICTIM} GONE"
    finally:
        for process in ranks:
            process.kill()
            process.wait()
