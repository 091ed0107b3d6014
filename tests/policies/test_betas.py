"""The largest of many Beta samples: who wins, and with what sample, against integrals."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

import rank1
from rank1.compiled import kernel
from rank1.policies import betas
from tests.support import few, play_policy

Arms = tuple[tuple[int, int], ...]

STATES: dict[str, Arms] = {
    "never seen": ((0, 0),) * 30,
    "equal": ((30, 10),) * 30,
    "few observations": tuple((s, f) for s in range(4) for f in range(4)),
    "one far ahead": ((100_000, 20_000), (7, 1), (0, 0)) + ((40, 20),) * 40,
    "two close ahead": ((80_100, 19_900), (80_000, 20_000)) + ((9, 5),) * 7,
    "only failures": ((0, 5),) + ((0, 200),) * 12,
    "only successes": ((5, 0),) + ((200, 0),) * 12,
    "only one or the other": ((0, 500), (500, 0), (0, 3), (3, 0), (0, 0), (400, 1)) * 3,
    "one arm": ((3, 4),),
}


def state_with(arms: Arms) -> Any:
    """A state with these posteriors, counted one observation at a time."""
    state = rank1.ThompsonSampling().start(rank1.Known(1, len(arms), 10))
    kernel(fill, state)(state, np.array(arms))
    return state


def fill(state: Any, arms: NDArray[np.int64]) -> None:
    for k in range(len(arms)):
        for _ in range(arms[k, 0]):
            betas.count(state, k, True)
        for _ in range(arms[k, 1]):
            betas.count(state, k, False)


def sample(state: Any, x: float, rng: Any, winners: Any, samples: Any) -> None:
    """Winners and their samples, always from the level x."""
    level = state.level[0]
    level.left = 2**62
    level.x = 2.0
    for k in range(len(winners)):
        if level.x != x:
            betas.set_level(state, x)
        level.lowest = 1.0
        winners[k] = betas.largest(state, rng)
        samples[k] = level.lowest


def log_cdf(s: int, f: int, y: Any) -> Any:
    return np.log(np.maximum(special.betainc(1 + s, 1 + f, y), 1e-300))


def log_cdf_of_largest(arms: Arms, y: Any) -> Any:
    return sum(log_cdf(s, f, y) for s, f in arms)


@functools.cache
def chances(arms: Arms) -> NDArray[np.float64]:
    """P(arm k wins) = ∫ f_k Π_{j ≠ k} F_j, on a grid as fine as the sharpest posterior."""
    grid = np.unique(
        np.concatenate(
            [special.betaincinv(1 + s, 1 + f, np.linspace(0, 1, 4001)) for s, f in set(arms)]
        )
    )
    middle = (grid[1:] + grid[:-1]) / 2
    others = log_cdf_of_largest(arms, middle)
    won = np.array(
        [
            np.sum(
                np.diff(special.betainc(1 + s, 1 + f, grid))
                * np.exp(others - log_cdf(s, f, middle))
            )
            for s, f in arms
        ]
    )
    assert won.sum() == pytest.approx(1, abs=1e-4)
    return won / won.sum()


def assert_frequencies(winners: NDArray[np.int64], expected: NDArray[np.float64]) -> None:
    """Chi-square over the arms that should win at least ten times, the others in one bin."""
    counts = np.bincount(winners, minlength=len(expected)).astype(float)
    often = expected * len(winners) >= 10
    observed = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum()) * len(winners)
    if wanted[-1] < 10:  # too few for a bin of their own
        assert observed[-1] <= wanted[-1] + 6 * np.sqrt(wanted[-1]) + 6
        observed, wanted = observed[:-1], wanted[:-1] * observed[:-1].sum() / wanted[:-1].sum()
    if len(wanted) > 1:
        assert stats.chisquare(observed, wanted).pvalue > 1e-4


@pytest.mark.parametrize("quantile", few([0.5, 1e-4, 0.1, 0.99, None], 1))
@pytest.mark.parametrize("name", few(STATES, 2))
def test_the_winner_has_its_exact_law_at_any_level(name: str, quantile: float | None) -> None:
    arms = STATES[name]
    state, rng = state_with(arms), np.random.default_rng(1)
    x = 1.0
    if quantile is not None:
        low, high = 0.0, 1.0
        for _ in range(60):
            x = (low + high) / 2
            below = log_cdf_of_largest(arms, x) < np.log(quantile)
            low, high = (x, high) if below else (low, x)
    winners, samples = np.zeros(100_000, np.int64), np.zeros(100_000)
    kernel(sample, state)(state, x, rng, winners, samples)
    assert_frequencies(winners, chances(arms))
    law = stats.kstest(samples, lambda y: np.exp(log_cdf_of_largest(arms, y)))
    assert law.pvalue > 1e-4


@kernel
def rates(s: Any, f: Any, log_beta: Any, x: Any, out: Any) -> None:
    for k in range(len(s)):
        out[k] = betas.rate(s[k], f[k], log_beta[k], x[k], np.log(x[k]), np.log1p(-x[k]))


def test_a_rate_bounds_the_tail_and_is_close_to_it_far_out() -> None:
    rng = np.random.default_rng(2)
    s, f = (np.floor(10 ** rng.uniform(0, 5, 50_000)) - 1 for _ in range(2))
    out = np.zeros(len(s))
    tail = 10 ** rng.uniform(-30, 0, len(s))
    x = special.betainccinv(1 + s, 1 + f, tail)
    keep = (x > 0) & (x < 1)
    s, f, x, out = s[keep].astype(np.int64), f[keep].astype(np.int64), x[keep], out[keep]
    tail = special.betaincc(1 + s, 1 + f, x)
    rates(s, f, special.betaln(1 + s, 1 + f), x, out)
    p = -np.expm1(-out)
    assert np.all(p >= tail * (1 - 1e-8))
    assert np.all(out[tail > 0.5] == np.inf)
    far = tail < 1e-6
    assert np.all(p[far] < 1.5 * tail[far])


def test_log_beta_does_not_drift() -> None:
    state = state_with(((1_500_000, 500_000), (3, 100), (0, 0)))
    exact = special.betaln(1 + state.successes, 1 + state.failures)
    np.testing.assert_allclose(state.log_beta, exact, rtol=0, atol=1e-6)
    assert abs(state.log_beta[1] - exact[1]) < 1e-12


def test_an_arm_far_above_the_level_is_simply_drawn() -> None:
    """Also in plain Python, where an exponential that is too large is an error."""
    s, f, x = 900, 5, 0.01
    rate = betas.rate(s, f, special.betaln(1 + s, 1 + f), x, np.log(x), np.log1p(-x))
    assert rate == np.inf


def set_level(state: Any, x: float) -> None:
    betas.set_level(state, x)


@pytest.mark.parametrize("policy", [rank1.ThompsonSampling(), rank1.UTS()], ids=str)
@pytest.mark.validate
def test_rates_are_kept_up_to_date(policy: rank1.Policy) -> None:
    """At the end of runs of any length they are those of the posteriors at that time."""
    problem = rank1.spike(5, 7, 0.4, 0.6, 0.3, 0.2)
    tried = 0
    for n in range(40, 2000, 31):
        _, _, state = play_policy(policy, problem, n, seed=n)
        fresh = type(state)(*(array.copy() for array in state))
        x = float(state.level[0].x)
        if x < 1:  # else every arm is drawn and rates are not looked at
            kernel(set_level, fresh)(fresh, x)
            np.testing.assert_array_equal(state.rates, fresh.rates)
            np.testing.assert_array_equal(state.block_rates, fresh.block_rates)
            tried += 1
    assert tried > 30
