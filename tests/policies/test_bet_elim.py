"""BetElim against its literal version, and what its proof needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rank1
from rank1.literal import LITERAL
from rank1.policies import Known, Pull, ask, tell
from rank1.policies.bet_elim_state import BetElimState
from rank1.simulation.known import known_of
from rank1.testing import play_compiled, play_plain

PROBLEMS = [
    rank1.spike(4, 3, 0.4, 0.4, 0.4, 0.4),
    rank1.Product([[0.9, 0.6], [0.8, 0.5, 0.5], [0.9, 0.7]]),
    rank1.Means([0.3, 0.5, 0.2, 0.6, 0.1]),
    rank1.Categorical([0, 0.5, 1], [[[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]] * 2),
]


def start(policy: rank1.BetElim, problem: rank1.Problem, n: int = 1000) -> BetElimState:
    return policy.start(known_of(policy, problem, n))


@pytest.mark.uncompiled
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: str(problem.grid))
@pytest.mark.parametrize(
    "settings",
    [{}, {"floor": 0.05}, {"any_grid": True, "growth": 0.05, "confidence": 0.5}],
    ids=str,
)
def test_choices_are_those_of_the_literal_version(
    problem: rank1.Problem, settings: dict[str, Any]
) -> None:
    policy = rank1.BetElim(**settings)
    state, n = start(policy, problem), 1500
    literal = LITERAL["bet_elim"](known_of(policy, problem, n), **policy.settings)
    assert (
        play_compiled(state, problem, n, 3)[0].tolist()
        == play_plain(literal, problem, n, 3)[0].tolist()
    )
    assert state.at[0].version > 20
    assert not state.living.all(), "some level should have gone"
    ours = [state.fit[side.begin : side.begin + side.levels] for side in state.sides]
    for fit, theirs in zip(ours, literal.f, strict=True):  # type: ignore[attr-defined]
        np.testing.assert_allclose(fit, theirs, rtol=1e-9)


def played(policy: rank1.BetElim, late: int, seed: int, extra: int = 0) -> list[Any]:
    """The versions of a run whose rewards are late, with more pulls handed out at the end."""
    problem = PROBLEMS[0]
    state, rng = start(policy, problem), np.random.default_rng(seed)
    pending: list[tuple[Pull, float]] = []
    for _ in range(900):
        pull = ask(state, rng)
        pending.append((pull, float(problem.law.draw(pull.arm, rng)[0])))
        if len(pending) > late:
            tell(state, *pending.pop(0))
    for _ in range(extra):
        ask(state, rng)
    for pull, reward in pending:
        tell(state, pull, reward)
    return [state.at[0].version, state.shares, state.fit, state.log_e, state.leaders, state.living]


@pytest.mark.uncompiled
def test_pending_pulls_influence_no_version() -> None:
    """The same reports, with and without a thousand pulls that are never reported."""
    for one, other in zip(
        played(rank1.BetElim(), 100, 1), played(rank1.BetElim(), 100, 1, extra=1000), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.uncompiled
def test_a_report_is_folded_with_its_own_pulls_version() -> None:
    """In whatever order reports come, as long as the versions are kept, the bets are the same."""
    policy, problem = rank1.BetElim(growth=1.0, confidence=0.9999), PROBLEMS[0]
    first, second = start(policy, problem), start(policy, problem)
    rng = np.random.default_rng(5)
    reports = []
    for _ in range(1500):
        pull = ask(first, rng)
        reports.append((pull, float(problem.law.draw(pull.arm, rng)[0])))
        tell(first, *reports[-1])
    tags = [pull.tag for pull, _ in reports]
    assert {0, 1, 2, 3} <= set(tags)
    begin, end = tags.index(1), tags.index(3)
    # Versions 1 and 2 mixed: version 2 begins with the same reports in another order.
    early, late = reports[begin : tags.index(2)], reports[tags.index(2) : end - 1]
    rng.shuffle(early)
    rng.shuffle(late)
    for report in [*reports[:begin], *early, *late, *reports[end - 1 :]]:
        tell(second, *report)
    np.testing.assert_array_equal(first.number, second.number)
    for state in (first, second):
        state.logs[:] += np.log(state.wealth)
    np.testing.assert_allclose(first.logs, second.logs, rtol=1e-9, atol=1e-9)


@pytest.mark.uncompiled
def test_a_version_that_is_no_longer_kept_counts_for_the_fit_alone() -> None:
    policy, problem = rank1.BetElim(), PROBLEMS[0]
    state, rng = start(policy, problem), np.random.default_rng(1)
    for _ in range(300):
        pull = ask(state, rng)
        tell(state, pull, float(problem.law.draw(pull.arm, rng)[0]))
    logs, wealth, counts = state.logs.copy(), state.wealth.copy(), state.counts.copy()
    tell(state, Pull(3, int(state.at[0].version) + 5), 1.0)
    np.testing.assert_array_equal(state.logs, logs)
    np.testing.assert_array_equal(state.wealth, wealth)
    assert state.counts[3] == counts[3] + 1


@pytest.mark.uncompiled
def test_only_matured_reports_count_for_the_fit() -> None:
    policy, problem = rank1.BetElim(window=50), PROBLEMS[0]
    state, rng = start(policy, problem), np.random.default_rng(1)
    pulls = [ask(state, rng) for _ in range(60)]
    for pull in pulls[:20]:
        tell(state, pull, 1.0)
    assert state.counts.sum() == 10  # ten of them are as old as the window
    for _ in range(10):
        ask(state, rng)
    assert state.counts.sum() == state.at[0].matured == 20
    tell(state, pulls[30], 1.0)
    tell(state, pulls[19], 0.0)  # once more: nothing can be held in its place
    assert state.at[0].reports == 22
    assert state.counts.sum() == 21


@pytest.mark.uncompiled
def test_levels_that_have_gone_get_no_pulls_but_for_a_floor() -> None:
    problem = PROBLEMS[0]
    for floor in (0.0, 0.1):
        state = start(rank1.BetElim(floor=floor), problem)
        play_compiled(state, problem, 3000, 1)
        assert state.done()
        assert state.best() == problem.best_arm
        counts = state.counts.copy()
        play_compiled(state, problem, 500, 2)
        others = (state.counts - counts).sum() - (state.counts - counts)[problem.best_arm]
        if floor == 0.0:
            assert others == 0
            np.testing.assert_array_equal(state.shares, [1, 0, 0, 0, 1, 0, 0])
        else:
            # 500·(1 − 0.7·0.8), within four standard errors
            assert abs(others - 220) < 4 * np.sqrt(500 * 0.56 * 0.44)
            assert state.shares.min() == pytest.approx(0.1)


def test_what_it_refuses() -> None:
    for confidence in (0, 1, 1.5):
        with pytest.raises(rank1.InputError, match="confidence must be a number above 0 and below"):
            rank1.BetElim(confidence=confidence)
    with pytest.raises(rank1.InputError, match="floor must be below 1/4, for a side of 4 levels"):
        rank1.BetElim(floor=0.25).start(Known(K=4, L=3, n=100))
    with pytest.raises(rank1.InputError, match=r"rewards must be bounded .* inf"):
        rank1.BetElim().start(Known(K=4, L=3, n=100, low=-np.inf, high=np.inf))
    with pytest.raises(rank1.InputError, match=r"confidence of bet_elim must be 0.9, .* got 0.8"):
        rank1.identify(rank1.BetElim(confidence=0.8), PROBLEMS[0], confidence=0.9)
    with pytest.raises(rank1.InputError, match=r"tolerance must be 0 for bet_elim, .* min_lift"):
        rank1.identify(rank1.BetElim(), PROBLEMS[0], tolerance=0.1)
    state = start(rank1.BetElim(), PROBLEMS[0])
    before = state.at.copy()
    with pytest.raises(rank1.InputError, match=r"reward must be a number in \[0, 1\], got 1.5"):
        tell(state, Pull(0, 0), 1.5)
    np.testing.assert_array_equal(state.at, before)


@pytest.mark.uncompiled
@pytest.mark.parametrize("sides", [(1,), (3,), (1, 3), (2,) * 6, (1,) * 16])
def test_any_number_of_sides(sides: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    factors = [np.array([0.99, *[0.6] * (size - 1)]) for size in sides]
    problem = rank1.Product(factors)
    state = start(rank1.BetElim(), problem)
    assert state.done() == (problem.arms == 1)
    for _ in range(700):
        pull = ask(state, rng)
        tell(state, pull, float(problem.law.draw(pull.arm, rng)[0]))
    assert state.best() == 0


@pytest.mark.uncompiled
def test_a_smallest_lift_stops_near_ties() -> None:
    """Two levels as good as each other: without it there is no stop, with it there is."""
    problem = rank1.Means([0.6, 0.6, 0.3])
    state = start(rank1.BetElim(min_lift=0.3), problem)
    play_compiled(state, problem, 6_000, 1)
    assert state.done()
    assert state.best() in (0, 1)
    assert state.living[:2].all()
    assert not state.living[2]
    plain = start(rank1.BetElim(), problem)
    play_compiled(plain, problem, 3_000, 1)
    assert not plain.done()
