"""Rank1Elim against Algorithm 1, and its behaviour when rewards come late."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1
from rank1.literal.rank1elim import LiteralRank1Elim
from rank1.policies.elimination import EliminationState
from rank1.policies.elimination_stages import round_of, side_of, stage_of
from rank1.testing import play_plain
from tests.support import few, literal_of, play_policy, start

THREE_VALUES = rank1.Categorical(
    [0.0, 0.5, 1.0], np.random.default_rng(5).dirichlet([1, 1, 1], size=(3, 5))
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "problem",
    [
        rank1.spike(4, 6, 0.3, 0.5, 0.6, 0.45),
        rank1.Bernoulli([0.9, 0.9, 0.1], [0.8, 0.2, 0.8, 0.1]),  # ties for the best pair
        rank1.Bernoulli([0.7], [0.9, 0.2]),  # one row
        rank1.Bernoulli([0.9, 0.1, 0.4], [1.0]),  # one column
        rank1.Bernoulli([0.0, 0.0], [0.0, 0.0]),  # nothing ever happens
        rank1.Bernoulli([1.0, 0.0], [1.0, 1.0]),  # means of exactly 0 and 1
        THREE_VALUES,
    ],
    ids=lambda problem: f"{problem.description['name']}{problem.K}x{problem.L}",
)
def test_makes_the_choices_of_algorithm_1(problem: rank1.Problem, seed: int) -> None:
    n = 20_000
    literal = literal_of(rank1.Rank1Elim(), problem, n)
    expected, rewards = play_plain(literal, problem, n, seed)
    pairs, got, state = play_policy(rank1.Rank1Elim(), problem, n, seed)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(got, rewards)
    rows, columns = literal.survivors[-1]
    assert state.rows[: state.at[0].rows].tolist() == rows
    assert state.columns[: state.at[0].columns].tolist() == columns
    assert state.at[0].stage == len(literal.survivors) - 1
    before = step = 0
    for stage, (rows, columns) in enumerate(literal.survivors[:-1]):
        step += (int(state.n_stage[stage]) - before) * (len(rows) + len(columns))
        before = int(state.n_stage[stage])
        assert state.ended[stage] == step
    assert state.ended[len(literal.survivors) - 1] == -1


class Watched:
    """A state fed with late rewards, beside a plain account of what was reported."""

    def __init__(self, n: int, problem: rank1.Problem) -> None:
        self.problem = problem
        self.state = start(rank1.Rank1Elim(), problem, n)
        #: (side, line) → round → reward
        self.account: dict[tuple[int, int], dict[int, float]] = {}
        #: (side, round) → the line over which it explores
        self.partners: dict[tuple[int, int], int] = {}
        self.pending: list[rank1.Pull] = []

    def ask(self, rng: np.random.Generator) -> rank1.Pull:
        at = self.state.at[0]
        survivors = (
            self.state.columns[: at.columns].tolist(),
            self.state.rows[: at.rows].tolist(),
        )
        pull = rank1.ask(self.state, rng)
        self.pending.append(pull)
        side, number = side_of(pull.tag), round_of(pull.tag)
        partner = divmod(pull.arm, self.problem.L)[1 - side]
        if (side, number) not in self.partners:  # it is drawn from those that remain
            assert partner in survivors[side]
        assert self.partners.setdefault((side, number), partner) == partner
        return pull

    def tell(self, index: int, rng: np.random.Generator) -> None:
        pull = self.pending.pop(index)
        reward = self.problem.law.draw(pull.arm, rng)[0]
        side, number = side_of(pull.tag), round_of(pull.tag)
        line = self.account.setdefault((side, divmod(pull.arm, self.problem.L)[side]), {})
        assert number not in line  # a line is explored once in a round
        line[number] = reward
        rank1.tell(self.state, pull, reward)

    def forget(self, index: int) -> rank1.Pull:
        pull = self.pending.pop(index)
        self.state = self.state.forget(*pull)
        return pull

    def check(self) -> int:
        """Every stage that ended had all its observations, and no others; how many there are."""
        state = self.state
        for stage in range(state.at[0].stage):
            n_stage = state.n_stage[stage]
            for side, C, intervals in (
                (0, state.C_row, state.row_intervals),
                (1, state.C_column, state.column_intervals),
            ):
                for line in np.nonzero(~np.isnan(intervals[stage, :, 0]))[0]:
                    seen = self.account[side, int(line)]
                    rounds = [number for number in seen if number < n_stage]
                    assert len(rounds) == n_stage
                    assert C[stage, line] == pytest.approx(sum(seen[r] for r in rounds))
        return int(state.at[0].stage)


@pytest.mark.parametrize("seed", few(range(4), 1))
@pytest.mark.parametrize("late", few([40, 1, 5, 400], 2))
def test_a_stage_ends_with_all_its_rewards_however_late(late: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    watched = Watched(20_000, rank1.Bernoulli([0.9, 0.1, 0.5, 0.8], [0.3, 0.9, 0.1]))
    for _ in range(12_000):
        watched.ask(rng)
        if len(watched.pending) >= late:
            index = int(rng.random() * len(watched.pending))
            if rng.random() < 0.1:
                watched.forget(index)
            else:
                watched.tell(index, rng)
    assert watched.check() >= 2
    assert watched.state.best() == 1


def test_a_pull_that_was_given_back_is_issued_again() -> None:
    rng = np.random.default_rng(1)
    watched = Watched(1000, rank1.Bernoulli([0.5] * 3, [0.5] * 2))
    pulls = [watched.ask(rng) for _ in range(100)]
    back = [watched.forget(index) for index in (90, 40, 7)]
    again = [watched.ask(rng) for _ in range(3)]
    assert sorted(again) == sorted(back)
    assert watched.ask(rng) not in pulls


def test_without_delay_the_tag_tells_side_stage_and_round() -> None:
    rng = np.random.default_rng(1)
    watched = Watched(1000, rank1.Bernoulli([0.5] * 3, [0.5] * 2))
    for number in range(4):
        for k in range(5):
            pull = watched.ask(rng)
            assert side_of(pull.tag) == (k >= 3)
            assert stage_of(pull.tag) == 0
            assert round_of(pull.tag) == number
            watched.tell(0, rng)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), "wide", True])
def test_settings_are_checked(scale: float) -> None:
    with pytest.raises((ValueError, TypeError), match="confidence_scale must be a number above 0"):
        rank1.Rank1Elim(confidence_scale=scale)


@pytest.mark.parametrize("n", [8, 20, 55, 149, 1000, 20_000, 2_000_000])
def test_stages_and_radius_are_the_paper_s(n: int) -> None:
    """Line 6 and lines 24 to 27, to the last digits: log n and nothing near it."""
    state = rank1.Rank1Elim().start(rank1.Known(3, 2, n))
    stages = len(state.n_stage) - 1  # after the last one that can end, nothing is eliminated
    expected = [math.ceil(4 * 4**stage * math.log(n)) for stage in range(stages + 1)]
    assert state.n_stage[:-1].tolist() == expected[:-1]
    assert 2 * expected[-1] > n  # a round has at least two pulls
    radii = [math.sqrt(math.log(n) / length) for length in expected]
    assert state.width.tolist() == pytest.approx(radii, rel=1e-14)


class Crossed(EliminationState):
    """Where the mean is high, the lower bound is low: the two bounds name different leaders."""

    __slots__ = ()

    def interval(self, stage: int, mean: float, partners: int) -> tuple[float, float]:
        return 0.6 - 0.5 * mean, 0.55 if 0.0 < mean < 1.0 else 0.9 + mean


def test_the_leader_has_the_largest_lower_bound() -> None:
    """Rewards 1, 0 and both in turn: the bounds are (0.1, 1.9), (0.6, 0.9) and (0.35, 0.55)."""
    state = Crossed(*rank1.Rank1Elim().start(rank1.Known(3, 1, 10_000)))
    rng = np.random.default_rng(1)
    state.n_stage[0] = 8
    while state.at[0].stage == 0:
        pull = rank1.ask(state, rng)
        rank1.tell(state, pull, [1.0, 0.0, float(round_of(pull.tag) % 2)][pull.arm])
    assert state.h_row[1].tolist() == [0, 1, 1]
    assert state.rows[: state.at[0].rows].tolist() == [0, 1]


def test_radius_and_stages_grow_with_the_noise() -> None:
    state = rank1.Rank1Elim(confidence_scale=2).start(rank1.Known(2, 2, 10**6, sigma=1.5))
    s2 = 1 + 4 * 1.5**2
    expected = [np.ceil(4 * s2 * 4**stage * np.log(10**6)) for stage in range(3)]
    assert state.n_stage[:3].tolist() == expected
    assert state.width[1] == pytest.approx(2 * np.sqrt(s2 * np.log(10**6) / expected[1]))


@pytest.mark.parametrize("seed", range(2))
def test_gaussian_choices_are_those_of_algorithm_1(seed: int) -> None:
    problem = rank1.Gaussian([0.9, 0.1, 0.5], [0.9, 0.2], sigma=0.2)
    n = 20_000
    policy = rank1.Rank1Elim(0.7)
    expected, _ = play_plain(literal_of(policy, problem, n), problem, n, seed)
    pairs, _, _ = play_policy(policy, problem, n, seed)
    np.testing.assert_array_equal(pairs, expected)


def test_lines_whose_eliminator_is_eliminated_follow_it() -> None:
    """Row 1 eliminates row 0 in stage 0, and row 2 eliminates row 1 in stage 1."""
    n = 3000
    known = rank1.Known(3, 2, n)
    literal, state = LiteralRank1Elim(known), rank1.Rank1Elim().start(known)
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(n):
        arm, _ = literal.choose(theirs)
        pull = rank1.ask(state, ours)
        assert pull.arm == arm
        stage = stage_of(pull.tag)
        means = [0.0, 1.0, 0.9] if stage == 0 else [0.0, 0.0, 1.0]
        reward = means[arm // 2] if side_of(pull.tag) == 0 else 0.5
        literal.update(arm, 0, reward)
        rank1.tell(state, pull, reward)
    assert state.h_row[:3].tolist() == [[0, 1, 2], [1, 1, 2], [2, 2, 2]]


def test_a_line_that_only_touches_is_eliminated() -> None:
    """Line 34 has ≤: an upper bound that equals the best lower bound is eliminated."""
    state = rank1.Rank1Elim().start(rank1.Known(2, 1, 10_000))
    state.n_stage[0], state.width[0] = 8, 0.25
    rng = np.random.default_rng(1)
    while state.at[0].stage == 0:
        pull = rank1.ask(state, rng)
        even = round_of(pull.tag) % 2 == 0
        rank1.tell(state, pull, 1.0 if pull.arm == 0 or even else 0.0)
    assert state.row_intervals[0].tolist() == [[0.75, 1.25], [0.25, 0.75]]
    assert state.h_row[1].tolist() == [0, 0]


def test_a_pull_of_an_eliminated_line_is_not_waited_for() -> None:
    """It was given back before its row was eliminated: never issued again, and stages still end."""
    state = rank1.Rank1Elim().start(rank1.Known(2, 1, 10_000))
    rng = np.random.default_rng(1)

    def tell(pull: rank1.Pull) -> None:
        rank1.tell(state, pull, 1.0 if pull.arm == 0 else 0.0)

    first = rank1.ask(state, rng)
    given_back = None
    while given_back is None:
        pull = rank1.ask(state, rng)
        if stage_of(pull.tag) == 0:
            tell(pull)
        elif pull.arm == 1 and side_of(pull.tag) == 0:
            given_back = pull
        else:
            tell(pull)
    state = state.forget(*given_back)
    tell(first)
    assert state.at[0].stage == 1
    assert state.h_row[1].tolist() == [0, 0]
    for _ in range(2000):
        pull = rank1.ask(state, rng)
        assert pull != given_back
        tell(pull)
    assert state.at[0].stage >= 3


def test_a_pull_given_back_after_its_line_is_gone_is_not_issued_again() -> None:
    state = rank1.Rank1Elim().start(rank1.Known(2, 1, 10_000))
    rng = np.random.default_rng(1)

    def tell(pull: rank1.Pull) -> None:
        rank1.tell(state, pull, 1.0 if pull.arm == 0 else 0.0)

    first = rank1.ask(state, rng)
    late = None
    while late is None:
        pull = rank1.ask(state, rng)
        if stage_of(pull.tag) == 1 and pull.arm == 1 and side_of(pull.tag) == 0:
            late = pull
        else:
            tell(pull)
    tell(first)
    assert state.h_row[1].tolist() == [0, 0]
    state = state.forget(*late)
    for _ in range(2000):
        pull = rank1.ask(state, rng)
        assert pull != late
        tell(pull)
    assert state.at[0].stage >= 3


def test_a_state_that_was_replaced_stays_sound() -> None:
    """A caller that ignores what `forget` returns loses the pull, and nothing else."""
    state = rank1.Rank1Elim().start(rank1.Known(2, 3, 1000))
    rng = np.random.default_rng(1)
    state.forget(*rank1.ask(state, rng))
    for _ in range(20):
        assert 0 <= rank1.ask(state, rng).arm < 6


def test_rewards_of_a_wide_range_have_wide_intervals() -> None:
    wide = rank1.Rank1Elim().start(rank1.Known(2, 2, 10**6, low=1.0, high=5.0))
    unit = rank1.Rank1Elim().start(rank1.Known(2, 2, 10**6, low=0.2, high=0.9))
    assert wide.width[0] * np.sqrt(wide.n_stage[0]) == pytest.approx(4 * np.sqrt(np.log(10**6)))
    assert unit.width[0] * np.sqrt(unit.n_stage[0]) == pytest.approx(np.sqrt(np.log(10**6)))


@pytest.mark.parametrize("policy", [rank1.Rank1Elim(), rank1.Rank1ElimKL()])
def test_reports_that_are_not_waited_for_are_refused(policy: rank1.Policy) -> None:
    state, rng = policy.start(rank1.Known(2, 3, 10_000)), np.random.default_rng(1)
    pull = rank1.ask(state, rng)
    for tag in (-1, 64, 2 * 31, 2**40):
        with pytest.raises(ValueError, match="pull must be one that was asked for"):
            rank1.tell(state, rank1.Pull(0, tag), 1.0)
    rank1.tell(state, pull, 1.0)
    with pytest.raises(ValueError, match="asked for and hasn't been reported yet"):
        rank1.tell(state, pull, 1.0)
    for _ in range(300):  # and it goes on
        rank1.tell(state, rank1.ask(state, rng), 1.0)


def test_a_wider_range_makes_intervals_wider_and_stages_no_longer() -> None:
    unit = rank1.Rank1Elim().start(rank1.Known(4, 4, 10_000))
    stars = rank1.Rank1Elim().start(rank1.Known(4, 4, 10_000, low=1.0, high=5.0))
    np.testing.assert_array_equal(stars.n_stage, unit.n_stage)
    np.testing.assert_allclose(stars.width, 4 * unit.width)
