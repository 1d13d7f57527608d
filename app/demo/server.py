"""Who collects what the demo records: whoever serves the store already, else a child of ours."""

import contextlib
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from rankscope.app.demo.plan import Plan
from rankscope.app.demo.process import Child
from rankscope.ingest.errors import UserError
from rankscope.ingest.owner import read_owner
from rankscope.ingest.store import Store

_START_S = 120.0
_CATCH_UP_S = 120.0


@contextlib.contextmanager
def serving(plan: Plan, port: int | None) -> Iterator[Child | None]:
    """Somebody collects from the plan's spool into its store within the block.

    Args:
        port: start a dashboard there, which collects too; None: a collector will do.

    Yields:
        the dashboard's process, None when none was started here.
    """
    owner = read_owner(plan.store)
    if owner is not None and owner.uri is not None:
        yield None
        return
    where = ["--store", str(plan.store), "--spool", str(plan.spool)]
    what = ["collect"] if port is None else ["dash", "--headless", "--port", str(port)]
    command = [sys.executable, "-m", "rankscope.app.cli", *what, *where]
    plan.store.absolute().parent.mkdir(parents=True, exist_ok=True)
    with Child(command, plan.folder / f"{what[0]}.log") as child:
        _wait_until_up(child, plan, port)
        yield child if port is not None else None


def _wait_until_up(child: Child, plan: Plan, port: int | None) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise UserError(f"what collects did not start:\n{child.last_words()}")
        owner = read_owner(plan.store)
        if owner is not None and owner.uri is not None and (port is None or _answers(port)):
            return
        time.sleep(0.1)
    raise UserError(f"what collects did not get ready in {_START_S:.0f} s: see {child.log}")


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wait_until_collected(plan: Plan) -> bool:
    """Whether the store came to hold the whole run, as finished, while we waited for it."""
    sql = "SELECT status, steps_committed FROM v_run WHERE run_id = $run"
    deadline = time.monotonic() + _CATCH_UP_S
    with Store.open(plan.store, create=False) as store:
        while time.monotonic() < deadline:
            for row in store.rows(sql, {"run": plan.run}):
                if row["status"] == "finished" and row["steps_committed"] == plan.steps:
                    return True
                if row["status"] == "failed":
                    return False
            time.sleep(0.2)
    return False
