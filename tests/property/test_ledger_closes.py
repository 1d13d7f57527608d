"""The time ledger of random runs: it closes exactly, and agrees with a slow and obvious oracle.

Kills, gaps, overlaps, missing ends, offset clocks, restarts, changing sizes, late and silent ranks, replica
groups, queues, runs that go on. RANKSCOPE_RANDOM_RUNS sets how many runs are tried.
"""

import os
import random
from collections import defaultdict

import duckdb
from facts import EPOCH_NS, FactBuilder, empty_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_oracle import Incident, Oracle, Process, Run, Span, Step

_RUNS = int(os.environ.get("RANKSCOPE_RANDOM_RUNS", "40"))
_MS = 1_000_000


class RandomRun:
    """Writes the same random run as facts and as the oracle's plain objects; times in milliseconds."""

    def __init__(self, rng: random.Random, run_id: str) -> None:
        self.rng = rng
        self.facts = FactBuilder(run_id, ranks=4)
        self.processes: list[Process] = []
        self.sizes: dict[int, int] = {}
        self.queues: dict[int, tuple[int, int]] = {}
        self.offset = {f"host-{index}": rng.choice([0, 0, 0, 1500, -700]) for index in range(3)}
        for host, offset in self.offset.items():
            if offset:
                self.facts.clock(host, offset / 1000)
        self.last: dict[int, int] = {}  # by id of a process: its last record
        self.host: dict[int, str] = {}
        self.goes_on = rng.random() < 0.3
        if rng.random() < 0.35:
            self._groups()
        else:
            self._attempts()

    def oracle(self, con: duckdb.DuckDBPyConnection) -> Oracle:
        """The oracle of this run; incidents are the store's own: they are no part of the ledger's rules."""
        rows = con.execute(
            "SELECT attempt, lane, incarnation, root_rank, began_ns, detected_ns "
            "FROM d_incident WHERE run_id = $run",
            {"run": self.facts.run_id},
        ).fetchall()
        ends = [p.end if p.end is not None else self.last[id(p)] for p in self.processes]
        return Oracle(
            Run(
                begin=min(process.spawn for process in self.processes),
                end=max(ends),
                over=all(process.end is not None for process in self.processes),
                world_sizes=self.sizes,
                processes=self.processes,
                incidents=[Incident(*row) for row in rows],
                queues=self.queues,
            )
        )

    def _attempts(self) -> None:
        rng, time, resumed = self.rng, 0, 0
        count = rng.choice([1, 1, 2, 2, 3])
        for attempt in range(count):
            size = rng.randint(1, 4)
            self.sizes[attempt] = size
            queued = {}
            if attempt and rng.random() < 0.2:
                queued = {
                    "queued": (time - rng.randint(0, 50)) / 1000,
                    "allocated": (time + rng.randint(0, 300)) / 1000,
                }
                self.queues[attempt] = tuple(
                    EPOCH_NS + round(value * 1000) * _MS for value in queued.values()
                )
            self.facts.attempt(attempt, world_size=size, launch=rng.choice(["a", "b"]), **queued)
            ends = []
            silent = rng.randrange(size) if size > 1 and rng.random() < 0.15 else None
            for rank in range(size):
                if rank == silent:
                    continue
                spawn = time + rng.choice([0, 0, rng.randint(0, 300), rng.randint(0, 900)])
                may_live = self.goes_on and attempt == count - 1
                end = self._process(attempt, rank, 0, -1, spawn, resumed, may_live)
                ends.append(end)
                if not may_live and rng.random() < 0.1:
                    ends.append(
                        self._process(attempt, rank, 1, -1, end + rng.randint(0, 200), resumed, False)
                    )
            resumed = rng.randint(0, max(1, resumed + 3))
            time = max(ends) + rng.choice([0, rng.randint(0, 500), -rng.randint(0, 100)])
            time = max(time, max(p.spawn for p in self.processes) // _MS - EPOCH_NS // _MS + 1)
        self._exchange()

    def _groups(self) -> None:
        rng = self.rng
        self.sizes[0] = 1
        self.facts.attempt(0, world_size=1)
        for rank in range(rng.randint(1, 4)):
            time, resumed = rng.choice([0, rng.randint(0, 500)]), 0
            count = rng.choice([1, 1, 2, 3])
            for incarnation in range(count):
                may_live = self.goes_on and incarnation == count - 1
                time = self._process(0, rank, incarnation, rank, time, resumed, may_live)
                time += rng.choice([0, rng.randint(0, 500)])
                resumed = rng.randint(0, resumed + 4)
        self._exchange()

    def _process(
        self, attempt: int, rank: int, incarnation: int, lane: int, spawn: int, resumed: int, may_live: bool
    ) -> int:
        """One process with random work in it; returns when it ends."""
        rng = self.rng
        host = rng.choice(sorted(self.offset))
        process = Process(attempt, rank, incarnation, self._ns(spawn), None, lane)
        open_step: tuple[int, int] | None = None
        time = spawn + rng.choice([0, rng.randint(0, 200)])
        for number in range(resumed, resumed + rng.choice([0, 1, 2, 4, 5])):
            if rng.random() < 0.4:
                wait = rng.randint(0, 60)
                process.spans.append(Span("data_wait", time, time + wait, number))
                time += wait
            length = rng.choice([100, 100, 100, rng.randint(1, 150), 450])
            if rng.random() < 0.08:
                open_step = (number, time)
                time += rng.randint(0, 150)
                break
            process.steps.append(Step(number, time, time + length, committed=rng.random() < 0.93))
            time += length + rng.choice([0, 0, rng.randint(0, 40)])
        end = time + rng.choice([0, rng.randint(0, 120)])
        for _ in range(rng.choice([0, 0, 1, 2, 4])):
            begin = rng.randint(spawn, max(spawn, end))
            category = rng.choice(["checkpoint_save", "eval", "quorum", "reconfigure", "heal", "data_wait"])
            number = rng.choice([None, resumed, resumed + 7]) if category == "data_wait" else None
            process.spans.append(Span(category, begin, min(end, begin + rng.randint(0, 150)), number))
        lives = may_live and rng.random() < 0.7
        if open_step is not None:
            process.steps.append(Step(open_step[0], open_step[1], None))
        self._write(process, host, spawn, end, lives)
        return end

    def _write(self, process: Process, host: str, spawn: int, end: int, lives: bool) -> None:
        rng, offset = self.rng, self.offset[host]
        attempt, rank, incarnation = process.attempt, process.rank, process.incarnation

        def at(time: int) -> float:
            return (time + offset) / 1000

        seen = not lives and rng.random() < 0.8
        self.facts.process(
            attempt,
            rank,
            spawn=at(spawn),
            end=at(end) if seen else None,
            host=host,
            incarnation=incarnation,
            exit_code=rng.choice([0, 0, -9, -15, 1, None]),
            last=at(end),
            complete=not lives and not seen,
            replica_group=process.lane if process.lane >= 0 else None,
            observer=rng.choice(["launcher", "self"]),
        )
        for step in process.steps:
            self.facts.step(
                attempt,
                rank,
                step.number,
                at(step.begin),
                None if step.end is None else at(step.end),
                committed=step.committed,
                incarnation=incarnation,
            )
            step.begin, step.end = self._ns(step.begin), None if step.end is None else self._ns(step.end)
        for span in process.spans:
            self.facts.span(
                attempt,
                rank,
                span.category,
                at(span.begin),
                at(span.end),
                step=span.step,
                incarnation=incarnation,
            )
            span.begin, span.end = self._ns(span.begin), self._ns(span.end)
        if not seen and rng.random() < 0.2:
            self.facts.signal(attempt, rank, "exception", at(end), message="boom", incarnation=incarnation)
        process.end = None if lives else self._ns(end)
        self.last[id(process)] = self._ns(end)
        self.processes.append(process)
        self.host[id(process)] = host

    def _exchange(self) -> None:
        """Collectives of all processes of an attempt that has the same steps: they wait for the last one."""
        for attempt in self.sizes:
            members = [p for p in self.processes if p.attempt == attempt and p.incarnation == 0]
            if len(members) < 2 or len({p.rank for p in members}) < len(members) or self.rng.random() < 0.4:
                continue
            ranks = [p.rank for p in members]
            self.facts.group(attempt, "world", ranks)
            missing = self.rng.choice([None, None, None, ranks[0]])
            for seq in range(self.rng.randint(1, 3)):
                arrivals = {}
                for p in members:
                    if p.steps:
                        step = self.rng.choice(p.steps)
                        arrivals[p.rank] = step.begin + self.rng.randint(0, 80) * _MS
                if set(arrivals) != set(ranks):
                    continue
                last = max(arrivals.values())
                for p in members:
                    if p.rank == missing:
                        continue
                    end = last + self.rng.randint(0, 20) * _MS
                    offset = self.offset[self.host[id(p)]]
                    self.facts.collective(
                        attempt,
                        p.rank,
                        seq,
                        self._s(arrivals[p.rank], offset),
                        self._s(end, offset),
                    )
                    if missing is None and last > arrivals[p.rank]:
                        p.waits.append((arrivals[p.rank], last))

    @staticmethod
    def _ns(time_ms: int) -> int:
        return EPOCH_NS + time_ms * _MS

    @staticmethod
    def _s(time_ns: int, offset_ms: int) -> float:
        return ((time_ns - EPOCH_NS) // _MS + offset_ms) / 1000


def check(con: duckdb.DuckDBPyConnection, run_id: str, oracle: Oracle) -> None:
    """The store's ledger equals the oracle's, tiles all planned time, and adds up in all its forms."""
    found = {
        (rank, category): ns
        for rank, category, ns in con.execute(
            "SELECT rank, category, sum(ns)::BIGINT FROM v_ledger WHERE run_id = $run GROUP BY ALL",
            {"run": run_id},
        ).fetchall()
    }
    assert found == {key: ns for key, ns in oracle.ledger().items() if ns}
    planned, minutes, total = con.execute(
        "SELECT (SELECT coalesce(sum(end_ns - begin_ns), 0)::HUGEINT FROM d_plan WHERE run_id = $run), "
        "(SELECT coalesce(sum(ns), 0)::HUGEINT FROM v_ledger_minute WHERE run_id = $run), "
        "(SELECT ledger_total_ns FROM v_run WHERE run_id = $run)",
        {"run": run_id},
    ).fetchone() or (None, None, None)
    assert sum(found.values()) == planned == minutes == total
    by_rank: dict[int, int] = defaultdict(int)
    for rank, begin, end in con.execute(
        "SELECT rank, begin_ns, end_ns FROM v_ledger_interval WHERE run_id = $run ORDER BY rank, begin_ns",
        {"run": run_id},
    ).fetchall():
        assert begin < end
        assert begin >= by_rank[rank], "two categories at once"
        by_rank[rank] = end


@settings(max_examples=_RUNS, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_random_runs_agree_with_the_oracle(rng: random.Random) -> None:
    run = RandomRun(rng, "random")
    con = _fresh()
    run.facts.write(con)
    check(con, "random", run.oracle(con))


_store: list[duckdb.DuckDBPyConnection] = []


def _fresh() -> duckdb.DuckDBPyConnection:
    """One store for all examples, emptied: making views takes longer than using them."""
    if not _store:
        _store.append(empty_store())
    con = _store[0]
    for (table,) in con.execute(
        "SELECT table_name FROM duckdb_tables() "
        "WHERE table_name NOT IN ('d_catalog', 'd_help', 'schema_version')"
    ).fetchall():
        con.execute(f"DELETE FROM {table}")
    return con
