"""TopTwo against all challengers in every step."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.policies import Known, ask, tell
from tests.support import play_policy


def test_the_leader_has_its_share_of_pulls() -> None:
    """Once the leader stays, ⌊β·ℓ⌋ of the ℓ times that it has led."""
    problem, n = rank1.spike(5, 6, 0.5, 0.5, 0.4, 0.4), 20_000
    for share in (None, 0.5, 0.3):
        arms, _, state = play_policy(rank1.TopTwo(share=share), problem, n, seed=1)
        beta = 1 / (1 + 3) if share is None else share  # √(5 + 6 − 2) = 3
        half = arms[n // 2 :]
        assert abs(np.mean(half == 0) - beta) <= 2 / len(half)
        assert np.all((half < 6) | (half % 6 == 0))
        assert state.best() == 0
        assert int(state.led.sum()) == n - 30


def test_evidence_against_all_challengers_is_alike() -> None:
    """What the policy is for: W + log N within what a few rewards change, whatever the gaps."""
    from rank1.theory import kl_bernoulli

    problem, n = rank1.Bernoulli([0.9, 0.7, 0.4, 0.1], [0.9, 0.8, 0.5]), 50_000
    state = play_policy(rank1.TopTwo(), problem, n, seed=1)[2]
    N, mu = state.pulls.reshape(4, 3), (state.sums / state.reports).reshape(4, 3)
    near = [(1, 0), (2, 0), (3, 0), (0, 1), (0, 2)]
    index = []
    for b in near:
        m = (N[0, 0] * mu[0, 0] + N[b] * mu[b]) / (N[0, 0] + N[b])
        W = N[0, 0] * kl_bernoulli(mu[0, 0], m) + N[b] * kl_bernoulli(mu[b], m)
        index.append(W + np.log(N[b]))
    assert max(index) - min(index) < 5 < 100 < min(index)
    assert N[0, 1] > 2 * N[0, 2]  # the closer one needs more


def test_late_rewards() -> None:
    """Each arm is issued once; pending pulls count for who is next, and not for who leads."""
    state, rng = rank1.TopTwo().start(Known(2, 3, 100)), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(6)]
    assert [pull.arm for pull in pulls] == list(range(6))
    # Nothing is known: go on in order.
    assert [ask(state, rng).arm for _ in range(7)] == [*range(6), 0]
    assert state.best() == 0
    tell(state, pulls[1], 0.0)
    assert state.best() == 1
    # β is 1/(1 + √3): every third time the leader, else the least pulled of its row and column.
    assert [ask(state, rng).arm for _ in range(6)] == [2, 4, 1, 0, 2, 1]


def test_settings_and_range_are_checked() -> None:
    for share in (0, 1, -0.5, 2, float("nan")):
        with pytest.raises(rank1.InputError, match=f"share must be a number above 0 .*{share}"):
            rank1.TopTwo(share=share)
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for top_two"):
        rank1.TopTwo().start(Known(2, 2, 10, high=2.0))
    assert rank1.TopTwo().label == "top_two"
    assert rank1.TopTwo(share=0.5).label == "top_two:share=0.5"


@pytest.mark.parametrize("sizes", [(5,), (5, 6), (2, 2, 3), (2, 3, 2, 2)])
def test_the_share_depends_on_the_number_of_neighbours(sizes: tuple[int, ...]) -> None:
    neighbours = sum(sizes) - len(sizes)
    state = rank1.TopTwo().start(Known(sides=sizes, n=100))
    assert state.at[0].share == pytest.approx(1 / (1 + np.sqrt(neighbours)))
