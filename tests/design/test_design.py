"""Folding, verdicts and intervals, and that the policy and the pure functions say the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rank1
from rank1 import design
from rank1.design import Counts, Design, Version
from rank1.design.counts import checked_counts
from rank1.policies import ask, tell
from rank1.simulation.known import known_of

pytestmark = pytest.mark.uncompiled


def run_of(
    policy: rank1.BetElim, problem: rank1.Problem, n: int, seed: int
) -> tuple[Any, list[tuple[int, int, float, int]]]:
    """The policy's state after n pulls, and the reports as rows of counts."""
    state, rng = policy.start(known_of(policy, problem, n)), np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        pull = ask(state, rng)
        reward = float(problem.law.draw(pull.arm, rng)[0])
        tell(state, pull, reward)
        rows.append((pull.tag, pull.arm, reward, 1))
    return state, rows


def history(
    plan: Design, rows: list[tuple[int, int, float, int]]
) -> tuple[dict[int, Version], design.Wealth]:
    """The versions that the reports led to, one after another, and what the bets won."""
    versions, wealth = {0: design.first_version(plan)}, design.start(plan)
    last, began, gained = 0, 0, 0.0
    for reports, row in enumerate(rows, 1):
        gained += (row[2] - plan.low) / (plan.high - plan.low)
        if design.is_due(plan, versions[last], began, reports, gained):
            wealth = design.fold(plan, wealth, versions, Counts.of(rows[began:reports]))
            known = design.totals(plan, versions, Counts.of(rows[:reports]))
            versions[last + 1] = design.next_version(plan, versions[last], wealth, known)
            last, began = last + 1, reports
    return versions, design.fold(plan, wealth, versions, Counts.of(rows[began:]))


CASES: list[tuple[rank1.Problem, dict[str, Any], dict[str, Any]]] = [
    (rank1.spike(4, 3, 0.4, 0.4, 0.4, 0.4), {}, {}),
    (rank1.Product([[0.9, 0.6], [0.8, 0.5], [0.9, 0.7]]), {"floor": 0.1}, {"floor": 0.1}),
    (rank1.Means([0.5, 0.4]), {"min_lift": 0.2}, {"min_lift": 0.2}),
    (
        rank1.Categorical([0, 10, 40], [[[0.5, 0.3, 0.2], [0.8, 0.1, 0.1]]]),
        {"growth": 0.1},
        {"growth": 0.1, "low": 0, "high": 40},
    ),
]


@pytest.mark.parametrize(("problem", "setting", "plan"), CASES)
def test_the_policy_and_the_functions_agree(
    problem: rank1.Problem, setting: dict[str, Any], plan: dict[str, Any]
) -> None:
    state, rows = run_of(rank1.BetElim(**setting), problem, 700, 3)
    made = Design(problem.grid, **plan)
    versions, wealth = history(made, rows)
    assert max(versions) == state.at[0].version
    current = versions[max(versions)]
    np.testing.assert_allclose(np.concatenate(current.shares), state.shares, rtol=1e-9)
    np.testing.assert_allclose(np.concatenate(current.fit), state.fit, rtol=1e-9)
    logs = np.concatenate([wealth.logs, wealth.pairs])
    np.testing.assert_allclose(logs, state.logs + np.log(state.wealth), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(np.concatenate(current.living), state.living)
    np.testing.assert_array_equal(wealth.slots, state.slots)


def test_late_reports_as_the_policy_folds_them() -> None:
    """Drawn under one version and reported under another."""
    problem, plan = CASES[0][0], Design(CASES[0][0].grid)
    policy = rank1.BetElim()
    state, rng = policy.start(known_of(policy, problem, 900)), np.random.default_rng(1)
    versions, wealth = {0: design.first_version(plan)}, design.start(plan)
    pending: list[Any] = []
    for _ in range(450):
        pull = ask(state, rng)
        pending.append((pull, float(problem.law.draw(pull.arm, rng)[0])))
        if len(pending) <= 120:
            continue
        before = int(state.at[0].version)
        (arm, tag), reward = pending.pop(0)
        if before > 0 and before not in versions:
            versions[before] = Version(
                before,
                plan.split(state.shares.copy()),
                tuple(state.leaders.tolist()),
                plan.split(state.fit.copy()),
                plan.split(state.living.copy()),
            )
        report = Counts.of([(tag, arm, reward, 1)])
        wealth = design.fold(plan, wealth, versions, report, under=versions[before])
        tell(state, rank1.Pull(arm, tag), reward)
    assert len(versions) > 50
    logs = np.concatenate([wealth.logs, wealth.pairs])
    np.testing.assert_allclose(logs, state.logs + np.log(state.wealth), rtol=1e-8, atol=1e-9)


def version_of(plan: Design, seed: int) -> Version:
    """Some version with leaders, and shares down to 10⁻⁶."""
    rng = np.random.default_rng(seed)
    shares, fit = [], []
    for size in plan.sizes:
        weights = 10.0 ** rng.uniform(-6, 0, size)
        shares.append(weights / weights.sum())
        fit.append(10.0 ** rng.uniform(-3, 0, size))
    leaders = tuple(int(side.argmax()) for side in fit)
    living = tuple(np.ones(size, np.bool_) for size in plan.sizes)
    return Version(1, tuple(shares), leaders, tuple(fit), living)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    rows=st.lists(
        st.tuples(st.integers(0, 255), st.floats(0, 1), st.integers(1, 200)), max_size=12
    ),
    seed=st.integers(0, 2**20),
    ordinary=st.booleans(),
)
def test_one_report_at_a_time_and_all_at_once_give_the_same(
    sizes: list[int], rows: list[tuple[int, float, int]], seed: int, ordinary: bool
) -> None:
    plan = Design(sizes, high=1.0 if ordinary else 2.0, min_lift=0.1)
    versions = {1: version_of(plan, seed)}
    table = [(1, arm % plan.grid.arms, x, count) for arm, x, count in rows]
    at_once = design.fold(plan, design.start(plan), versions, Counts.of(table))
    one_by_one = design.start(plan)
    for version, arm, x, count in reversed(table):
        for part in (count // 2, count - count // 2):
            report = Counts.of([(version, arm, x, part)])
            one_by_one = design.fold(plan, one_by_one, versions, report)
    np.testing.assert_allclose(at_once.logs, one_by_one.logs, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(at_once.pairs, one_by_one.pairs, rtol=1e-9, atol=1e-8)
    assert np.isfinite(at_once.logs).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    x=st.floats(0, 1),
    sizes=st.sampled_from([(2,), (3, 2), (2, 2, 2)]),
)
def test_the_mean_of_a_factor_is_at_most_one_where_the_level_is_best(
    seed: int, x: float, sizes: tuple[int, ...]
) -> None:
    """The proof in numbers: all arms give x, or the best level of side 0 a little more."""
    plan, rng = Design(sizes), np.random.default_rng(seed)
    version = version_of(plan, seed)
    best = int(rng.integers(sizes[0]))
    total = np.zeros_like(design.start(plan).logs)
    for arm in range(plan.grid.arms):
        levels = plan.grid.levels(arm)
        chance = math.prod(
            float(side[level]) for side, level in zip(version.shares, levels, strict=True)
        )
        reward = min(1.0, x + 0.1 * (levels[0] == best))
        counts = Counts.of([(1, arm, reward, 1)])
        total += chance * np.exp(design.fold(plan, design.start(plan), {1: version}, counts).logs)
    assert total[best].max() <= 1 + 1e-9


def test_equal_rows_are_added_up() -> None:
    plan = Design([3], high=9.0)
    versions = {0: design.first_version(plan), 1: version_of(plan, 1)}
    rng = np.random.default_rng(1)
    for rewards in ([0.0, 9.0], [2.0], [0.0, 4.0, 9.0]):
        rows = [
            (int(rng.integers(2)), int(rng.integers(3)), float(rng.choice(rewards)), 2)
            for _ in range(300)
        ]
        merged = checked_counts(plan, versions, Counts.of(rows))
        expected: dict[tuple[int, int, float], int] = {}
        for version, arm, reward, pulls in rows:
            expected[version, arm, reward] = expected.get((version, arm, reward), 0) + pulls
        found = zip(*(column.tolist() for column in merged[:4]), strict=True)
        assert {(v, a, x): n for v, a, x, n in found} == expected


def test_extremes_are_finite() -> None:
    """Rates of 10⁻⁵, 10⁹ pulls, arms never drawn, shares of 10⁻⁶."""
    plan = Design([3, 2])
    shares = np.array([1 - 2e-6, 1e-6, 1e-6]), np.array([0.5, 0.5])
    versions = {0: design.first_version(plan)}
    first = Counts.of([(0, 0, 1.0, 3 * 10**3), (0, 0, 0.0, 3 * 10**8), (0, 3, 0.0, 10**8)])
    wealth = design.fold(plan, design.start(plan), versions, first)
    seen = design.totals(plan, versions, first)
    versions[1] = design.next_version(plan, versions[0], wealth, seen)
    assert versions[1].fit[0][0] * versions[1].fit[1][0] == pytest.approx(1e-5, rel=0.1)
    versions[1] = Version(1, shares, *list(vars(versions[1]).values())[2:])
    more = Counts.of([(1, 0, 1.0, 10**4), (1, 0, 0.0, 10**9), (1, 2, 1.0, 5), (1, 2, 0.0, 10**3)])
    wealth = design.fold(plan, wealth, versions, more)
    assert np.isfinite(wealth.logs).all()
    after = design.next_version(plan, versions[1], wealth, design.totals(plan, versions, more))
    assert sum(side.sum() for side in after.shares) == pytest.approx(2)
    for ends in design.lifts(plan, versions, more, wealth):
        assert not np.isnan(ends).any()


def test_sides_of_thousands_of_levels() -> None:
    plan = Design([4096])
    counts = Counts.of([(0, arm, float(arm == 7), 1) for arm in range(4096)])
    versions = {0: design.first_version(plan)}
    seen = design.totals(plan, versions, counts)
    after = design.next_version(plan, versions[0], design.start(plan), seen)
    assert after.leaders == (7,)
    assert after.shares[0][7] == pytest.approx(1 / (1 + math.sqrt(4095)))
    assert after.shares[0].sum() == pytest.approx(1)


def test_fixed_shares_and_floors() -> None:
    plan = Design([4, 2], floor=0.05, fixed={(0, 1): 0.3})
    version = design.first_version(plan)
    counts = Counts.of([(0, arm, float(arm < 2), 50) for arm in range(8)])
    for _ in range(3):
        assert version.shares[0][1] == pytest.approx(0.3)
        assert min(side.min() for side in version.shares) >= 0.05 - 1e-12
        for side in version.shares:
            assert side.sum() == pytest.approx(1)
        seen = design.totals(plan, {0: design.first_version(plan)}, counts)
        version = design.next_version(plan, version, design.start(plan), seen)
    assert version.leaders[0] == 0


def test_any_grid_from_the_same_draws() -> None:
    """Two peaks: bets on arms, with the products of the shares, refute all but the best arm."""
    problem = rank1.Means([[0.9, 0.1], [0.1, 0.3]])
    _, rows = run_of(rank1.BetElim(floor=0.2, growth=0.1), problem, 1500, 1)
    plan = Design(problem.grid, floor=0.2, growth=0.1)
    versions, _ = history(plan, rows)
    arms = design.any_grid(plan)
    table = Counts.of(rows)
    flat, wealth = {}, design.start(arms)
    for number, version in versions.items():
        before = Counts.of([row for row in rows if row[0] < number])
        seen = design.totals(plan, versions, before)
        sums = np.bincount(before.arm, before.reward, problem.arms).astype(np.float64)
        flat[number] = design.flattened(plan, version, seen, sums)
    wealth = design.fold(arms, wealth, flat, table)
    said = design.verdict(arms, flat[max(flat)], wealth)
    assert said.stop
    assert said.leaders == (0,)


def refusals() -> list[tuple[str, Any]]:
    plan = Design([2, 2])
    versions = {0: design.first_version(plan)}
    half = (np.array([0.5, 0.5]),) * 2
    one_sided = Version(1, (np.array([1.0, 0.0]), half[1]), (0, 0), half, versions[0].living)
    short = Version(1, (np.array([0.5, 0.4]), half[1]), (0, 0), half, versions[0].living)

    def fold(rows: list[tuple[float, ...]], more: Version | None = None) -> Any:
        known = versions | ({1: more} if more else {})
        return lambda: design.fold(plan, design.start(plan), known, Counts.of(rows))

    return [
        (r"reward must be a number in \[0, 1\], got 1.5", fold([(0, 0, 1.5, 1)])),
        (r"reward must be a number in \[0, 1\], got nan", fold([(0, 0, math.nan, 1)])),
        (r"version must be one of the versions known \(0\), got 3", fold([(3, 0, 1.0, 1)])),
        ("arm must be in 0 … 3, got 4", fold([(0, 4, 1.0, 1)])),
        ("pulls must be a number of at least 0, got -1", fold([(0, 0, 1.0, -1)])),
        ("pulls must be a number of at least 0, got nan", fold([(0, 0, 1.0, math.nan)])),
        ("arm must be one that version 1 draws, .* got 3", fold([(1, 3, 1.0, 1)], one_sided)),
        (
            "shares of side 0 in version 1 must be .* add up to 1, got 0.9",
            fold([(1, 0, 1.0, 1)], short),
        ),
        ("confidence must be a number above 0 and below 1, got 1", lambda: Design([2], 1)),
        ("confidence must be a number above 0 and below 1, got 0", lambda: Design([2], 0)),
        ("floor must be below 1/3, .* got 0.34", lambda: Design([3], floor=0.34)),
        (
            r"fixed must be less than 1 on side 0",
            lambda: Design([2], fixed={(0, 0): 0.9}, floor=0.2),
        ),
        ("high must be a number above 2, got 1", lambda: Design([2], low=2, high=1)),
    ]


@pytest.mark.parametrize(("message", "call"), refusals(), ids=[text for text, _ in refusals()])
def test_bad_input_is_refused(message: str, call: Any) -> None:
    with pytest.raises(rank1.InputError, match=message):
        call()
