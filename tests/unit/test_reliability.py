"""Failure rates by size and host, storms, taxonomy: by hand, and against simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankscope.analytics.reliability import (
    corrected_p,
    failures_per_1000_node_days,
    mttf,
    mttf_by_size,
    repeat_offenders,
)
from rankscope.analytics.storms import restart_storms, scan_p, stuck_attempts
from rankscope.analytics.taxonomy import cause_of, published, table
from rankscope.ingest.vocabulary import FailureKind


def test_failures_per_1000_node_days_are_the_inverse_of_mttf() -> None:
    rate = failures_per_1000_node_days(13, 2000)  # RSC-1's 6.50 per 1,000 node-days
    assert rate.value == pytest.approx(6.5)
    assert rate.low == pytest.approx(1000 / mttf(13, 2000).high)
    assert failures_per_1000_node_days(0, 2000).low == 0


def test_size_law_is_found_in_runs_that_follow_it() -> None:
    rng = np.random.default_rng(5)
    sizes = np.repeat([16, 64, 256, 1024], 10)
    hours = np.full(40, 500.0)
    failures = rng.poisson(6.5e-3 / 24 * sizes * hours)
    law = mttf_by_size(sizes.tolist(), failures.tolist(), hours.tolist())
    assert law.follows
    assert law.per_node_day.low < 6.5e-3 < law.per_node_day.high
    assert law.mttf_h(2048).value == pytest.approx(1.803, rel=0.1)
    assert law.mttf_h(2048).low < 1.803 < law.mttf_h(2048).high


def test_size_law_is_refused_where_failures_do_not_grow_with_size() -> None:
    law = mttf_by_size([16, 64, 256, 1024], [40, 41, 39, 40], [1000.0] * 4)
    assert law.follows is False
    assert law.exponent is not None and abs(law.exponent.value) < 0.05


def test_size_law_with_one_size_has_no_exponent() -> None:
    law = mttf_by_size([8, 8], [1, 2], [100, 100])
    assert (law.exponent, law.follows) == (None, None)
    assert mttf_by_size([8, 16], [0, 0], [100, 100]).mttf_h(8).value == math.inf


def test_a_lemon_stands_out_and_exposure_counts() -> None:
    """60 hosts, one failure each on average; one has 9. Another has as many in ten times the time."""
    hosts = [f"h{i}" for i in range(60)]
    failures, exposure = [1] * 60, [30.0] * 60
    failures[7] = 9
    failures[8], exposure[8] = 9, 300.0
    found = repeat_offenders(hosts, failures, exposure)
    assert [offender.host for offender in found if offender.flagged] == ["h7"]
    lemon = found[0]
    assert lemon.expected == pytest.approx(sum(failures) * 30 / sum(exposure))
    n, share = sum(failures), 30 / sum(exposure)
    tail = 1 - sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(9))
    assert lemon.p == pytest.approx(tail, rel=1e-6)
    assert lemon.p_corrected == pytest.approx(60 * tail, rel=1e-6)
    assert lemon.correction == "holm"


def test_chance_alone_names_hardly_anybody() -> None:
    rng = np.random.default_rng(11)
    exposure = rng.uniform(1, 30, size=200)
    named = 0
    for _ in range(100):
        failures = rng.poisson(exposure * 0.05)
        named += any(o.flagged for o in repeat_offenders(["h"] * 200, failures.tolist(), exposure.tolist()))
    assert named <= 10  # 5 % at most are expected


def test_corrections_as_in_the_textbook() -> None:  # Benjamini & Hochberg 1995, section 3.2
    p = np.array(
        [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
         0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    )  # fmt: skip
    assert (corrected_p(p, "holm") <= 0.05).sum() == 3
    assert (corrected_p(p, "bh") <= 0.05).sum() == 4


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_correction_never_makes_a_p_smaller_or_the_order_another(values: list[float]) -> None:
    p = np.array(values)
    holm, bh = corrected_p(p, "holm"), corrected_p(p, "bh")
    assert (bh >= p - 1e-12).all() and (holm >= bh - 1e-12).all() and holm.max() <= 1
    order = np.argsort(p, kind="stable")
    assert (np.diff(holm[order]) >= 0).all() and (np.diff(bh[order]) >= 0).all()


def test_failures_without_exposure_are_refused() -> None:
    with pytest.raises(ValueError, match="a failure needs exposure"):
        repeat_offenders(["a"], [1], [0])


def test_scan_statistic_against_simulation() -> None:
    rng = np.random.default_rng(2)
    span, window, rate = 1000.0, 20.0, 0.05
    fullest = []
    for _ in range(4000):
        times = np.sort(rng.uniform(0, span, rng.poisson(rate * span)))
        inside = np.searchsorted(times, times + window, side="right") - np.arange(len(times))
        fullest.append(inside.max(initial=0))
    for most in (6, 7, 8):
        simulated = np.mean(np.array(fullest) >= most)
        assert scan_p(most, rate, window, span) == pytest.approx(simulated, abs=0.03)


def test_a_storm_is_found_and_steady_restarts_are_none() -> None:
    steady = [86400.0 * day for day in range(1, 30)]
    assert restart_storms(steady, 30 * 86400) == []
    stormy = sorted(steady + [432000.0 + 60 * i for i in range(1, 9)])
    (storm,) = restart_storms(stormy, 30 * 86400)
    assert (storm.begin_s, storm.end_s, storm.restarts) == (432000.0, 432480.0, 9)
    assert storm.p < 1e-6


def test_attempts_that_get_nowhere() -> None:
    assert stuck_attempts([0, 40, 40, 40, 80]) == [(1, 3)]
    assert stuck_attempts([0, 40, 80, 120]) == []
    assert stuck_attempts([0, 40, None, 40, None]) == [(1, 4)]
    assert stuck_attempts([None, None, None]) == [(0, 2)]


def test_every_kind_of_failure_has_a_name_in_the_table() -> None:
    names = {cause.name for cause in published().causes} | {"unknown", "planned"}
    assert {cause_of(kind) for kind in FailureKind} <= names
    assert cause_of("hardware", "hbm3") == "hbm3"
    assert cause_of("hardware") == cause_of("crash") == "unknown"
    assert cause_of("exception", "no such cause") == "software_bug"


def test_own_table_counts_and_shares() -> None:
    lines = table([("hardware", "hbm3"), ("hardware", "hbm3"), ("planned", None), ("exception", None)])
    assert [(line.name, line.count) for line in lines] == [("hbm3", 2), ("planned", 1), ("software_bug", 1)]
    assert [line.share for line in lines] == [pytest.approx(2 / 3), 0.0, pytest.approx(1 / 3)]
    assert lines[0].title == "GPU HBM3 memory"
    assert table([]) == []
