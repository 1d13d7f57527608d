"""This machine's cost of every operation, and how well the model then foretells real starts.

Costs are measured one by one on a real store and real sockets; processor time a hop and a join from two
small real starts. Agreement is checked at sizes that were not used for that. All virtual ranks share this
machine's few processors, so they are the bound here, not latency: the model has both, and takes the larger.
"""

import os
import socket
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np

from rankscope.emulation.counts import Counts
from rankscope.emulation.model import Costs, Scenario, Sizes, simulate
from rankscope.emulation.model.gather import ring_plan
from rankscope.emulation.model.scenario import AllGather, Ring
from rankscope.emulation.real.plan import RealPlan
from rankscope.emulation.real.run import run_series
from rankscope.ingest.errors import UserError

Progress = Callable[[float, str], None]

FITTED: Final = (48, 96)  # ranks of the real starts that costs come from
CHECKED: Final = (16, 32, 64, 128, 192)  # ranks of those that they are checked with
_REPEATS: Final = 5
WAYS: Final = ("ring", "bidirectional")
_GATHERS: Final = 3


@dataclass(frozen=True)
class Agreed:
    """One part of one real start beside the model."""

    ranks: int
    ring: str
    allgather: str
    part: str  # 'form', 'allgather'
    real_s: float
    model_s: float

    @property
    def error_ratio(self) -> float:
        """(model - real) / real."""
        return self.model_s / self.real_s - 1


@dataclass(frozen=True)
class Agreement:
    """All sizes and methods that both can do; none of them was used to fit."""

    rows: tuple[Agreed, ...]
    counts_equal: bool  # logical operations of real part and model, in every start

    @property
    def median_error_ratio(self) -> float:
        return statistics.median(abs(row.error_ratio) for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": [vars(row) | {"error_ratio": row.error_ratio} for row in self.rows],
            "median_error_ratio": self.median_error_ratio,
            "counts_equal": self.counts_equal,
        }

    def lines(self) -> list[str]:
        """A table for people."""
        head = ("ranks", "ring", "AllGather", "part", "real s", "model s", "error")
        lines = ["{:>6} {:<10} {:<14} {:<10} {:>9} {:>9} {:>7}".format(*head)]
        lines += [
            f"{r.ranks:>6} {r.ring:<10} {r.allgather:<14} {r.part:<10} {r.real_s:>9.4f} {r.model_s:>9.4f} "
            f"{r.error_ratio:>+7.0%}"
            for r in self.rows
        ]
        lines.append(
            f"median error {self.median_error_ratio:.0%}; operations counted "
            f"{'equal' if self.counts_equal else 'NOT EQUAL'} in all of them"
        )
        return lines


def calibrate(
    progress: Progress = lambda share, what: None,
    fitted: Sequence[int] = FITTED,
    checked: Sequence[int] = CHECKED,
) -> tuple[Costs, Agreement]:
    """Measure costs, and how the model then agrees with real starts of other sizes; about two minutes.

    All sizes are started in turn, several times over, so that what else runs meanwhile meets all of them.

    Raises:
        UserError: torch is missing, or a real start failed.
    """
    progress(0.0, "store and sockets")
    store = _store_costs()
    hop_s, connect_s, bytes_per_s = _socket_costs()
    cores = len(os.sched_getaffinity(0))
    progress(0.2, f"real starts of {sorted({*fitted, *checked})} ranks")
    starts = real_starts(sorted({*fitted, *checked}))
    cpu: dict[str, list[float]] = {way: [] for way in WAYS}
    joins = []
    for (ranks, way), start in starts.items():
        if ranks in fitted:
            cpu[way].append(start.gather_s / phases_of(ranks, way) * cores / ranks)
            joins.append(start.form_s * cores / ranks)
    here = f"measured on {socket.gethostname()}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())}"
    costs = Costs(
        name=f"{socket.gethostname()}, {cores} cores",
        hop_s=hop_s,
        connect_s=connect_s,
        accept_s=connect_s / 2,
        reply_s=connect_s,
        store_accept_s=0.0,
        store_op_s=store["op"],
        store_key_s=store["key"],
        store_trip_s=store["trip"],
        bytes_per_s=bytes_per_s,
        ring_pair_s=0.0,
        transport_pair_s=0.0,
        fixed_s=0.0,
        hop_cpu_s=float(np.median(cpu["ring"])),
        both_cpu_s=float(np.median(cpu["bidirectional"])),
        join_cpu_s=float(np.median(joins)),
        cores=cores,
        sources=dict.fromkeys(
            ("hop_s", "connect_s", "accept_s", "reply_s", "store_op_s", "store_key_s",
             "store_trip_s", "bytes_per_s"), here,
        )
        | dict.fromkeys(("hop_cpu_s", "both_cpu_s", "join_cpu_s"), f"{here}, real starts of {FITTED} ranks")
        | {"store_accept_s": "virtual ranks share the connections that their workers have before they begin"}
        | dict.fromkeys(
            ("ring_pair_s", "transport_pair_s", "fixed_s"), "not part of the real bootstrap: no devices here"
        ),
    )  # fmt: skip
    progress(1.0, "done")
    return costs, agreement(costs, {key: start for key, start in starts.items() if key[0] in checked})


def agreement(costs: Costs, starts: Mapping[tuple[int, str], "Fastest"]) -> Agreement:
    """Real starts beside the model."""
    rows = []
    equal = True
    for (ranks, way), start in starts.items():
        outcome = simulate(scenario_of(ranks, way), costs)
        equal &= outcome.counts == start.counts
        gather = sum(s for name, s in outcome.front_s() if name.startswith("allgather"))
        form = outcome.total_s - gather
        for part, real_s, model_s in (("form", start.form_s, form), ("allgather", start.gather_s, gather)):
            rows.append(Agreed(ranks, "tcpstore", way, part, real_s, model_s))
    return Agreement(tuple(rows), equal)


@dataclass
class Fastest:
    """The fastest of several real starts, part by part: what else runs only makes them slower."""

    form_s: float
    gather_s: float
    counts: Counts


def scenario_of(ranks: int, way: str) -> Scenario:
    """The start that is measured: everything on one host, no host loops."""
    return Scenario(
        ranks, Ring.TCPSTORE, AllGather(way), Sizes.FIRST, hosts=1, loops=False, allgathers=_GATHERS
    )


def phases_of(ranks: int, way: str) -> int:
    """Dependent phases of all AllGathers of that start."""
    return _GATHERS * ring_plan(ranks, AllGather(way), Sizes.FIRST).phases


def real_starts(sizes: Sequence[int]) -> dict[tuple[int, str], Fastest]:
    """Every size, both ways, for real.

    Raises:
        UserError: a start failed.
    """
    plans = [
        replace(RealPlan.of(scenario_of(ranks, way)), name=f"calibrate-{repeat}-{ranks}-{way}")
        for repeat in range(_REPEATS)
        for ranks in sizes
        for way in WAYS
    ]
    best: dict[tuple[int, str], Fastest] = {}
    for result in run_series(plans):
        if result.errors:
            raise UserError(f"a real start of {result.plan.ranks} ranks failed: {result.errors[0]}")
        found = Fastest(result.form_s, result.gather_s, result.counts)
        known = best.setdefault((result.plan.ranks, result.plan.allgather), found)
        known.form_s = min(known.form_s, found.form_s)
        known.gather_s = min(known.gather_s, found.gather_s)
    return best


def _store_costs() -> dict[str, float]:
    """Seconds a request and a key at a real TCPStore, and one way of an idle round trip."""
    import torch.distributed as dist

    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    one = dist.TCPStore(
        "127.0.0.1", server.port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=30)
    )
    keys = [f"k{i}" for i in range(2_000)]
    begin = time.perf_counter()
    for key in keys:
        one.set(key, b"x" * 28)
    one.get(keys[-1])  # sets are not answered: this is
    op = (time.perf_counter() - begin) / len(keys)
    trips = []
    for key in keys[:500]:
        begin = time.perf_counter()
        one.get(key)
        trips.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    one.multi_get(keys)
    each = (time.perf_counter() - begin) / len(keys)
    return {"op": op, "key": min(each, op), "trip": float(np.median(trips)) / 2}


def _socket_costs() -> tuple[float, float, float]:
    """(a hop, a connection, bytes a second) over loopback, one pair of sockets."""
    listener = socket.create_server(("127.0.0.1", 0))
    connects = []
    for _ in range(200):
        begin = time.perf_counter()
        left = socket.create_connection(listener.getsockname())
        right, _ = listener.accept()
        connects.append(time.perf_counter() - begin)
        left.close()
        right.close()
    left = socket.create_connection(listener.getsockname())
    right, _ = listener.accept()
    for sock in (left, right):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    hops = []
    for _ in range(1_000):
        begin = time.perf_counter()
        left.sendall(b"x" * 120)
        right.recv(120)
        hops.append(time.perf_counter() - begin)
    block, moved = b"x" * 65_536, 0
    begin = time.perf_counter()
    for _ in range(500):
        left.sendall(block)
        waiting = len(block)
        while waiting:
            waiting -= len(right.recv(waiting))
        moved += len(block)
    rate = moved / (time.perf_counter() - begin)
    for sock in (left, right, listener):
        sock.close()
    return statistics.median(hops), statistics.median(connects), rate
