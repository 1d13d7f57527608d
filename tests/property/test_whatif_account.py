"""The vectorised account against a slow, obvious one that walks through a run second by second."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.analytics.accounting import account
from rankscope.analytics.scenario import DAY_S, Failures, Scenario
from rankscope.analytics.whatif import replay, simulate
from rankscope.ingest.vocabulary import LedgerCategory as C

SECOND = 10**9


@st.composite
def scenarios(draw: st.DrawFn, *, checkpoints: bool = True) -> Scenario:
    groups = draw(st.integers(1, 4))
    small = st.integers(0, 12)
    return Scenario(
        groups=groups,
        days=draw(st.integers(20, 150)) / DAY_S,
        detect_s=draw(small),
        restart_s=draw(small),
        group_restart_s=draw(st.none() | small),
        stall_s=draw(small),
        redo_s=draw(small),
        heal_s=draw(small),
        rejoin_stall_s=draw(small),
        least_groups=draw(st.integers(1, groups)),
        checkpoint_interval_s=draw(st.none() | st.integers(1, 30)) if checkpoints else None,
        spare_hosts=draw(st.none() | st.integers(0, 3)),
        repair_s=draw(st.integers(0, 60)),
        failures_during_recovery=draw(st.booleans()),
    )


@st.composite
def failures(draw: st.DrawFn, most: int = 10) -> Failures:
    count = draw(st.integers(0, most))
    times = sorted(draw(st.lists(st.integers(0, 160), min_size=count, max_size=count)))
    places = draw(st.lists(st.sampled_from([0.0, 0.26, 0.51, 0.76]), min_size=count, max_size=count))
    own = draw(st.booleans())
    detect = draw(st.lists(st.integers(0, 15), min_size=count, max_size=count)) if own else None
    return Failures(
        np.array(times, dtype=float),
        np.array(places, dtype=float),
        None if detect is None else np.array(detect, dtype=float),
    )


def walk(s: Scenario, f: Failures) -> Counter[C]:
    """Group-seconds by category, one second and one group at a time; all times are whole seconds."""
    horizon = round(s.horizon_s)
    restart = s.restart_s if s.group_restart_s is None else s.group_restart_s
    machines = [0.0] * (s.spare_hosts or 0)
    struck = [i for i, time in enumerate(f.time_s) if time < horizon]
    machines = sorted(machines + [f.time_s[i] + s.repair_s for i in struck])
    absence: dict[int, list[list[float]]] = {group: [] for group in range(s.groups)}
    seen: list[tuple[float, float]] = []
    for nth, i in enumerate(struck):
        time, detect = f.time_s[i], s.detect_s if f.detect_s is None else f.detect_s[i]
        host = time if s.spare_hosts is None else max(time, machines[nth])
        joined = max(time + detect, host) + restart
        spells = absence[int(f.place[i] * s.groups)]
        if spells and time < spells[-1][1]:
            if s.failures_during_recovery:
                spells[-1][1] = max(spells[-1][1], joined + s.heal_s)
                spells[-1][2] = max(spells[-1][2], joined)
            continue
        spells.append([time, joined + s.heal_s, joined])
        seen.append((time, detect))

    def away(group: int, t: float) -> list[float] | None:
        return next((spell for spell in absence[group] if spell[0] <= t < spell[1]), None)

    def dark(t: float) -> bool:
        return s.groups - sum(away(group, t) is not None for group in range(s.groups)) < s.least_groups

    # A moment of darkness may last no time at all at a join, so it is asked for just before.
    joins = [spell[1] for spells in absence.values() for spell in spells]
    joins = _joins_into_light(s, absence, joins)
    ledger: Counter[C] = Counter()
    cycle: list[tuple[int, int]] = []
    for t in range(horizon):
        here = [group for group in range(s.groups) if not away(group, t)]

        def within(lengths: list[tuple[float, float]], t: int = t) -> bool:
            return any(begin <= t < begin + length for begin, length in lengths)

        if dark(t):
            ledger[C.LOST] += sum(number for _, number in cycle)
            ledger[C.PRODUCTIVE] -= sum(number for _, number in cycle)
            cycle = []
            ledger[C.DETECT if within(seen) else C.RESTART] += s.groups
            continue
        for group in range(s.groups):
            spell = away(group, t)
            if spell:
                ledger[C.HEAL if t >= spell[2] else C.ABSENT] += 1
        stalled = s.groups > 1
        if stalled and within(seen):
            category = C.DETECT
        elif stalled and within([(time, detect + s.stall_s) for time, detect in seen]):
            category = C.QUORUM
        elif stalled and within([(time, s.rejoin_stall_s) for time in joins]):
            category = C.RECONFIGURE
        elif stalled and within([(time, detect + s.stall_s + s.redo_s) for time, detect in seen]):
            category = C.LOST
        else:
            category = C.PRODUCTIVE
            if s.checkpoint_interval_s is not None:
                cycle.append((t, len(here)))
                if len(cycle) == s.checkpoint_interval_s:
                    cycle = []
        ledger[category] += len(here)
    return ledger


def _joins_into_light(s: Scenario, absence: dict[int, list[list[float]]], joins: list[float]) -> list[float]:
    """Joins at which training goes on: of several at once, as many as leave enough groups at hand."""
    kept = []
    least_away = s.groups - s.least_groups + 1
    for time in sorted(set(joins)):
        ending = joins.count(time)
        before = sum(spell[0] < time <= spell[1] for spells in absence.values() for spell in spells)
        if before < least_away or ending > before - least_away + 1:
            kept.append(time)
    return kept


@settings(max_examples=200, deadline=None)
@given(scenarios(), failures())
def test_account_is_what_a_walk_finds(scenario: Scenario, given_failures: Failures) -> None:
    ledger = account(scenario, given_failures.as_runs())
    found = {category: int(ns[0]) / SECOND for category, ns in ledger.items() if ns[0]}
    walked = walk(scenario, given_failures)
    assert found == {category: seconds for category, seconds in walked.items() if seconds}


@settings(max_examples=200, deadline=None)
@given(scenarios(), st.lists(failures(), min_size=1, max_size=5), st.integers(0, 9))
def test_closes_and_runs_do_not_touch_each_other(
    scenario: Scenario, runs: list[Failures], write: int
) -> None:
    scenario = replace(scenario, checkpoint_write_s=write / 7)
    width = max(len(run.time_s) for run in runs)
    late = scenario.horizon_s + 1

    def padded(name: str, filler: float) -> np.ndarray:
        return np.array([[*getattr(run, name), *[filler] * (width - len(run.time_s))] for run in runs])

    together = account(scenario, Failures(padded("time_s", max(late, 161)), padded("place", 0.0)))
    total = scenario.groups * round(scenario.horizon_s * 1e9)
    for index, run in enumerate(runs):
        alone = account(scenario, Failures(run.time_s, run.place).as_runs())
        assert {c: int(ns[index]) for c, ns in together.items()} == {c: int(ns[0]) for c, ns in alone.items()}
        assert sum(int(ns[index]) for ns in together.values()) == total
        assert min(int(ns[index]) for ns in together.values()) >= 0


@settings(max_examples=100, deadline=None)
@given(scenarios(checkpoints=False), failures())
def test_groups_are_never_worse_where_they_wait_less(scenario: Scenario, some: Failures) -> None:
    scenario = replace(
        scenario,
        rejoin_stall_s=0,
        least_groups=1,
        restart_s=scenario.stall_s + scenario.redo_s + scenario.heal_s,
        group_restart_s=min(scenario.stall_s + scenario.redo_s, scenario.restart_s),
        spare_hosts=None,
        failures_during_recovery=True,
    )
    result = replay(scenario, some)
    assert result.isolated.ett_capacity.mean >= result.synchronous.ett_capacity.mean - 1e-12


@settings(max_examples=100, deadline=None)
@given(scenarios(checkpoints=False), failures(), st.integers(0, 9))
def test_no_synchronous_gain_by_a_failure(scenario: Scenario, some: Failures, left_out: int) -> None:
    scenario = replace(scenario, failures_during_recovery=True)
    fewer = np.arange(len(some.time_s)) != left_out
    with_all = replay(scenario, Failures(some.time_s, some.place)).synchronous
    without = replay(scenario, Failures(some.time_s[fewer], some.place[fewer])).synchronous
    assert with_all.ett_capacity.mean <= without.ett_capacity.mean + 1e-12


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["exponential", "trace"]))
def test_a_seed_gives_the_same_again(seed: int, arrivals: str) -> None:
    scenario = Scenario(groups=3, days=0.5, arrivals=arrivals, trace_gaps_s=(300, 900, 2000), stall_s=60)
    first, again = simulate(scenario, 40, seed), simulate(scenario, 40, seed)
    other = simulate(scenario, 40, seed + 1)
    assert first == again
    assert first.isolated.ledger_ns != other.isolated.ledger_ns
    assert first.isolated.ledger_total_ns == sum(first.isolated.ledger_ns.values()) == 40 * 3 * 43200 * SECOND
    assert first.isolated.ett_capacity.mean <= first.isolated.ett_time.mean <= 1
