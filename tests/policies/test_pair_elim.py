"""PairElim against its literal version, and its behaviour when rewards come late."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.policies.pair_elim_state import side_of
from rank1.testing import play_plain
from tests.support import few, literal_of, play_policy, start

PROBLEMS = [
    rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
    rank1.spike(5, 3, 0.0, 0.0, 0.9, 0.9),  # single lines see what averages don't
    rank1.Bernoulli([0.9, 0.9, 0.1], [0.8, 0.2, 0.8, 0.1]),  # ties for the best pair
    rank1.Bernoulli([0.7], [0.9, 0.2]),
    rank1.Bernoulli([0.9, 0.1, 0.4], [1.0]),
    rank1.Bernoulli([0.0, 0.0], [0.0, 0.0]),
    rank1.Categorical([0.0, 0.3, 1.0], np.random.default_rng(5).dirichlet([1, 1, 1], (3, 2))),
]


@pytest.mark.parametrize("seed", few(range(2), 1))
@pytest.mark.parametrize(
    "problem", few(PROBLEMS, 4), ids=lambda p: f"{p.description['name']}{p.K}x{p.L}"
)
def test_makes_the_literal_choices(problem: rank1.Problem, seed: int) -> None:
    n = 80_000  # past 2^16, where a phase begins
    literal = literal_of(rank1.PairElim(), problem, n)
    expected, rewards = play_plain(literal, problem, n, seed)
    pairs, got, state = play_policy(rank1.PairElim(), problem, n, seed)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)
    assert state.at[0].phase == 5
    assert state.h_row.tolist() == literal.h_row
    assert state.h_column.tolist() == literal.h_column


def test_a_fold_over_pulls_gives_the_state_that_choosing_gave() -> None:
    """Also with late and lost rewards, and past the beginning of a phase."""
    problem, rng = rank1.Bernoulli([0.9, 0.1, 0.5], [0.3, 0.8, 0.2, 0.1]), np.random.default_rng(1)
    state, folded = (start(rank1.PairElim(), problem, 5000) for _ in range(2))
    pending: list[rank1.Pull] = []
    for _ in range(6000):
        pull = rank1.ask(state, rng)
        folded.issued(*pull)
        pending.append(pull)
        while len(pending) > 12:
            pull = pending.pop(int(rng.random() * len(pending)))
            if rng.random() < 0.9:
                reward, _ = problem.law.draw(pull.arm, rng)
                rank1.tell(state, pull, reward)
                rank1.tell(folded, pull, reward)
    assert state.at[0].phase == 4
    assert state.at[0].rows < 3
    for ours, theirs in zip(state, folded, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_any_pull_may_have_been_issued() -> None:
    rng = np.random.default_rng(1)
    state = rank1.PairElim().start(rank1.Known(3, 4, 1000))
    for _ in range(3000):
        pull = rank1.Pull(int(rng.integers(12)), int(rng.integers(2**40)))
        state.issued(*pull)
        rank1.tell(state, pull, float(pull.arm == 6))
        assert 0 <= rank1.ask(state, rng).arm < 12
    assert state.best() == 6


def test_a_process_waits_for_the_line_with_the_fewest() -> None:
    """Row 1 is never reported: nothing is eliminated, however many rewards the others have."""
    state, rng = rank1.PairElim().start(rank1.Known(3, 1, 1000)), np.random.default_rng(1)
    late = []
    for _ in range(4000):
        pull = rank1.ask(state, rng)
        if side_of(pull.tag) == 0 and pull.arm == 1:
            late.append(pull)
        else:
            rank1.tell(state, pull, float(pull.arm == 0))
    assert state.at[0].rows == 3
    for pull in late:
        rank1.tell(state, pull, 0.0)
    assert state.rows[: state.at[0].rows].tolist() == [0]
    assert state.h_row.tolist() == [0, 0, 0]


def test_regret_has_no_factor_of_one_over_the_mean() -> None:
    """A spike over zeros: averages over 16 columns have a 16th of the gap within the best one.

    Rank1Elim's regret is over ten times that of PairElim, at less than 5% standard error.
    """
    problem, ends = rank1.spike(16, 16, 0.0, 0.0, 0.9, 0.9), {}
    for policy in (rank1.PairElim(), rank1.Rank1Elim()):
        result = rank1.simulate(policy, problem, 4_000_000, 4, seed=1, checkpoints=1)
        ends[policy.name] = result.outcomes[0].expected[:, -1].mean()
    assert 10 * ends["pair_elim"] < ends["rank1elim"]


def test_rewards_must_be_fractions() -> None:
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for pair_elim"):
        rank1.PairElim().start(rank1.Known(2, 2, 10, high=2.0))
