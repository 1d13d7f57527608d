"""A worker of a real emulation: its block of virtual ranks, as coroutines in one process.

Started by `rankscope emulate init --real` on this machine, or by torchrun on many hosts:

    torchrun --nnodes 8 --nproc-per-node 4 ... -m rankscope.emulation.real.worker --ranks 100000 --shared
"""

import argparse
import gc
import json
import os
import resource
import socket
import sys
import time
import zlib
from datetime import timedelta
from time import monotonic
from typing import Any

from rankscope.emulation.bootstrap import BootstrapError, Ring, RingAllGather
from rankscope.emulation.bootstrap.address import own_host, pack
from rankscope.emulation.bootstrap.errors import Reason
from rankscope.emulation.bootstrap.form_ring import Phases, find, join, publish
from rankscope.emulation.bootstrap.lookup import PollingLookup
from rankscope.emulation.bootstrap.loop import Loop, Task
from rankscope.emulation.counts import Counts
from rankscope.emulation.real.plan import RealPlan, block, chunk_of
from rankscope.emulation.real.rooted import Root, first_ranks, join_rooted
from rankscope.emulation.real.shared import BatchLookup, Switchboard, address_in

_READY_S = 300.0  # for the other workers to be there
SAMPLE = 1_024  # ranks whose phases are reported one by one, all workers together
_SLOWEST = 16
Report = dict[str, Any]


class Worker:
    """Runs the virtual ranks of block `index` of `workers`."""

    def __init__(self, plan: RealPlan, index: int, workers: int, store: Any) -> None:
        self.plan, self.index, self.workers, self.store = plan, index, workers, store
        self.mine = block(index, workers, plan.ranks)
        self.loop = Loop()
        self.counts = Counts(store_connections=len(self.mine))
        self.spans: dict[int, list[tuple[str, int, int]]] = {}
        self.checked = 0  # chunks compared byte for byte
        self.shared_connections = 0

    def run(self) -> Report:
        """Start all of the block's ranks together with the other workers; returns what there is to tell."""
        _raise_file_limit()
        self._meet()
        gc.disable()  # a collection amid thousands of coroutines is a pause that no rank would have
        began, cpu = time.time_ns(), time.process_time()
        mono_to_wall = began - time.monotonic_ns()
        deadline = monotonic() + self.plan.timeout_s
        tasks, roots = self._spawn(deadline)
        self.loop.run_all()
        ended = time.time_ns()
        gc.enable()
        failures = [task.error for task in roots] + [task.error for task in tasks]
        errors = [str(error) for error in failures if error is not None]
        for root in roots:
            if root.error is None:
                self.counts.add(root.value())
        neighbours = [task.value() if task.error is None else -1 for task in tasks]
        return {
            "worker": self.index,
            "host": socket.gethostname(),
            "ranks": [self.mine.start, self.mine.stop],
            "began_ns": began,
            "ended_ns": ended,
            "cpu_s": time.process_time() - cpu,
            "counts": self.counts.as_dict(),
            "checked": self.checked,
            "shared_connections": self.shared_connections,
            "errors": errors[:20],
            "failed": len(errors),
            "next": neighbours,
            "phase_ends_ns": {name: end + mono_to_wall for name, end in self._fronts().items()},
            "spans": {
                str(rank): [(name, a + mono_to_wall, b + mono_to_wall) for name, a, b in self.spans[rank]]
                for rank in self._sample()
            },
        }

    def _fronts(self) -> dict[str, int]:
        """When the block's last rank was through each phase (monotonic ns)."""
        last: dict[str, int] = {}
        for spans in self.spans.values():
            for name, _, end in spans:
                last[name] = max(last.get(name, 0), end)
        return last

    def _sample(self) -> list[int]:
        """Ranks whose phases are reported one by one: evenly spread ones and the slowest."""
        known = sorted(self.spans)
        slowest = sorted(known, key=lambda rank: self.spans[rank][-1][2])[-_SLOWEST:]
        most = max(1, SAMPLE // self.workers)
        return sorted({*known[:: -(-len(known) // most) or 1], *slowest})

    def _meet(self) -> None:
        """Wait until every worker is there, so that ranks begin together."""
        name = self.plan.name
        if self.store.add(f"{name}/ready", 1) == self.workers:
            self.store.set(f"{name}/go", b"1")
        self.store.wait([f"{name}/go"], timedelta(seconds=_READY_S))

    def _spawn(self, deadline: float) -> tuple[list[Task[int]], list[Task[Counts]]]:
        plan, loop = self.plan, self.loop
        if plan.shared:
            board = Switchboard(loop, own_host(self.store), plan.ranks, self.mine)
            batched = BatchLookup(loop, self.store, plan.timeout_s)
            tasks = [loop.spawn(self._shared_rank(r, board, batched, deadline)) for r in self.mine]
            loop.spawn(self._hang_up(board, tasks))
            return tasks, []
        lookup = PollingLookup(loop, self.store)
        roots = [
            loop.spawn(self._root(root, lookup, deadline))
            for root, first in enumerate(first_ranks(plan)[:-1] if plan.ring != "tcpstore" else [])
            if first in self.mine
        ]
        return [loop.spawn(self._rank(r, lookup, deadline)) for r in self.mine], roots

    async def _root(self, index: int, lookup: PollingLookup, deadline: float) -> Counts:
        root = Root(self.loop, self.plan, index, self._host(index))
        await root.serve(lookup, deadline)
        return root.counts

    async def _rank(self, rank: int, lookup: PollingLookup, deadline: float) -> int:
        """The whole bootstrap of one rank; returns the rank that it found next to it."""
        plan = self.plan
        await self._be_late(rank, deadline)
        host = self._host(rank)
        ring: Ring
        if plan.ring == "tcpstore":
            ring = await join(self.loop, lookup, rank, plan.ranks, plan.name, host, deadline)
        else:
            ring = await join_rooted(self.loop, lookup, plan, rank, host, deadline)
        with ring:
            gather = RingAllGather(
                ring,
                both=plan.allgather == "bidirectional",
                sizes=plan.sizes,  # type: ignore[arg-type]  # checked by the class itself
                timeout_s=max(1.0, deadline - monotonic()),
            )
            timed = Phases()
            for number, size in enumerate(plan.payloads):
                chunks = await gather.gather_on(chunk_of(rank, number, size))
                timed.done(f"allgather_{number + 1}")
                self._check(rank, number, size, chunks)
            self.counts.add(ring.counts)
            self.spans[rank] = ring.phases_ns + timed.spans
            return ring.next.peer

    async def _shared_rank(self, rank: int, board: Switchboard, lookup: BatchLookup, deadline: float) -> int:
        plan, following = self.plan, (rank + 1) % self.plan.ranks
        await self._be_late(rank, deadline)
        counts, timed = Counts(), Phases()
        address = pack(board.host, board.door.port, rank)
        await publish(lookup, rank, plan.name, address, counts, timed)
        data = await find(lookup, rank, following, plan.name, deadline, counts, timed)
        where = address_in(rank, following, data)
        try:
            await board.call(where, rank, following, deadline)
            counts.connects += 1
            timed.done("connect_next")
            caller = await board.be_called(rank, deadline)
            counts.accepts += 1
            timed.done("accept_previous")
        except TimeoutError as error:
            phase = "accept_previous" if counts.connects else "connect_next"
            culprit = (rank - 1) % plan.ranks if counts.connects else following
            what = f"rank {culprit} did not connect or answer in time"
            raise BootstrapError(rank, phase, Reason.MISSING, culprit, what) from error
        if caller != (rank - 1) % plan.ranks:
            what = f"rank {caller} called instead of rank {(rank - 1) % plan.ranks}"
            raise BootstrapError(rank, "accept_previous", Reason.LIED, caller, what)
        self.counts.add(counts)
        self.spans[rank] = timed.spans
        return board.answered[rank]

    async def _hang_up(self, board: Switchboard, tasks: list[Task[int]]) -> None:
        """When all of ours are done, stay until the other workers' are: they may still need an answer."""
        for task in tasks:
            await self.loop.until(task.finished)
        name = self.plan.name
        self.store.add(f"{name}/done", 1)
        while self.store.add(f"{name}/done", 0) < self.workers:
            await self.loop.pause(0.01)
        self.shared_connections = board.connections
        board.close()

    async def _be_late(self, rank: int, deadline: float) -> None:
        late = self.plan.begins_late(rank)
        if late:
            await self.loop.pause(min(late, deadline - monotonic()))
            if monotonic() >= deadline:
                what = f"rank {rank} begins {late:g} s late, after the time-out"
                raise BootstrapError(rank, "begin", Reason.MISSING, rank, what)

    def _host(self, rank: int) -> str:
        """On one machine ranks listen on many loopback addresses: ports are per address, and run out."""
        host = own_host(self.store)
        return f"127.0.{1 + rank // 200 % 200}.{2 + rank % 200}" if host.startswith("127.") else host

    def _check(self, rank: int, number: int, size: int, chunks: list[bytes]) -> None:
        expected = self._expected(number, size)
        if chunks != expected:
            wrong = next(i for i, (a, b) in enumerate(zip(chunks, expected, strict=True)) if a != b)
            what = f"AllGather {number + 1}: the chunk of rank {wrong} is not what that rank gave"
            raise BootstrapError(rank, "allgather", Reason.LIED, wrong, what)
        self.checked += len(chunks)

    def _expected(self, number: int, size: int) -> list[bytes]:
        if getattr(self, "_expected_of", None) != number:
            self._expected_of = number
            self._chunks = [chunk_of(rank, number, size) for rank in range(self.plan.ranks)]
        return self._chunks


def _raise_file_limit() -> None:
    """As many open files as the system lets us."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> int:
    """Under torchrun, or with its environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""
    import torch.distributed as dist

    parser = argparse.ArgumentParser(prog="rankscope.emulation.real.worker")
    parser.add_argument(
        "--plans", help="plans, a JSON list, done one after the other; instead of the options"
    )
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--ring", default="tcpstore")
    parser.add_argument("--allgather", default="bidirectional")
    parser.add_argument("--sizes", default="first")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--timeout", type=float, default=120.0)
    args = parser.parse_args()
    index, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    plans = [RealPlan.from_json(text) for text in json.loads(args.plans)] if args.plans else [_plan_of(args)]
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=index == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True",
        wait_for_workers=False,
        timeout=timedelta(seconds=_READY_S),
    )
    for plan in plans:
        worker = Worker(plan, index, workers, store)
        report = worker.run()
        worker.loop.close()
        store.set(f"{plan.name}/report/{index}", zlib.compress(json.dumps(report).encode()))
    if index == 0 and not args.plans:
        from rankscope.emulation.real.run import collect

        result = collect(store, plans[0], workers)
        print(json.dumps(result.as_dict()))
        store.set(f"{plans[0].name}/collected", b"1")
        return 0 if result.complete else 1
    if not args.plans:  # the store may live in worker 0, which still reads from it
        store.wait([f"{plans[0].name}/collected"], timedelta(seconds=_READY_S))
    return 0


def _plan_of(args: argparse.Namespace) -> RealPlan:
    return RealPlan(
        args.ranks,
        args.ring,
        args.allgather,
        args.sizes,
        shared=args.shared,
        timeout_s=args.timeout,
        payloads=() if args.shared else (120, 160, 2320),
    )


if __name__ == "__main__":
    sys.exit(main())
