"""UCB1 against the plain argmax, and its regret."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.policies import ask, tell
from rank1.policies.ucb1 import UCB1State
from rank1.testing import play_compiled, play_plain
from tests.support import alike, literal_of, play_policy, start

RNG = np.random.default_rng(5)
PROBLEMS: dict[str, rank1.Problem] = {
    "spike": rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
    "ties": rank1.Bernoulli([0.9, 0.9, 0.1], [0.8, 0.2, 0.8, 0.1]),
    "one pair": rank1.Bernoulli([0.5], [0.5]),
    "one row": rank1.Bernoulli([0.7], [0.9, 0.2, 0.5, 0.5, 0.7]),
    "one column": rank1.Bernoulli([0.9, 0.1, 0.4], [1.0]),
    "zeros": rank1.Bernoulli([0.0, 0.0], [0.0, 0.0]),
    "ones": rank1.Bernoulli([1.0, 0.0], [1.0, 1.0]),
    "exact sums": rank1.Categorical([0.0, 0.5, 1.0], RNG.dirichlet([1, 1, 1], size=(3, 5))),
    # The same values in another order have another sum in the last digit.
    "rounded sums": rank1.Categorical([0.1, 0.3, 0.7], np.full((7, 9, 3), 1 / 3)),
    "large": rank1.Categorical([-1e6 / 3, 1e6 / 7], np.full((5, 5, 2), 1 / 2)),
    "real sums": rank1.Categorical(RNG.normal(size=9), RNG.dirichlet([1] * 9, size=(3, 2))),
    "gaussian": rank1.Gaussian([0.9, 0.4, 0.9], [0.1, 0.8], sigma=2.0),
    "many": rank1.spike(40, 33, 0.7, 0.7, 0.2, 0.2),
}
PROBLEMS = {name: alike(problem) for name, problem in PROBLEMS.items()}


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(problem, id=name, marks=pytest.mark.validate if name == "gaussian" else ())
        for name, problem in PROBLEMS.items()
    ],
)
@pytest.mark.parametrize("confidence", [2.0, 1.5])
def test_makes_the_choices_of_the_plain_argmax(problem: rank1.Problem, confidence: float) -> None:
    n = 20_000 if problem.arms > 100 else 80_000
    policy = rank1.UCB1(confidence)
    expected, rewards = play_compiled(literal_of(policy, problem, n), problem, n, seed=1)
    pairs, got, _ = play_policy(policy, problem, n, seed=1)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)


def test_plain_argmax_is_the_same_in_plain_python() -> None:
    problem, n = PROBLEMS["spike"], 2_000
    literal = literal_of(rank1.UCB1(), problem, n)
    expected, _ = play_plain(literal, problem, n, seed=2)
    pairs, _, _ = play_policy(rank1.UCB1(), problem, n, seed=2)
    np.testing.assert_array_equal(pairs, expected)


def test_arms_tie_whose_sums_differ_by_rounding_alone() -> None:
    assert 0.2 + 0.4 > 0.6 + 0.0
    state = rank1.UCB1().start(rank1.Known(1, 2, 100))
    for arm, reward in [(0, 0.6), (1, 0.2), (0, 0.0), (1, 0.4)]:
        tell(state, rank1.Pull(arm, 0), reward)
    assert not state.close.any()
    assert state.at[0].winner == 0


@pytest.mark.validate
@pytest.mark.parametrize(("K", "n"), [(8, 2_000_000), (16, 2_000_000), (64, 300_000)])
def test_makes_the_choices_of_the_plain_argmax_over_long_runs(K: int, n: int) -> None:
    problem = alike(rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2))
    expected, _ = play_compiled(literal_of(rank1.UCB1(), problem, n), problem, n, seed=3)
    pairs, _, _ = play_policy(rank1.UCB1(), problem, n, seed=3)
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["spike", "rounded sums", "one pair"])
def test_late_rewards_make_the_choices_of_the_plain_argmax(name: str, seed: int) -> None:
    problem = PROBLEMS[name]
    policy = rank1.UCB1()
    state, literal = start(policy, problem, 100), literal_of(policy, problem, 100)
    rng = np.random.default_rng(seed)
    pending: list[rank1.Pull] = []
    for _ in range(1_500):
        action = rng.random()
        if action < 0.5 or not pending:
            pull = ask(state, rng)
            if literal.t[0] > 0 or not literal.issued.all():
                assert pull == literal.choose(rng)
            pending.append(pull)
            continue
        pull = pending.pop(int(rng.random() * len(pending)))
        if action < 0.9:
            reward, _ = problem.law.draw(pull.arm, rng)
            tell(state, pull, reward)
            literal.update(*pull, reward)
        else:
            state = state.forget(*pull)
            literal.forget(*pull)


def test_arms_are_gone_through_again_while_nothing_is_reported() -> None:
    state, rng = rank1.UCB1().start(rank1.Known(2, 2, 100)), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(7)]
    assert [pull.arm for pull in pulls] == [0, 1, 2, 3, 0, 1, 2]
    tell(state, pulls[5], 0.0)
    assert ask(state, rng).arm == 1  # the only one that is known


def test_a_forgotten_first_pull_is_issued_again() -> None:
    state, rng = rank1.UCB1().start(rank1.Known(2, 3, 100)), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(4)]
    for pull in pulls[:3:2]:
        state = state.forget(*pull)
    assert [ask(state, rng).arm for _ in range(4)] == [0, 2, 4, 5]


def test_no_match_is_decided_wrongly() -> None:
    """In the tournament itself: each node holds the largest score of the leaves below it."""
    problem = PROBLEMS["many"]
    _, _, state = play_policy(rank1.UCB1(), problem, 30_000, seed=4)
    assert isinstance(state, UCB1State)
    x = np.sqrt(2 * np.log(30_000))
    values = (state.intercept + state.slope * x)[: problem.arms]
    for level in range(1, len(state.offset)):
        values = np.pad(values, (0, -len(values) % 4), constant_values=-np.inf)
        values = values.reshape(-1, 4).max(axis=1)
        nodes = slice(int(state.offset[level]), int(state.offset[level]) + len(values))
        held = state.intercept[nodes] + state.slope[nodes] * x
        np.testing.assert_allclose(held, values, rtol=0, atol=1e-13)
    assert state.winner[-1] == state.at[0].winner


@pytest.mark.validate
def test_regret_on_the_paper_s_spike() -> None:
    """24457 ± 31 over 100 runs of an independent implementation."""
    problem = rank1.spike(16, 16, 0.7, 0.7, 0.2, 0.2)
    result = rank1.simulate(rank1.UCB1(), problem, n=2_000_000, runs=10, seed=1, jobs=2)
    regret = result["ucb1"].expected[:, -1]
    error = np.hypot(31, regret.std(ddof=1) / np.sqrt(len(regret)))
    assert abs(regret.mean() - 24457) < 4 * error


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_confidence_must_be_positive(bad: float) -> None:
    with pytest.raises(ValueError, match="confidence must be a number above 0"):
        rank1.UCB1(confidence=bad)
