"""A slow and obvious time ledger, to check the fast one against: it asks at each moment which rule applies.

Times are integers. Between two boundaries nothing changes, so one question per stretch is enough.
"""

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

_LOST_CAPACITY = ("queue", "absent", "restart", "detect")
_RECOVERY = ("quorum", "reconfigure", "heal", "lost", "init")
_WORK = ("checkpoint", "eval", "data_wait", "straggler_wait", "stall", "productive", "unexplained")
ORDER = (*_LOST_CAPACITY, *_RECOVERY, *_WORK)


@dataclass
class Step:
    number: int
    begin: int
    end: int | None  # None: it never ended
    committed: bool = True


@dataclass
class Span:
    category: str
    begin: int
    end: int
    step: int | None = None


@dataclass
class Process:
    attempt: int
    rank: int
    incarnation: int
    spawn: int
    end: int | None  # None: it lives
    lane: int = -1
    failed: bool = False
    steps: list[Step] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    waits: list[tuple[int, int]] = field(default_factory=list)  # inside collectives, for the last to come

    @property
    def first_step(self) -> int | None:
        return min((step.number for step in self.steps), default=None)

    @property
    def first_begin(self) -> int | None:
        return min((step.begin for step in self.steps), default=None)


@dataclass
class Incident:
    attempt: int
    lane: int
    incarnation: int
    root: int | None
    began: int
    detected: int


@dataclass
class Run:
    begin: int
    end: int
    over: bool
    world_sizes: dict[int, int]
    processes: list[Process]
    incidents: list[Incident] = field(default_factory=list)
    queues: dict[int, tuple[int, int]] = field(default_factory=dict)  # attempt -> (queued, allocated)

    @property
    def has_lanes(self) -> bool:
        return any(process.lane >= 0 for process in self.processes)


class Oracle:
    """Computes one run's ledger."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.windows = self._windows()
        self.reference = self._reference()

    def ledger(self) -> dict[tuple[int, str], int]:
        """Time per (rank, category)."""
        found: dict[tuple[int, str], int] = defaultdict(int)
        for lane, windows in self.windows.items():
            for place, (attempt, begin, end) in enumerate(windows):
                for rank in self._planned(lane, attempt):
                    edges = sorted({begin, end, *(t for t in self._edges(rank) if begin < t < end)})
                    for low, high in itertools.pairwise(edges):
                        category = self._category(lane, place, attempt, rank, low)
                        found[rank, category] += high - low
        return dict(found)

    def _end(self, process: Process) -> int:
        return self.run.end if process.end is None else process.end

    def _windows(self) -> dict[int, list[tuple[int, int, int]]]:
        lanes: dict[int, dict[int, list[Process]]] = defaultdict(lambda: defaultdict(list))
        for process in self.run.processes:
            lanes[process.lane][process.attempt].append(process)
        windows = {}
        for lane, attempts in lanes.items():
            order = sorted(attempts, key=lambda attempt: (min(p.spawn for p in attempts[attempt]), attempt))
            cuts = [self.run.begin]
            for before, after in itertools.pairwise(order):
                ended = max(self._end(process) for process in attempts[before])
                cuts.append(min(ended, min(process.spawn for process in attempts[after])))
            cuts.append(self.run.end)
            windows[lane] = [(attempt, cuts[i], cuts[i + 1]) for i, attempt in enumerate(order)]
        return windows

    def _planned(self, lane: int, attempt: int) -> list[int]:
        seen = {p.rank for p in self.run.processes if (p.lane, p.attempt) == (lane, attempt)}
        return sorted(
            seen | set() if self.run.has_lanes else seen | set(range(self.run.world_sizes[attempt]))
        )

    def _scope(self, attempt: int) -> list[Process]:
        return [p for p in self.run.processes if self.run.has_lanes or p.attempt == attempt]

    def _alive(self, attempt: int, t: int) -> bool:
        return any(p.spawn <= t < self._end(p) for p in self._scope(attempt))

    def _epoch(self, process: Process) -> int:
        if not self.run.has_lanes:
            return [attempt for attempt, *_ in self.windows[-1]].index(process.attempt)
        # How often nobody was left before it began.
        reach, epoch = None, 0
        for other in sorted(self.run.processes, key=lambda p: p.spawn):
            if other.spawn > process.spawn:
                break
            if reach is not None and other.spawn > reach:
                epoch += 1
            reach = self._end(other) if reach is None else max(reach, self._end(other))
        return epoch

    def fate(self, process: Process, step: Step) -> str:
        """kept, open or lost."""
        if step.end is None:
            return "open" if process.end is None else "lost"
        epoch = self._epoch(process)
        resumed = [
            p.first_step for p in self.run.processes if p.first_step is not None and self._epoch(p) > epoch
        ]
        kept = step.committed and (not resumed or step.number < min(resumed))
        return "kept" if kept else "lost"

    def _reference(self) -> int | None:
        by_step: dict[tuple[int, int], list[int]] = defaultdict(list)
        kept: dict[tuple[int, int], set[int]] = defaultdict(set)
        warm = set()
        opened = set()
        for process in self.run.processes:
            for step in process.steps:
                key = (process.attempt, step.number)
                fate = self.fate(process, step)
                by_step[key].append(self._step_end(process, step) - step.begin)
                if fate == "kept":
                    kept[key].add(process.rank)
                if fate == "open":
                    opened.add(key)
                if step.begin == process.first_begin:
                    warm.add(key)
        all_ranks = {p.rank for p in self.run.processes}
        tiers: list[list[float]] = [[], [], []]
        for key, durations in by_step.items():
            if not kept[key] or key in opened:
                continue
            planned = len(all_ranks) if self.run.has_lanes else len(self._planned(-1, key[0]))
            tier = 2 if key in warm else 1 if len(kept[key]) < planned else 0
            tiers[tier].append(int(round_half_even(median(durations))))
        for tier_durations in tiers:
            if tier_durations:
                return int(round_half_even(median(tier_durations)))
        return None

    def _step_end(self, process: Process, step: Step) -> int:
        return max(self._end(process), step.begin) if step.end is None else step.end

    def _edges(self, rank: int) -> set[int]:
        edges = {i.began for i in self.run.incidents} | {i.detected for i in self.run.incidents}
        for queued, allocated in self.run.queues.values():
            edges |= {queued, allocated}
        for process in self.run.processes:
            edges |= {process.spawn, self._end(process)}
            if process.first_begin is not None:
                edges.add(process.first_begin)
            if process.rank != rank:
                continue
            for step in process.steps:
                end = self._step_end(process, step)
                edges |= {step.begin, end}
                if self.reference is not None:
                    edges |= {step.begin + self.reference, end - self.reference}
            for span in process.spans:
                edges |= {span.begin, span.end}
            for begin, end in process.waits:
                edges |= {begin, end}
        return edges

    def _process_at(
        self, lane: int, attempt: int, rank: int, t: int
    ) -> tuple[Process | None, Process | None]:
        """The process whose records count at t, and the same if it lives at t."""
        own = sorted(
            (p for p in self.run.processes if (p.lane, p.attempt, p.rank) == (lane, attempt, rank)),
            key=lambda p: (p.spawn, p.incarnation),
        )
        if not own:
            return None, None
        current = own[0]
        for before, after in itertools.pairwise(own):
            if t >= min(self._end(before), after.spawn):
                current = after
        return current, current if current.spawn <= t < self._end(current) else None

    def _category(self, lane: int, place: int, attempt: int, rank: int, t: int) -> str:
        claims = set()
        run = self.run
        if attempt in run.queues and run.queues[attempt][0] <= t < run.queues[attempt][1]:
            claims.add("queue")
        current, living = self._process_at(lane, attempt, rank, t)
        if living is None:
            claims |= self._without_process(lane, place, attempt, rank, t, current)
        else:
            claims |= self._within(living, t)
        return next((category for category in ORDER if category in claims), "unexplained")

    def _without_process(
        self, lane: int, place: int, attempt: int, rank: int, t: int, current: Process | None
    ) -> set[str]:
        scope = self._scope(attempt)
        alive = self._alive(attempt, t)
        is_last = place == len(self.windows[lane]) - 1
        launching = "init" if place == 0 else "restart"
        if current is None:  # a silent rank
            if not scope or t < min(p.spawn for p in scope):
                return {launching}
            if t >= max(self._end(p) for p in scope):
                return (
                    set() if is_last and self.run.over and not self._failed(lane, attempt, 0) else {"restart"}
                )
            return set()
        own = [p for p in self.run.processes if (p.lane, p.attempt, p.rank) == (lane, attempt, rank)]
        born = any(p.spawn <= t for p in own)
        begins = [p.first_begin for p in scope if p.first_begin is not None]
        training = bool(begins) and t >= min(begins)
        claims = set()
        if alive and (born or training):
            claims.add("absent")
        if not born:
            claims.add(launching)
        elif t < current.spawn:
            claims.add("restart")
        else:
            last_process = is_last and current is max(own, key=lambda p: (p.spawn, p.incarnation))
            done = last_process and self.run.over and not self._failed(lane, attempt, current.incarnation)
            if not done:
                claims.add("restart")
        return claims

    def _failed(self, lane: int, attempt: int, incarnation: int) -> bool:
        return any(
            (i.attempt, i.lane, i.incarnation) == (attempt, lane, incarnation) for i in self.run.incidents
        )

    def _within(self, process: Process, t: int) -> set[str]:
        claims = set()
        for incident in self.run.incidents:
            unit = (process.attempt, process.lane, process.incarnation)
            is_root = (incident.attempt, incident.lane, incident.incarnation, incident.root) == (
                *unit,
                process.rank,
            )
            if is_root and process.spawn <= incident.began <= t and self._end(process) > incident.began:
                claims.add("detect")
        for began, detected in self._unseen(process.attempt):
            if process.spawn <= began <= t < detected and self._end(process) > began:
                claims.add("detect")
        first = process.first_begin
        if first is None or t < first:
            claims.add("init")
        kept_now = False
        for step in process.steps:
            fate, end = self.fate(process, step), self._step_end(process, step)
            if not step.begin <= t < end:
                continue
            if fate == "lost":
                claims.add("lost")
            else:
                kept_now = True
                claims.add("productive")
                if self.reference is not None and end - step.begin > 3 * self.reference <= 3 * (
                    t - step.begin
                ):
                    claims.add("stall")
            if step.begin == first and self.reference is not None and t < end - self.reference:
                claims.add("init")
        for span in process.spans:
            if span.begin <= t < span.end:
                claims |= self._span_claims(process, span)
        if kept_now and any(begin <= t < end for begin, end in process.waits):
            claims.add("straggler_wait")
        return claims

    def _unseen(self, attempt: int) -> list[list[int]]:
        """Stretches in which some failure was not seen yet."""
        stretches: list[list[int]] = []
        for incident in sorted(self.run.incidents, key=lambda i: (i.began, i.detected)):
            if incident.detected <= incident.began or not (self.run.has_lanes or incident.attempt == attempt):
                continue
            if stretches and incident.began <= stretches[-1][1]:
                stretches[-1][1] = max(stretches[-1][1], incident.detected)
            else:
                stretches.append([incident.began, incident.detected])
        return stretches

    def _span_claims(self, process: Process, span: Span) -> set[str]:
        if span.category == "data_wait":
            fates = {self.fate(process, step) for step in process.steps if step.number == span.step}
            never_began = span.step is not None and not fates and process.end is not None
            failed = self._failed(process.lane, process.attempt, process.incarnation)
            return {"data_wait", "lost"} if "lost" in fates or (never_began and failed) else {"data_wait"}
        return {{"checkpoint_save": "checkpoint"}.get(span.category, span.category)}


def round_half_even(value: float) -> float:
    """As DuckDB casts a half: to even."""
    return round(value)
