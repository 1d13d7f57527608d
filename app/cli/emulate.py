"""`rankscope emulate`: start N virtual ranks on CPUs, in virtual time or for real, and "
"say what holds them up."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rankscope.ingest.errors import UserError

if TYPE_CHECKING:
    from rankscope.emulation.model import Costs, Outcome, Scenario

NAME = "emulate"
HELP = "start N virtual ranks on CPUs: init one start, compare all methods, calibrate this machine"

_RINGS = ("root", "root-staggered", "multi-root", "tcpstore")
_GATHERS = ("ring", "bidirectional", "doubling", "bruck", "tree")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="WHAT", required=True)
    init = actions.add_parser("init", help="one start of N ranks", description="Start N virtual ranks.")
    init.add_argument("--ranks", type=int, required=True, help="how many")
    init.add_argument("--ring", choices=_RINGS, default="tcpstore", help="how ranks find their neighbours")
    init.add_argument("--allgather", choices=_GATHERS, default="bidirectional", help="how they exchange data")
    init.add_argument(
        "--sizes",
        choices=("first", "overlapped", "along"),
        default="first",
        help="when a chunk's size is sent: first in blocking exchanges (NCCL), overlapped, along",
    )
    init.add_argument(
        "--nccl",
        default="2.23",
        metavar="2.18|2.20|2.23",
        help="whose stagger and number of AllGathers; 2.20: 1 ms a rank, 5 AllGathers",
    )
    init.add_argument("--roots", type=int, help="with multi-root; default: one for 128 ranks")
    init.add_argument("--hosts", type=int, help="default: 8 ranks a host")
    init.add_argument(
        "--jitter", default="0", metavar="DURATION", help="mean random delay of every message, 5us"
    )
    init.add_argument(
        "--slow-rank",
        action="append",
        default=[],
        metavar="RANK:SECONDS",
        help="a rank that begins late; may be given again",
    )
    init.add_argument(
        "--loops",
        choices=("quadratic", "linear"),
        default="quadratic",
        help="whether loops over all pairs of ranks are still there",
    )
    init.add_argument("--backlog", type=int, default=16_384, help="connections that wait at a root or store")
    init.add_argument("--seed", type=int, default=1)
    init.add_argument("--costs", help="published (default), or a file that calibrate wrote")
    init.add_argument(
        "--real",
        action="store_true",
        help="real TCPStore and sockets on this machine instead of virtual time",
    )
    init.add_argument(
        "--form-only",
        action="store_true",
        help="with --real: only form the ring, ranks sharing connections (100,000 ranks work)",
    )
    init.add_argument("--workers", type=int, help="with --real: processes; default: one a core, 2 at least")
    init.add_argument("--timeout", default="10m", metavar="DURATION", help="with --real")
    init.add_argument("--store", help="also record it there as a run, for the start-up page")
    init.add_argument("--spool", type=Path, help="folder for its records; default: that of the store")
    init.add_argument("--run", help="name of that run")
    init.add_argument("--json", action="store_true", help="machine-readable, to stdout")

    comparing = actions.add_parser(
        "compare", help="all methods at 1K to 98K ranks, ranked, and what it means"
    )
    comparing.add_argument("--ranks", type=int, action="append", help="instead of 1K, 4K, 16K, 65K, 98K")
    comparing.add_argument("--costs", help="published (default), or a file that calibrate wrote")
    comparing.add_argument("--json", action="store_true")

    calibrating = actions.add_parser(
        "calibrate",
        help="measure this machine's costs, check the model against real starts and published ones",
    )
    calibrating.add_argument("--out", type=Path, help="write the costs to this file, for --costs")
    calibrating.add_argument("--published", action="store_true", help="only the fits to published points")
    calibrating.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    if args.action == "compare":
        return _compare(args)
    if args.action == "calibrate":
        return _calibrate(args)
    return _init(args)


def _init(args: argparse.Namespace) -> int:
    from rankscope.emulation.durations import seconds
    from rankscope.emulation.model import AllGather, Ring, Scenario, Sizes

    if args.roots is not None and args.ring != "multi-root":
        raise UserError(f"--roots {args.roots}: only with --ring multi-root", status=2)
    scenario = Scenario(
        args.ranks,
        Ring(args.ring),
        AllGather(args.allgather),
        Sizes(args.sizes),
        args.nccl,
        args.roots,
        args.hosts,
        args.loops == "quadratic",
        seconds(args.jitter, "--jitter"),
        dict(_slow_rank(text) for text in args.slow_rank),
        backlog=args.backlog,
        seed=args.seed,
    )
    return _real(args, scenario) if args.real or args.form_only else _virtual(args, scenario)


def _virtual(args: argparse.Namespace, scenario: "Scenario") -> int:
    import json

    from rankscope.emulation.model import simulate
    from rankscope.emulation.records import write_outcome

    costs = _costs(args.costs)
    with _progress(f"{scenario.ranks:,} ranks, {scenario.ring}, {scenario.allgather}") as report:
        outcome = simulate(scenario, costs, lambda share: report(share, ""))
    told = outcome.as_dict()
    if args.store or args.spool:
        told["run_id"] = _record(args, lambda spool: write_outcome(outcome, spool, args.run))
    print(json.dumps(told) if args.json else _text(outcome))
    return 0


def _real(args: argparse.Namespace, scenario: "Scenario") -> int:
    import json

    from rankscope.emulation.durations import seconds
    from rankscope.emulation.real.plan import RealPlan
    from rankscope.emulation.real.run import run_real
    from rankscope.emulation.records import write_result

    if scenario.allgather.value not in ("ring", "bidirectional") and not args.form_only:
        raise UserError(f"--allgather {scenario.allgather}: with --real one of ring, bidirectional", status=2)
    if args.form_only and scenario.ring.value != "tcpstore":
        raise UserError(f"--form-only: with --ring tcpstore, not {scenario.ring}", status=2)
    plan = RealPlan.of(scenario, shared=args.form_only, timeout_s=seconds(args.timeout, "--timeout"))
    with _progress(f"{plan.ranks:,} ranks for real") as report:
        result = run_real(plan, workers=args.workers, progress=lambda text: report(0.0, text))
    told = result.as_dict()
    if args.store or args.spool:
        told["run_id"] = _record(args, lambda spool: write_result(result, spool, args.run))
    if args.json:
        print(json.dumps(told))
    else:
        print(
            f"{plan.ranks:,} virtual ranks for real, {plan.ring}: {result.total_s:.2f} s, "
            f"{result.workers} workers"
        )
        for name, phase_s in result.phases:
            print(f"  {name:<20} {phase_s:10.3f} s")
        print(f"  ring {'complete: every rank found its neighbours' if result.complete else 'NOT complete'}")
        print(
            f"  {result.checked:,} chunks checked byte for byte, {result.counts.store_ops:,} store "
            "operations, "
            f"{result.counts.messages:,} messages"
        )
        for error in result.errors:
            print(f"  {error}")
    return 0 if result.complete and not result.errors else 1


def _compare(args: argparse.Namespace) -> int:
    import json

    from rankscope.emulation.compare import SIZES, compare
    from rankscope.emulation.findings import find

    costs = _costs(args.costs)
    sizes = tuple(args.ranks or SIZES)
    with _progress("comparing") as report:
        cells = compare(costs, sizes, progress=lambda share, what: report(0.7 * share, what))
        report(0.7, "what it means")
        findings = find(max(sizes), costs)
        report(1.0, "done")
    if args.json:
        told = {
            "costs": costs.name,
            "cells": [cell.as_dict() for cell in cells],
            "findings": [{"name": f.name, "text": f.text, "values": f.values} for f in findings],
        }
        print(json.dumps(told))
        return 0
    methods = list(dict.fromkeys(cell.method.name for cell in cells))
    width = max(map(len, methods))
    print(f"{'seconds (place), ' + costs.name + ' costs':<{width}}" + "".join(f"{n:>14,}" for n in sizes))
    for name in methods:
        row = [cell for cell in cells if cell.method.name == name]
        print(f"{name:<{width}}" + "".join(f"{f'{c.outcome.total_s:.2f} ({c.place})':>14}" for c in row))
    print()
    for finding in findings:
        print(f"- {finding.text}")
    return 0


def _calibrate(args: argparse.Namespace) -> int:
    import json

    from rankscope.emulation.calibration import all_fits

    fits = all_fits()
    told: dict[str, object] = {"published": [fit.as_dict() for fit in fits]}
    lines = []
    for fit in fits:
        lines.append(f"{fit.series}: {fit.law}, {fit.growth}")
        for point in fit.checked:
            kind = "held out" if point.held_out else "fitted"
            lines.append(
                f"  {point.point.ranks:>8,} ranks  published {point.point.seconds:9.2f} s  "
                f"law {point.predicted_s:9.2f} s  {point.error_ratio:+6.1%}  {kind:<8}  {point.point.source}"
            )
        if fit.note:
            lines.append(f"  {fit.note}")
    if not args.published:
        from rankscope.emulation.calibrate import calibrate

        with _progress("measuring this machine") as report:
            costs, table = calibrate(report)
        if args.out:
            costs.save(args.out)
        told |= {"costs": costs.as_dict(), "agreement": table.as_dict()}
        lines += ["", *table.lines()]
    print(json.dumps(told) if args.json else "\n".join(lines))
    return 0


def _text(outcome: "Outcome") -> str:
    scenario, worst = outcome.scenario, outcome.bottleneck
    lines = [f"{scenario.ranks:,} ranks, {scenario.ring}, {scenario.allgather}: {outcome.total_s:.2f} s"
             f" in virtual time ({outcome.costs.name} costs)"]  # fmt: skip
    lines += [f"  {name:<28} {phase_s:10.3f} s" for name, phase_s in outcome.front_s()]
    lines.append(f"  bottleneck: {worst.phase}, {worst.share:.0%}: {worst.endpoint}, {worst.growth}")
    lines.append(f"  {outcome.counts.messages:,} messages, {outcome.counts.store_ops:,} store operations")
    return "\n".join(lines + [f"  {note}" for note in outcome.notes])


def _record(args: argparse.Namespace, write: Callable[[Path], str]) -> str:
    """Write the records into the spool and, where nobody else collects, from there into the store."""
    import sys

    from rankscope.app.opening import open_store
    from rankscope.ingest.spool import spool_of

    spool = args.spool if args.spool is not None else spool_of(args.store)
    run_id = write(spool)
    if args.store:
        open_store(args.store, create=True, spool=spool).close()
    print(f"recorded as run {run_id}", file=sys.stderr)
    return run_id


def _costs(text: str | None) -> "Costs":
    from rankscope.emulation.calibration import published_costs
    from rankscope.emulation.model import Costs

    return published_costs() if text in (None, "published") else Costs.load(Path(str(text)))


def _slow_rank(text: str) -> tuple[int, float]:
    from rankscope.emulation.durations import seconds

    rank, colon, late = text.partition(":")
    if not colon or not rank.isdecimal():
        raise UserError(f"--slow-rank {text}: give RANK:SECONDS, like 17:3", status=2)
    return int(rank), seconds(late, "--slow-rank")


@contextmanager
def _progress(what: str) -> Iterator[Callable[[float, str], None]]:
    """A bar on stderr; a function that is told the share done and what is going on."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)

        def report(share: float, now: str) -> None:
            bar.update(task, completed=share, description=f"{what}: {now}" if now else what)

        yield report
