"""KL intervals against the definition."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from rank1.divergences import kl_level, kl_upper
from rank1.theory import kl_bernoulli


def test_upper_end_of_the_interval() -> None:
    rng = np.random.default_rng(2)
    for _ in range(3000):
        mean = rng.random() ** rng.choice([0.1, 1, 5])
        divergence = 10 ** rng.uniform(-8, 2)
        q = kl_upper(mean, divergence)
        assert mean < q <= 1
        # The solution is within a few rounding errors of q.
        step = 1e-14 * q
        assert kl_bernoulli(mean, max(q - step, mean)) <= divergence
        assert q + step >= 1 or kl_bernoulli(mean, q + step) >= divergence


def exact_upper(mean: float, budget: float) -> Decimal:
    """Return the solution to 30 digits, by bisection."""
    with localcontext(prec=45):
        p, low, high = Decimal(mean), Decimal(mean), Decimal(1)
        for _ in range(100):
            q = (low + high) / 2
            kl = p * (p / q).ln() if p > 0 else Decimal(0)
            kl += (1 - p) * ((1 - p) / (1 - q)).ln()
            low, high = (q, high) if kl <= Decimal(budget) else (low, q)
        return low


def test_upper_end_is_right_to_the_last_digits() -> None:
    rng = np.random.default_rng(1)
    for _ in range(150):
        T = int(10 ** rng.uniform(0, 9))
        small = 10 ** rng.uniform(-9, 0)
        mean = float(rng.choice([rng.random(), small, 1 - small, int(0.7 * T) / T]))
        budget = rng.uniform(0.1, 60) / T
        error = Decimal(float(kl_upper(mean, budget))) - exact_upper(mean, budget)
        assert abs(error) < 5e-16, (mean, budget)


def test_ends_of_the_range() -> None:
    assert kl_upper(1.0, 0.5) == 1
    assert kl_upper(0.3, 0.0) == 0.3
    assert kl_upper(0.3, -1.0) == 0.3
    assert kl_upper(0.0, 0.25) == pytest.approx(1 - np.exp(-0.25), rel=1e-15)
    assert kl_upper(0.5, 1e4) == 1
    assert kl_upper(5e-324, 0.5) == kl_upper(0.0, 0.5)


def test_level_of_few_steps_is_zero() -> None:
    assert kl_level(0, 3.0) == kl_level(1, 3.0) == kl_level(2, 3.0) == 0
    assert kl_level(2, 0.0) == np.log(2)
    assert kl_level(100, 3.0) == np.log(100) + 3 * np.log(np.log(100))
