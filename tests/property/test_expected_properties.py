"""Expected effective time: derivatives, bounds, best intervals and the advice drawn from them."""

import re
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.analytics.checkpoint_interval import daly, simulated_optimum
from rankscope.analytics.expected import (
    Rates,
    approximation_a,
    approximation_b,
    best_interval,
    expected,
    sensitivities,
    with_value,
)
from rankscope.analytics.interval import Interval
from rankscope.analytics.levers import advice, levers
from rankscope.analytics.observed import mean_interval, observed_rates

NAMES = {
    "per_restart_s": "restart_s",
    "per_checkpoint_interval_s": "checkpoint_interval_s",
    "per_failure_per_day": "failures_per_day",
    "per_queue_s": "queue_s",
    "per_checkpoint_write_s": "checkpoint_write_s",
}


@st.composite
def rates(draw: st.DrawFn) -> Rates:
    return Rates.of(
        failures_per_day=draw(st.floats(0.1, 40)),
        restart_s=draw(st.floats(10, 900)),
        checkpoint_interval_s=draw(st.floats(30, 1500)),
        checkpoint_write_s=draw(st.floats(1, 60)),
        queue_s=draw(st.floats(0, 1200)),
        productive_s=draw(st.floats(86400, 90 * 86400)),
    )


@given(rates())
def test_derivatives_are_those_of_the_ratio(given_rates: Rates) -> None:
    slopes = sensitivities(given_rates)
    for slope, name in NAMES.items():
        value = getattr(given_rates, name).value
        step = max(value, 1.0) * 1e-5
        above = expected(with_value(given_rates, name, value + step)).value
        below = expected(with_value(given_rates, name, max(0.0, value - step))).value
        numeric = (above - below) / (step + min(step, value))
        assert getattr(slopes, slope) == pytest.approx(numeric, rel=1e-3, abs=1e-9), name


@settings(max_examples=50, deadline=None)
@given(rates(), st.data())
def test_bounds_hold_whatever_the_inputs_are_within_theirs(given_rates: Rates, data: st.DataObject) -> None:
    wide, inside = {}, {}
    for field in fields(Rates):
        value = getattr(given_rates, field.name).value
        wide[field.name] = Interval(
            value, value * data.draw(st.floats(0.5, 1)), value * data.draw(st.floats(1, 2))
        )
        share = data.draw(st.floats(0, 1))
        low, high = wide[field.name].low, wide[field.name].high
        inside[field.name] = min(high, low + share * (high - low))
    bounds = expected(Rates.of(**wide))
    assert bounds.value == pytest.approx(expected(given_rates).value)
    assert bounds.low - 1e-9 <= expected(Rates.of(**inside)).value <= bounds.high + 1e-6


@given(rates())
def test_no_interval_beats_the_best_one(given_rates: Rates) -> None:
    best = expected(with_value(given_rates, "checkpoint_interval_s", best_interval(given_rates))).value
    assert best >= expected(given_rates).value - 1e-12
    for factor in (0.8, 1.25):
        other = with_value(given_rates, "checkpoint_interval_s", factor * best_interval(given_rates))
        assert best >= expected(other).value


@given(rates())
def test_approximations_are_above_what_they_leave_out(given_rates: Rates) -> None:
    assert 0 <= approximation_b(given_rates) <= approximation_a(given_rates) <= 1
    assert expected(given_rates).value <= approximation_b(given_rates) + 1e-9


def test_more_failures_than_time_gives_nothing() -> None:
    hopeless = Rates.of(failures_per_day=200, restart_s=600, checkpoint_interval_s=600)
    assert expected(hopeless).value == approximation_a(hopeless) == 0
    assert sensitivities(hopeless).per_restart_s == 0


@pytest.mark.parametrize("name", ["restart_s", "queue_s", "checkpoint_interval_s"])
def test_a_negative_or_empty_input_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Rates.of(**{"failures_per_day": 1, "restart_s": 1, "checkpoint_interval_s": 1, name: -1})


def test_advice_is_the_best_lever_in_words() -> None:
    """13 failures a day on 16,384 GPUs, hourly checkpoints: half an hour of work lost each time."""
    given_rates = Rates.of(
        failures_per_day=13, restart_s=300, checkpoint_interval_s=3600, checkpoint_write_s=10
    )
    found = levers(given_rates, gpus=16384)
    assert [lever.gpu_hours_per_day for lever in found] == sorted(
        (lever.gpu_hours_per_day for lever in found), reverse=True
    )
    first = found[0]
    assert first.name == "checkpoint_interval_s"
    assert first.gpu_hours_per_day == pytest.approx((first.ettr_then - first.ettr_now) * 16384 * 24)
    sentence = advice(given_rates, gpus=16384)
    assert sentence.startswith(
        "Start with saving checkpoints more often (60 min → 5.77 min): it would give back "
    )
    assert re.search(rf"{first.gpu_hours_per_day:,.0f} GPU-hours a day", sentence)


def test_advice_where_nothing_pays() -> None:
    quiet = Rates.of(failures_per_day=0.01, restart_s=30, checkpoint_interval_s=1000, checkpoint_write_s=0.05)
    assert advice(quiet, gpus=8).startswith("Nothing to change first: 99.99% of the time trains")


def test_advice_where_no_single_change_is_enough() -> None:
    hopeless = Rates.of(failures_per_day=400, restart_s=900, checkpoint_interval_s=600, checkpoint_write_s=10)
    assert advice(hopeless, gpus=8).startswith("No single improvement is enough")


@pytest.mark.parametrize("write_s", [10.0, 60.0])
def test_simulated_optimum_is_dalys_where_failures_are_exponential(write_s: float) -> None:
    mean_s = 11134.8
    found = simulated_optimum(400, 400 * mean_s, write_s, seed=3)
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(daly(write_s, mean_s), rel=0.1)


def test_few_failures_leave_a_wide_interval() -> None:
    few, many = (simulated_optimum(n, n * 9000.0, 30, seed=1) for n in (2, 200))
    assert few.high / few.low > 2 * many.high / many.low
    assert simulated_optimum(2, 18000.0, 30, seed=1) == few


def test_own_gaps_tell_another_optimum_than_their_mean_does() -> None:
    """Failures each 1,000 s to the second: the best cycle fits a whole number of times."""
    gaps = [1000.0] * 40
    found = simulated_optimum(40, 40_000.0, 20, gaps_s=gaps, seed=2)
    assert found.value + 20 == pytest.approx(1000 / round(1000 / (found.value + 20)), rel=0.08)


def test_observed_rates_carry_the_doubt_of_what_was_seen() -> None:
    seen = observed_rates(
        failures=3,
        wall_s=30 * 3600,
        restart_s=[300, 310, 290],
        checkpoint_gap_s=[600.0] * 5,
        checkpoint_write_s=[10, 12],
    )
    assert seen.failures_per_day.value == pytest.approx(2.4)
    assert seen.failures_per_day.low == pytest.approx(24 / 48.491, rel=1e-4)  # METRICS §3, n = 3, T = 30 h
    assert seen.restart_s.value == 300 and seen.restart_s.low == pytest.approx(300 - 24.84, abs=0.01)
    assert seen.checkpoint_interval_s.is_exact and seen.queue_s.value == 0
    bounds = expected(seen)
    assert bounds.low < bounds.value < bounds.high


def test_what_was_never_observed_is_named() -> None:
    with pytest.raises(ValueError, match="restart_s has no observation"):
        observed_rates(failures=0, wall_s=60, restart_s=[], checkpoint_gap_s=[1], checkpoint_write_s=[])


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_an_interval_lies_around_its_mean(seed: int, number: int) -> None:
    values = np.random.default_rng(seed).gamma(2, 100, number)
    found = mean_interval(values.tolist())
    assert 0 <= found.low <= found.value <= found.high
