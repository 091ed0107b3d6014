"""Standardised Thompson sampling: its exposures, its regret, and what it relies on."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1
from rank1.literal.factor_ts import LiteralFactorTS
from rank1.policies import Known
from tests.policies.test_thompson import assert_same_regret


def test_exposures_are_the_literal_ones_between_fits() -> None:
    """After any reports: incremental sums are those over all arms, by the same factors."""
    known = Known(sides=(3, 2, 4), n=1000)
    state, literal = rank1.FactorTS().start(known), LiteralFactorTS(known)
    rng = np.random.default_rng(1)
    for step in range(300):
        arm, reward = int(rng.integers(known.arms)), float(rng.random())
        state.update(arm, 0, reward)
        literal.update(arm, 0, reward)
        if step % 7 == 0:
            np.testing.assert_allclose(state.factors, np.concatenate(literal.factors), rtol=1e-9)
            exposure = np.concatenate([literal.exposure(side) for side in range(3)])
            np.testing.assert_allclose(state.exposure, exposure, rtol=1e-9)
    assert state.at[0].due == literal.due


def test_the_fit_finds_the_factors() -> None:
    """From expected counts, unevenly spread."""
    problem = rank1.Product([[0.9, 0.6, 0.3], [0.5, 0.8], [0.7, 0.2]])
    state = rank1.FactorTS().start(Known(sides=problem.grid, n=10**6))
    rng = np.random.default_rng(2)
    for _ in range(40):  # a fit goes on from the one before
        for arm in rng.permutation(problem.arms).tolist():
            count = int(rng.integers(1000, 100_000))
            state.load(arm, count, count * problem.mean(arm))
    expected = np.concatenate([side / side.max() for side in problem.factors])
    np.testing.assert_allclose(state.factors, expected, rtol=1e-3)
    assert state.best() == problem.best_arm
    # A level's posterior mean is its mean beside the best levels.
    beside = np.concatenate([side / side.max() * problem.best_mean for side in problem.factors])
    np.testing.assert_allclose(state.won / state.exposure, beside, rtol=2e-3)


@pytest.mark.validate
def test_one_side_is_thompson_sampling() -> None:
    assert_same_regret(rank1.FactorTS(), rank1.ThompsonSampling(), rank1.Product([[0.5, 0.6, 0.4]]))


#: Regret at 30,000 of an independent program, 60 runs.
REFERENCE = {
    "8×8": ([[0.7] + [0.5] * 7] * 2, 271),
    "16×16": ([[0.75] + [0.25] * 15] * 2, 316),
    "8×10": ([[i / 16 for i in range(1, 9)], [j / 20 for j in range(1, 11)]], 296),
    "5×5×5": ([[0.8] + [0.6] * 4] * 3, 262),
    "4⁴": ([[0.85] + [0.65] * 3] * 4, 283),
}


@pytest.mark.validate
@pytest.mark.parametrize(("factors", "reference"), REFERENCE.values(), ids=REFERENCE)
def test_reference_regrets(factors: list[list[float]], reference: float) -> None:
    """Within four standard errors of the difference of two means of 60 runs; below UTS's."""
    policies = [rank1.FactorTS(), rank1.UTS()]
    result = rank1.simulate(policies, rank1.Product(factors), 30_000, 60, seed=1, shuffle=True)
    ours, uts = (outcome.expected[:, -1] for outcome in result.outcomes)
    error = ours.std(ddof=1) / math.sqrt(60)
    assert abs(ours.mean() - reference) < 4 * math.sqrt(2) * error
    assert ours.mean() < uts.mean() + 2 * math.hypot(error, uts.std(ddof=1) / math.sqrt(60))


@pytest.mark.validate
def test_a_crossing_grid_costs_it_more_than_uts() -> None:
    """Where no level is best beside all others: 198 against 116 in 60 runs."""
    means = [[0.13 if (row + column) % 3 == 0 else 0.1 for column in range(3)] for row in range(6)]
    policies = [rank1.FactorTS(), rank1.UTS()]
    result = rank1.simulate(policies, rank1.Means(means), 30_000, 60, shuffle=True)
    ours, uts = (outcome.expected[:, -1] for outcome in result.outcomes)
    error = math.hypot(ours.std(ddof=1), uts.std(ddof=1)) / math.sqrt(60)
    assert ours.mean() > uts.mean() + 3 * error
