"""METRICS §3: every value with its source. P = arXiv 2410.21680, S = notes on it, D = derived."""

import math

import pytest

from rankscope.analytics import checkpoint_interval as interval
from rankscope.analytics.expected import (
    Rates,
    approximation_a,
    approximation_b,
    best_interval_b,
    expected,
    failures_per_day,
)
from rankscope.analytics.reliability import expected_mttf_h, mttf
from rankscope.analytics.taxonomy import published

RSC1 = 6.50e-3  # failures per node-day (P)


def minutes(nodes: float, rate: float, interval_min: float, restart_min: float, **more: float) -> Rates:
    return Rates.of(
        failures_per_day=failures_per_day(nodes, rate),
        restart_s=60 * restart_min,
        checkpoint_interval_s=60 * interval_min,
        **more,
    )


@pytest.mark.parametrize(
    ("nodes", "hours", "printed"),
    [(2048, 1.803, 1.8), (16384, 0.2254, 0.23)],  # P: 16,384 and 131,072 GPUs of RSC-1
)
def test_mttf_by_nodes(nodes: int, hours: float, printed: float) -> None:
    assert expected_mttf_h(nodes, RSC1) == pytest.approx(hours, rel=5e-4)
    assert expected_mttf_h(nodes, RSC1) == pytest.approx(printed, rel=0.03)


@pytest.mark.parametrize(
    ("nodes", "rate", "interval_min", "restart_min", "ratio"),
    [
        (2000, RSC1, 60, 5, 0.6840),  # P prints 0.7
        (2000, RSC1, 5, 5, 0.9323),  # P prints 0.93
        (12500, RSC1, 7, 5, 0.5204),  # P prints 0.5
        (12500, 2.34e-3, 2, 2, 0.9391),  # P prints >= 0.9
    ],
)
def test_a(nodes: int, rate: float, interval_min: float, restart_min: float, ratio: float) -> None:
    assert approximation_a(minutes(nodes, rate, interval_min, restart_min)) == pytest.approx(ratio, abs=5e-5)


def test_b_and_its_best_interval() -> None:  # S: 12,000 GPUs, 10 s write, 5 min restart
    best_min = best_interval_b(minutes(1500, RSC1, 1, 5, checkpoint_write_s=10)) / 60
    assert best_min == pytest.approx(7.016, abs=5e-4)
    assert approximation_b(minutes(1500, RSC1, best_min, 5, checkpoint_write_s=10)) == pytest.approx(
        0.9205, abs=5e-5
    )


@pytest.mark.parametrize(("queue_min", "ratio"), [(0, 0.9204), (10, 0.8619)])  # D: R = 30 days
def test_c(queue_min: float, ratio: float) -> None:
    rates = minutes(1500, RSC1, 7.016464, 5, checkpoint_write_s=10, queue_s=60 * queue_min)
    assert expected(rates).value == pytest.approx(ratio, abs=5e-5)


@pytest.mark.parametrize(
    ("write", "mttf_s", "young", "daly1", "daly"),
    [
        (60, 11134.8, 1155.93, 1095.93, 1116.28),
        (10, 11134.8, 471.91, 461.91, 465.26),
        (60, 6490.8, 882.55, 822.55, 843.00),
        (10, 810, 127.28, 117.28, 120.70),
    ],
)
def test_checkpoint_intervals(write: float, mttf_s: float, young: float, daly1: float, daly: float) -> None:
    assert interval.young(write, mttf_s) == pytest.approx(young, abs=0.005)
    assert interval.daly1(write, mttf_s) == pytest.approx(daly1, abs=0.005)
    assert interval.daly(write, mttf_s) == pytest.approx(daly, abs=0.005)


@pytest.mark.parametrize(
    ("failures", "hours", "value", "low", "high"),
    [
        (0, 100, None, 27.108, math.inf),
        (1, 100, 100, 17.948, 3949.79),
        (3, 30, 10, 3.4218, 48.491),
        (10, 100, 10, 5.4376, 20.853),
        (419, 1296, 3.0931, 2.8106, 3.4120),  # Llama 3: 54 days
    ],
)
def test_mttf_interval(failures: int, hours: float, value: float | None, low: float, high: float) -> None:
    found = mttf(failures, hours)
    assert found.value == (None if value is None else pytest.approx(value, rel=2e-5))
    assert (found.low, found.high) == (pytest.approx(low, rel=2e-5), pytest.approx(high, rel=2e-5))


def test_llama_3_table_adds_up() -> None:  # arXiv 2407.21783, table 5
    table = published()
    assert table.interruptions == table.planned + table.unexpected == 466
    assert [cause.count for cause in table.causes] == [
        148, 72, 54, 35, 32, 19, 17, 7, 7, 6, 6, 3, 3, 2, 2, 2, 2, 2,
    ]  # fmt: skip
    assert sum(cause.count for cause in table.causes) == table.unexpected == 419
    assert sum(cause.share for cause in table.causes) == pytest.approx(1)
    assert table.causes[0].share == pytest.approx(148 / 419)
