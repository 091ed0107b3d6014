"""IMED-UB against all indices in every step."""

from __future__ import annotations

import numpy as np
import pytest

import rank1
from rank1.policies import Known, Pull, ask, tell
from tests.policies.late import issue, load


def test_late_rewards() -> None:
    """Each arm is issued once; pending pulls count for who is next, and not for who leads."""
    state, rng = rank1.IMEDUB().start(Known(2, 3, 100)), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(6)]
    assert [pull.arm for pull in pulls] == list(range(6))
    # Nothing is known: go on in order.
    assert [ask(state, rng).arm for _ in range(7)] == [*range(6), 0]
    assert state.best() == 0
    tell(state, pulls[1], 0.0)
    assert state.best() == 1
    # Those pulled twice come first: the leader and others of its lines; arm 0 was pulled 3 times.
    assert [ask(state, rng).arm for _ in range(5)] == [1, 2, 4, 0, 1]


@pytest.mark.uncompiled
def test_of_tied_leaders_the_least_pulled_leads() -> None:
    state, rng = rank1.IMEDUB().start(Known(2, 2, 100)), np.random.default_rng(1)
    load(state, 0, 4, 2.0)
    load(state, 1, 3, 1.0)
    load(state, 2, 3, 1.0)
    load(state, 3, 2, 1.0)
    assert state.best() == 3
    pull = ask(state, rng)  # 2·kl(½, ½) + log 2 is least, and pulled twice more it leads no longer
    assert pull.arm == 3
    issue(state, Pull(3, 0))
    issue(state, Pull(3, 0))
    assert state.best() == 0


@pytest.mark.uncompiled
@pytest.mark.parametrize("successes", [0.0, 3.0])
def test_means_of_zero_and_one(successes: float) -> None:
    """kl(μ, 1) is infinite for μ < 1, and kl(0, 0) is 0."""
    state, rng = rank1.IMEDUB().start(Known(1, 3, 100)), np.random.default_rng(1)
    load(state, 0, 3, 0.0)
    load(state, 1, 3, successes)
    load(state, 2, 2, 0.0)
    expected = 2 if successes == 0 else 1
    assert state.best() == expected
    assert ask(state, rng).arm == expected


@pytest.mark.validate
def test_regret_is_near_the_lower_bound() -> None:
    """Asymptotically optimal: below OSUB's regret, and near Theorem 2 at n = 2M.

    With 12 runs the standard errors are about 3%; the difference to OSUB is about 20 of them.
    """
    problem, n = rank1.spike(8, 8, 0.7, 0.7, 0.2, 0.2), 2_000_000
    result = rank1.simulate([rank1.IMEDUB(), rank1.OSUB()], problem, n=n, runs=12, seed=1)
    ours, theirs = (result[name].expected[:, -1] for name in ("imed_ub", "osub"))
    error = np.hypot(ours.std(ddof=1), theirs.std(ddof=1)) / np.sqrt(12)
    assert theirs.mean() - ours.mean() > 5 * error
    bound = rank1.theory.lower_bound(problem) * np.log(n)
    assert 0.7 * bound < ours.mean() < bound  # 0.85 ± 0.03
    assert result.best_pairs("imed_ub") == [(0, 0)] * 12


def test_range_is_checked() -> None:
    with pytest.raises(ValueError, match=r"rewards must be in \[0, 1\] for imed_ub"):
        rank1.IMEDUB().start(Known(2, 2, 10, high=2.0))
    assert rank1.IMEDUB().settings == {}
