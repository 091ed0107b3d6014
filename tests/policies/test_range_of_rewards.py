"""Rewards in other units: UCB1 widens its intervals as Rank1Elim does."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1
from rank1.policies import ask, tell
from rank1.policies.base import Known

RNG = np.random.default_rng(7)
MEANS = RNG.uniform(0.2, 0.8, size=(4, 5))


def choices(policy: rank1.Policy, low: float, high: float, n: int = 3_000) -> list[int]:
    """Played with the same quarters, worth low + quarter·(high − low)."""
    rng = np.random.default_rng(1)
    state = policy.start(Known(K=4, L=5, n=n, low=low, high=high))
    arms: list[int] = []
    for _ in range(n):
        pull = ask(state, rng)
        quarter = np.random.default_rng(len(arms)).binomial(4, MEANS.flat[pull.arm]) / 4
        tell(state, pull, low + quarter * (high - low))
        arms.append(pull.arm)
    return arms


@pytest.mark.parametrize(("low", "high"), [(1.0, 5.0), (-3.0, 13.0)])
def test_ucb1_chooses_the_same_whatever_a_star_is_worth(low: float, high: float) -> None:
    unit = choices(rank1.UCB1(), 0.0, 1.0)
    assert choices(rank1.UCB1(), low, high) == unit
    # Unwidened it would have played as with a smaller constant, and another game.
    narrow = rank1.UCB1(confidence=2 / (high - low) ** 2)
    assert choices(narrow, low, high) != unit


def test_ucb1_narrows_nothing() -> None:
    """Rewards in [0.2, 1] are rewards in [0, 1], as for Rank1Elim; so are those without bounds."""
    rng = np.random.default_rng(0)
    limits = (0.0, 1.0), (0.2, 1.0), (-math.inf, math.inf)
    states = [rank1.UCB1().start(Known(K=3, L=2, n=500, low=a, high=b)) for a, b in limits]
    for _ in range(500):
        pulls = {ask(state, rng) for state in states}
        assert len(pulls) == 1
        (pull,) = pulls
        for state in states:
            tell(state, pull, MEANS.flat[pull.arm])


@pytest.mark.validate
def test_on_stars_regret_is_four_times_that_of_the_unit_scale() -> None:
    n, runs = 100_000, 40
    p = RNG.dirichlet([1, 1, 1, 1, 1], size=(3, 3))
    unit, stars = (rank1.Categorical(v, p) for v in (np.arange(5) / 4, np.arange(1.0, 6.0)))
    regrets = []
    for problem in (unit, stars):
        result = rank1.simulate(rank1.UCB1(), problem, n, runs, seed=1)
        final = result.outcomes[0].expected[:, -1]
        regrets.append((final.mean(), final.std(ddof=1) / math.sqrt(runs)))
    (one, error), (four, other) = regrets
    assert abs(four - 4 * one) < 4 * math.hypot(4 * error, other)
    assert 4 * math.hypot(4 * error, other) < 0.1 * four  # the test can tell 4 from 3
