"""The law of growth fitted to start-up times."""

import pytest

from rankscope.analytics.init_law import fit_law

SIZES = [256, 1_024, 4_096, 16_384, 65_536]


def test_linear_times_are_linear() -> None:
    law = fit_law(SIZES, [2.0 + 1e-3 * n for n in SIZES])
    assert law.growth == "O(N)"
    assert law.b_s == pytest.approx(1e-3, rel=0.02)
    assert law.c_s == 0
    assert law.predict_s(98_304) == pytest.approx(100.3, rel=0.01)
    assert law.exponent(1e6) == pytest.approx(1.0, abs=0.01)


def test_quadratic_times_are_quadratic() -> None:
    law = fit_law(SIZES, [0.9e-3 * n + 12e-9 * n * n for n in SIZES])
    assert law.growth == "O(N²)" or law.exponent(98_304) > 1.5
    assert law.predict_s(98_304) == pytest.approx(0.9e-3 * 98_304 + 12e-9 * 98_304**2, rel=0.05)


def test_constant_times_are_constant() -> None:
    law = fit_law(SIZES, [1.01, 0.99, 1.0, 1.0, 1.01])
    assert law.growth == "O(1)"
    assert law.terms == (0,)


def test_interval_holds_the_truth_of_noisy_times() -> None:
    noise = [1.03, 0.98, 1.01, 0.97, 1.02]
    law = fit_law(SIZES, [(1.0 + 1e-3 * n) * f for n, f in zip(SIZES, noise, strict=True)])
    low, high = law.interval_s(98_304) or (0.0, 0.0)
    assert low < 1.0 + 98.304 < high
    assert low < law.predict_s(98_304) < high


def test_as_many_terms_as_points_have_no_interval() -> None:
    assert fit_law([8_192, 32_768], [14.5, 55.71]).interval_s(98_304) is None


@pytest.mark.parametrize(
    ("ranks", "seconds"), [([8], [1.0]), ([8, 8], [1.0, 2.0]), ([8, 16], [1.0, 0.0]), ([8, 16], [1.0])]
)
def test_what_cannot_be_fitted_is_refused(ranks: list[int], seconds: list[float]) -> None:
    with pytest.raises(ValueError, match=r"law needs|above zero"):
        fit_law(ranks, seconds)
