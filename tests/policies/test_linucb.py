"""LinUCB against its definition, its inverse against a fresh one, and its regret."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rank1
from rank1.compiled import kernel
from rank1.policies.two_hot import bound_sums, pick
from rank1.simulation.loop import NEVER, play, room_for_curve
from rank1.testing import play_plain
from tests.support import few, literal_of, others_uncompiled, play_policy, start

Floats = NDArray[np.float64]

THREE_VALUES = rank1.Categorical(
    [0.0, 0.5, 1.0], np.random.default_rng(5).dirichlet([1, 1, 1], size=(3, 5))
)
UNEVEN = rank1.Gaussian([0.9, 0.35, 0.5], [0.2, 0.85, 0.6, 0.4], sigma=0.5)
PROBLEMS = [
    rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
    rank1.Bernoulli([0.9, 0.9, 0.1], [0.8, 0.2, 0.8, 0.1]),  # ties for the best pair
    rank1.Bernoulli([0.7], [0.9, 0.2]),  # one row
    rank1.Bernoulli([0.9, 0.1, 0.4], [1.0]),  # one column
    rank1.Bernoulli([0.0, 0.0], [0.0, 0.0, 0.0]),  # nothing ever happens: ties all the way
    rank1.Bernoulli([1.0, 0.0], [1.0, 1.0]),  # means of exactly 0 and 1
    rank1.Bernoulli(np.linspace(0.2, 0.9, 13), np.linspace(1, 0.5, 11)),  # blocks of A
    THREE_VALUES,
    UNEVEN,
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"confidence_scale": 1 / 3},
    {"radius": "determinant", "noise": 1.0},
    {"reward": "log"},
    {"ridge": 0.1, "confidence_scale": 0.05},
]


def name(problem: rank1.Problem) -> str:
    return f"{problem.description['name']}{problem.K}x{problem.L}"


@pytest.mark.parametrize("n", few([800, 2000], 1))
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("problem", others_uncompiled(PROBLEMS), ids=name)
def test_makes_the_choices_of_the_definition(
    problem: rank1.Problem, settings: dict[str, Any], n: int
) -> None:
    policy = rank1.LinUCB(**settings)
    expected, rewards = play_plain(literal_of(policy, problem, n), problem, n, seed=1)
    pairs, got, _ = play_policy(policy, problem, n, seed=1)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)


@pytest.mark.parametrize("problem", others_uncompiled([PROBLEMS[0], UNEVEN]), ids=name)
def test_every_choice_has_the_largest_index(problem: rank1.Problem) -> None:
    """Fed with the same history, whatever became of ties; and over many batches."""
    n = 10_000
    pairs, rewards, _ = play_policy(rank1.LinUCB(), problem, n, seed=2)
    literal = literal_of(rank1.LinUCB(), problem, n)
    for arm, reward in zip(pairs.tolist(), rewards.tolist(), strict=True):
        means, bonuses = literal.means_and_bonuses()
        indices = means + bonuses
        assert indices.flat[arm] >= indices.max() * (1 - 1e-9)
        literal.update(arm, 0, reward)


def inverse_of(state: Any, ridge: float) -> Floats:
    """V⁻¹ as the state holds it."""
    K, d = len(state.value), len(state.A)
    e = np.repeat([1.0, -1.0], [K, d - K]) / math.sqrt(d)
    lower = np.tril(state.A)
    A = lower + np.tril(lower, -1).T - state.pending.T @ state.pending
    return np.asarray(A + np.outer(e, e) / ridge)


@pytest.mark.parametrize("scale", [1, 1 / 3, 0.03, 0.01])
@pytest.mark.validate
def test_after_two_million_reports_nothing_has_drifted(scale: float) -> None:
    """At 0.01 one pair is played all the time, and the inverse is worst conditioned."""
    K, n = 16, 2_000_000
    problem = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)
    state = start(rank1.LinUCB(confidence_scale=scale), problem, n)
    law, every, curve = problem.law, np.arange(1, n + 1), room_for_curve(n)
    loop, rng = kernel(play, state, law, NEVER), np.random.default_rng(1)
    counts, sums = np.zeros((K, K)), np.zeros((K, K))
    t = 0
    for stop in [*range(100, 2000, 100), *range(12_345, n, 12_345), n]:
        loop(state, law, rng, NEVER, K * K, t, stop, every, curve, np.zeros(2))
        arms = curve[t:stop, 2].astype(np.int64)
        np.add.at(counts.reshape(-1), arms, 1)
        np.add.at(sums.reshape(-1), arms, curve[t:stop, 3])
        t = stop
        V = np.diag(1 + np.concatenate([counts.sum(axis=1), counts.sum(axis=0)]))
        V[:K, K:], V[K:, :K] = counts, counts.T
        fresh = np.linalg.inv(V)
        assert np.linalg.norm(inverse_of(state, 1) - fresh) <= 1e-8 * np.linalg.norm(fresh)
        theta = np.linalg.solve(V, np.concatenate([sums.sum(axis=1), sums.sum(axis=0)]))
        np.testing.assert_allclose(state.estimate, theta, rtol=0, atol=1e-9)
        w = np.sqrt(fresh.diagonal()[:K, None] + fresh.diagonal()[K:] + 2 * fresh[:K, K:])
        assert np.all(w * (1 - 1e-6) <= state.bound.T)
        c = scale * (0.5 * math.sqrt(2 * K * math.log((1 + 2 * n) * n)) + math.sqrt(2 * K))
        indices = theta[:K, None] + theta[K:] + c * w
        arm, _ = state.choose(rng)
        assert indices.flat[arm] >= indices.max() * (1 - 1e-9)


@pytest.mark.parametrize(
    ("settings", "mean", "se"),
    [
        ({}, 64926, 113),
        ({"confidence_scale": 1 / 3}, 8056, 39),
        ({"radius": "determinant"}, 31974, 92),
    ],
    ids=str,
)
@pytest.mark.validate
def test_regret_is_that_of_an_independent_implementation(
    settings: dict[str, Any], mean: float, se: float
) -> None:
    """Reference figures of 20 runs; 4 of ours, whose standard error is then √5 times as large."""
    problem = rank1.spike(16, 16, 0.7, 0.7, 0.2, 0.2)
    result = rank1.simulate(rank1.LinUCB(**settings), problem, 2_000_000, 4, seed=1, jobs=2)
    regret = result.outcomes[0].expected[:, -1].mean()
    assert abs(regret - mean) <= 4 * se * math.sqrt(1 + 5)


def test_radius() -> None:
    K, L, n = 3, 5, 1000
    known = rank1.Known(K, L, n)

    def radius(**settings: Any) -> float:
        s = rank1.LinUCB(**settings).start(known).settings[0]
        return float(s.scale * (s.noise * math.sqrt(s.square) + s.bias))

    horizon = 0.5 * math.sqrt(8 * math.log((1 + 2 * n / 4) * n)) + 2 * math.sqrt(8)
    assert radius(ridge=4) == pytest.approx(horizon, rel=1e-14)
    assert radius(ridge=4, confidence_scale=0.1) == pytest.approx(0.1 * horizon)
    assert radius(ridge=4, reward="log", epsilon=0.1) == pytest.approx(math.log(10) * horizon)
    determinant = 0.7 * math.sqrt(2 * math.log(n)) + math.sqrt(8)
    assert radius(noise=0.7, radius="determinant") == pytest.approx(determinant, rel=1e-14)


def test_bounds_that_cancel_stay_inside_the_row() -> None:
    """The largest bound is (0.1 + 0.2) - 0.3 = 6e-17, but 0.1 + (0.2 - 0.3) is only 3e-17."""
    state = rank1.LinUCB().start(rank1.Known(1, 1, 100))
    state.A[:], state.bound[0], state.value[:], state.offset[0] = np.eye(2) / 200, 0.1, -0.3, 0.2
    bound_sums(state.bound, state.value, state.offset, state.top)
    pick(
        state.at, state.A, state.pending, state.bound,
        state.value, state.slope, state.offset, state.top,
    )  # fmt: skip
    assert (state.at[0].row, state.at[0].column) == (0, 0)


def test_the_logarithm_is_cut_at_epsilon() -> None:
    """Rewards of 0 and below count as epsilon. θ is y/(2 + λ) at both ones of the only x."""
    rng = np.random.default_rng(1)
    for reward, y in ((0.0, math.log(0.05)), (-3.0, math.log(0.05)), (0.5, math.log(0.5))):
        state = rank1.LinUCB(reward="log", epsilon=0.05).start(rank1.Known(2, 2, 100, low=-3.0))
        rank1.tell(state, rank1.ask(state, rng), reward)
        assert state.estimate.tolist() == pytest.approx([y / 3, 0, y / 3, 0])


def test_late_rewards_count_when_they_come() -> None:
    """Until then the same pair is asked for; their order doesn't matter."""
    rng = np.random.default_rng(1)
    known = rank1.Known(4, 3, 1000)
    first, second = rank1.LinUCB().start(known), rank1.LinUCB().start(known)
    for _ in range(50):
        pulls = [rank1.ask(first, rng) for _ in range(3)]
        assert pulls[0] == pulls[1] == pulls[2] == rank1.ask(second, rng)
        rewards = rng.random(2)
        for k in (0, 1):
            rank1.tell(first, pulls[k], rewards[k])
            rank1.tell(second, pulls[k], rewards[1 - k])
        first = first.forget(*pulls[2])
    np.testing.assert_allclose(first.estimate, second.estimate, rtol=1e-12)


def test_recommends_only_what_was_seen() -> None:
    """All logarithms are below 0, where the ridge holds lines without reports."""
    state = rank1.LinUCB(reward="log").start(rank1.Known(3, 3, 100))
    assert state.best() == 0
    rank1.tell(state, rank1.Pull(7, 0), 0.0)
    rank1.tell(state, rank1.Pull(4, 0), 1.0)
    assert state.best() == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"confidence_scale": 0}, "confidence_scale must be a number above 0 .*got 0"),
        ({"radius": "det"}, "radius must be one of horizon, determinant, got 'det'"),
        ({"noise": -1}, "noise must be a number of at least 0 .*got -1"),
        ({"ridge": 0}, "ridge must be a number of at least 1e-09 .*got 0"),
        ({"reward": "raw"}, "reward must be one of product, log, got 'raw'"),
        ({"epsilon": 1}, "epsilon must be a number above 0 and below 1, got 1"),
        ({"epsilon": 0}, "epsilon must be a number above 0 and below 1, got 0"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rank1.LinUCB(**settings)
