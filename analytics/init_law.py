"""How start-up time grows with ranks: a + b·N + c·N², with an interval and the order of growth in words.

    law = fit_law([1_024, 4_096, 16_384], [2.1, 6.0, 25.4])
    law.predict_s(98_304), law.interval_s(98_304), law.growth

Start-up times spread over orders of magnitude, so relative errors are made small, and no term may be
negative: each is a cost. A term that the data cannot tell from zero is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

Floats = npt.NDArray[np.float64]

_ORDERS: Final = ("O(1)", "O(N)", "O(N²)")
_SAME: Final = 0.02  # a law with fewer terms is taken when its relative error is this close to the best


@dataclass(frozen=True)
class Law:
    """seconds(N) = a_s + b_s·N + c_s·N².

    `relative_error` is the root mean square over the points; `growth` names the term that is largest at the
    largest size measured; `sizes` are the ranks that it was fitted to.
    """

    a_s: float
    b_s: float
    c_s: float
    sizes: tuple[int, ...]
    relative_error: float
    terms: tuple[int, ...]
    _covariance: Floats | None

    @property
    def growth(self) -> str:
        largest = max(self.sizes)
        return _ORDERS[int(np.argmax([self.a_s, self.b_s * largest, self.c_s * largest**2]))]

    def exponent(self, ranks: float) -> float:
        """k in t ~ N^k around `ranks`: 0 constant, 1 linear, 2 quadratic."""
        return (self.b_s * ranks + 2 * self.c_s * ranks**2) / self.predict_s(ranks)

    def predict_s(self, ranks: float) -> float:
        """Seconds at `ranks`."""
        return self.a_s + self.b_s * ranks + self.c_s * ranks**2

    def interval_s(self, ranks: float, level: float = 0.95) -> tuple[float, float] | None:
        """Seconds between which the law lies at `ranks`; None when there are no more points than terms."""
        if self._covariance is None:
            return None
        freedom = len(self.sizes) - len(self.terms)
        row = np.array([ranks**power for power in self.terms], dtype=float)
        half = float(stats.t.ppf(0.5 + level / 2, freedom) * np.sqrt(row @ self._covariance @ row))
        middle = self.predict_s(ranks)
        return max(0.0, middle - half), middle + half


def fit_law(ranks: Sequence[int], seconds: Sequence[float]) -> Law:
    """Fit the law to (ranks, seconds), least relative squares without negative terms.

    Raises:
        ValueError: fewer than two different sizes, or a time that is not above zero.
    """
    n = np.asarray(ranks, dtype=float)
    t = np.asarray(seconds, dtype=float)
    if n.shape != t.shape or len(np.unique(n)) < 2:
        raise ValueError("a law needs times at two different numbers of ranks at least")
    if not np.all(t > 0) or not np.all(n > 0):
        raise ValueError("ranks and seconds must be above zero")
    most = min(3, len(np.unique(n)))
    candidates = [_fit(n, t, terms) for size in range(1, most + 1) for terms in combinations(range(3), size)]
    best = min(law.relative_error for law in candidates)
    # Few terms first, then small errors: combinations() yields them in that order.
    near = [law for law in candidates if law.relative_error <= best + _SAME]
    fewest = min(len(law.terms) for law in near)
    return min((law for law in near if len(law.terms) == fewest), key=lambda law: law.relative_error)


def _fit(n: Floats, t: Floats, terms: tuple[int, ...]) -> Law:
    scale = float(n.max())
    matrix = np.stack([(n / scale) ** power for power in terms], axis=1) / t[:, None]
    scaled, _ = optimize.nnls(matrix, np.ones(len(n)))
    kept = tuple(power for power, value in zip(terms, scaled, strict=True) if value > 0)
    coefficients = np.zeros(3)
    for power, value in zip(terms, scaled, strict=True):
        coefficients[power] = value / scale**power
    residual = matrix @ scaled - 1
    freedom = len(n) - len(kept)
    covariance: Floats | None = None
    if freedom > 0 and kept:
        used = np.stack([n**power for power in kept], axis=1) / t[:, None]
        variance = float(residual @ residual) / freedom
        covariance = np.asarray(variance * np.linalg.pinv(used.T @ used), dtype=np.float64)
    return Law(
        a_s=float(coefficients[0]),
        b_s=float(coefficients[1]),
        c_s=float(coefficients[2]),
        sizes=tuple(int(x) for x in n),
        relative_error=float(np.sqrt(np.mean(residual**2))),
        terms=kept or terms,
        _covariance=covariance,
    )
