"""`rankscope demo`: train a real small model, kill one of its ranks, and show what was recorded of it."""

import argparse
import contextlib
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rankscope.ingest.errors import UserError

if TYPE_CHECKING:
    from rankscope.app.demo.plan import Plan

NAME = "demo"
HELP = "train a small model for real, let a rank fail for real, and report on it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store", help="file to add the run to (default: $RANKSCOPE_STORE, rankscope.duckdb)"
    )
    parser.add_argument("--spool", type=Path, help="folder the ranks record into (default: beside the store)")
    parser.add_argument("--run", help="name of the run (default: made from the time)")
    parser.add_argument("--steps", type=int, help="optimizer steps (default: 200)")
    parser.add_argument("--kill-rank", type=int, default=2, help="rank that fails, 0 to 3 (default: 2)")
    parser.add_argument("--kill-step", type=int, help="step at which it fails (default: past half)")
    parser.add_argument("--quick", action="store_true", help="a short run: 60 steps")
    parser.add_argument("--serve", action="store_true", help="open the dashboard first, and keep it open")
    parser.add_argument("--port", type=int, default=8501, help="port of the dashboard (default: 8501)")


def run(args: argparse.Namespace) -> int:
    """Returns 0 only when the run really finished and all of it is in the store."""
    from rankscope.app.demo.plan import make_plan

    plan = make_plan(
        store=args.store,
        spool=args.spool,
        run=args.run,
        steps=args.steps,
        kill_rank=args.kill_rank,
        kill_step=args.kill_step,
        quick=args.quick,
    )
    # Being told to end is the same as Ctrl-C, which shells switch off for what runs in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        return _demonstrate(plan, args.port if args.serve else None)
    print("stopped", file=sys.stderr)
    return 1


def _demonstrate(plan: "Plan", port: int | None) -> int:
    from rankscope.app.cli import main
    from rankscope.app.demo.screen import Screen
    from rankscope.app.demo.server import serving, wait_until_collected
    from rankscope.app.demo.training import train

    plan.folder.mkdir(parents=True)
    screen = Screen()
    with serving(plan, port) as dashboard:
        screen.phase("run", f"{plan.run}: {plan.ranks} ranks, {plan.steps} steps, store {plan.store}")
        if dashboard is not None:
            screen.phase("dashboard", f"http://127.0.0.1:{port}/run?run={plan.run}")
        train(plan, screen)
        if not wait_until_collected(plan):
            raise UserError(f"the store {plan.store} does not hold the whole run: see {plan.folder}")
        screen.phase("collected", f"all of it is in {plan.store}")
        status = main(["report", plan.run, "--store", str(plan.store)])
        if dashboard is None:
            screen.phase("done", f"to see it: {_program()} dash --store {plan.store}")
            return status
        screen.phase("done", f"see http://127.0.0.1:{port}/run?run={plan.run} - Ctrl-C ends it")
        with contextlib.suppress(KeyboardInterrupt):
            dashboard.wait()
    return status


def _program() -> str:
    """How this person would call us: by name, when that is on the path."""
    here = Path(sys.executable).with_name("rankscope")
    found = shutil.which("rankscope")
    if found is not None and Path(found).resolve() == here.resolve():
        return "rankscope"
    with contextlib.suppress(ValueError):
        return str(here.relative_to(Path.cwd()))
    return str(here)
