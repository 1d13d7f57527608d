"""Who the processes are: their runs and attempts, and the numbers they get when they are first seen."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from rankscope.ingest.decode import Process
from rankscope.ingest.segments import sound
from rankscope.ingest.store import source_id
from rankscope.ingest.strings import clean_json

Row = dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """What a process says about itself, with everything unfit left out."""

    run_id: str
    launch_id: str
    restart_count: int
    rank: int
    world_size: int | None
    local_rank: int | None
    host: str
    pid: int
    start_ns: int | None
    incarnation: int
    replica_group: int | None
    mesh: str | None  # JSON
    role: str
    command: str | None
    python: str | None

    @classmethod
    def parse(cls, described: Mapping[str, Any], run: str) -> "Identity":
        """Read the description in a segment's header; `run` where it names none."""

        def number(key: str, limit: int = 2**31) -> int | None:
            value = described.get(key)
            fits = isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
            return value if fits else None

        def text(key: str) -> str | None:
            value = described.get(key)
            return sound(str(value)) if value not in (None, "") else None

        mesh = described.get("mesh")
        return cls(
            run_id=text("run_id") or run,
            launch_id=text("launch_id") or "",
            restart_count=number("restart_count") or 0,
            rank=_or(number("rank"), -1),
            world_size=number("world_size"),
            local_rank=number("local_rank"),
            host=text("host") or "",
            pid=_or(number("pid"), 0),
            start_ns=number("start_ns", 2**62),
            incarnation=number("incarnation") or 0,
            replica_group=number("replica_group"),
            mesh=clean_json(json.dumps(mesh)) if isinstance(mesh, dict) else None,
            role=text("role") or "rank",
            command=text("command"),
            python=text("python"),
        )


@dataclass
class Additions:
    """Rows that a transaction has to add, by table."""

    runs: list[Row] = field(default_factory=list)
    attempts: list[Row] = field(default_factory=list)
    ranks: list[Row] = field(default_factory=list)


class Registry:
    """Attempt numbers of all runs that it was asked about, and the rows that must still be written."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._attempts: dict[str, dict[tuple[str, int], int]] = {}  # by run: (launch, restart count)
        self._lives: dict[str, dict[tuple[Any, ...], int]] = {}  # by run: processes that a rank had before
        self.additions = Additions()

    def process(self, identity: Identity, stream: str, began: tuple[int, int]) -> Process:
        """Give a new process its place, and note the rows that say so.

        Args:
            began: the pair of its clocks, (wall, monotonic) in ns, when its recorder opened.
        """
        first_ns = min(began[0], identity.start_ns or began[0])
        launch, incarnation = identity.launch_id, identity.incarnation
        if identity.rank >= 0 and (life := self._life(identity)):
            # A rank that comes again in one attempt: a replica group's next incarnation; without groups, it
            # was started again by hand, and that is another attempt.
            if identity.replica_group is not None:
                incarnation = max(incarnation, life)
            else:
                launch = f"{launch}+{life}"
        attempt = self.attempt(identity.run_id, launch, identity.restart_count, first_ns)
        number = source_id(stream)
        self.additions.runs.append(
            {"run_id": identity.run_id, "began_ns": first_ns, "command": identity.command}
            | {"planned_ranks": identity.world_size}
        )
        self.additions.attempts.append(
            {"run_id": identity.run_id, "attempt": attempt, "began_ns": first_ns}
            | {"launch_id": launch, "restart_count": identity.restart_count}
            | {"world_size": identity.world_size}
        )
        self.additions.ranks.append(
            {
                "run_id": identity.run_id,
                "attempt": attempt,
                "rank": identity.rank,
                "incarnation": incarnation,
                "host": identity.host,
                "local_rank": identity.local_rank,
                "pid": identity.pid,
                "replica_group": identity.replica_group,
                "mesh": identity.mesh,
                "spawn_ns": identity.start_ns,
                "began_ns": began[0],
                "wall_ns": began[0],
                "mono_ns": began[1],
                "role": identity.role,
                "attrs": clean_json(json.dumps({"python": identity.python})) if identity.python else None,
                "source_id": number,
            }
        )
        return Process(identity.run_id, attempt, identity.rank, incarnation, identity.host, number)

    def attempt(self, run_id: str, launch_id: str, restart_count: int, first_ns: int | None = None) -> int:
        """The number of an attempt; a new one gets the next."""
        known = self._attempts.get(run_id)
        if known is None:
            found = self._con.execute(
                "SELECT launch_id, restart_count, attempt FROM attempt WHERE run_id = $run", {"run": run_id}
            ).fetchall()
            known = self._attempts[run_id] = {(launch, count): number for launch, count, number in found}
        key = (launch_id, restart_count)
        if key not in known:
            known[key] = max(known.values(), default=-1) + 1
            self.additions.attempts.append(
                {"run_id": run_id, "attempt": known[key], "began_ns": first_ns, "world_size": None}
                | {"launch_id": launch_id, "restart_count": restart_count}
            )
        return known[key]

    def _life(self, identity: Identity) -> int:
        """How many processes were this rank of this launch and restart before."""
        lives = self._lives.get(identity.run_id)
        if lives is None:
            found = self._con.execute(
                "SELECT split_part(launch_id, '+', 1), restart_count, rank, replica_group, count(*) "
                "FROM rank JOIN attempt USING (run_id, attempt) "
                "WHERE run_id = $run AND rank >= 0 AND source_id IS NOT NULL GROUP BY ALL",
                {"run": identity.run_id},
            ).fetchall()
            lives = self._lives[identity.run_id] = {tuple(key): count for *key, count in found}
        launch = identity.launch_id.partition("+")[0]
        key = (launch, identity.restart_count, identity.rank, identity.replica_group)
        lives[key] = lives.get(key, 0) + 1
        return lives[key] - 1


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
