"""Rewards on a grid of values, and reports that come late."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rank1
from rank1 import design
from rank1.design import Counts, Design, Version
from rank1.design.counts import checked_counts

pytestmark = pytest.mark.uncompiled


def versions_of(plan: Design, number: int, seed: int) -> dict[int, Version]:
    """Some versions; nothing is bet under the first."""
    rng, made = np.random.default_rng(seed), {0: design.first_version(plan)}
    for k in range(1, number):
        shares = tuple(rng.dirichlet(np.ones(size)) for size in plan.sizes)
        fit = tuple(rng.uniform(0.2, 0.9, size) for size in plan.sizes)
        leaders = tuple(int(rng.integers(size)) for size in plan.sizes)
        made[k] = Version(k, shares, leaders, fit, made[0].living)
    return made


@given(
    rewards=st.lists(st.floats(-3, 500), min_size=1, max_size=30),
    seed=st.integers(0, 1000),
)
def test_a_grid_of_values_can_only_lose_wealth(rewards: list[float], seed: int) -> None:
    plan = Design([3, 2], low=-3, high=500, min_lift=0.1)
    rng, versions = np.random.default_rng(seed), versions_of(plan, 2, seed)
    counts = Counts.of([(1, int(rng.integers(6)), x, 1 + k) for k, x in enumerate(rewards)])
    split = design.gridded(plan, counts)
    exact = design.fold(plan, design.start(plan), versions, counts)
    found = design.fold(plan, design.start(plan), versions, split)
    assert (found.logs <= exact.logs + 1e-9).all()
    assert (found.pairs <= exact.pairs + 1e-9).all()
    # Reports and sums are as they were, arm by arm.
    whole, parts = (design.totals(plan, versions, table) for table in (counts, split))
    np.testing.assert_allclose(parts.counts, whole.counts)
    np.testing.assert_allclose(parts.sums, whole.sums, atol=1e-9)
    steps = (split.reward + 3) / 503 * 128
    np.testing.assert_allclose(steps, steps.round(), atol=1e-9)
    # And again, nothing changes.
    again = design.gridded(plan, split)
    np.testing.assert_allclose(
        design.fold(plan, design.start(plan), versions, again).logs, found.logs, atol=1e-6
    )


def test_counts_on_the_grid_are_bounded_and_wealth_hardly_changes() -> None:
    plan, rng = Design([2], high=500), np.random.default_rng(1)
    versions = versions_of(plan, 2, 1)
    buys = rng.random(20_000) < 0.1
    rewards = np.minimum(buys * rng.gamma(2, 30, 20_000), 500)
    ones = np.ones(20_000, np.int64)
    counts = Counts(ones, rng.integers(2, size=20_000), rewards, ones)
    split = checked_counts(plan, versions, design.gridded(plan, counts))
    assert len(split.arm) <= 2 * 129
    exact = design.fold(plan, design.start(plan), versions, counts)
    found = design.fold(plan, design.start(plan), versions, split)
    np.testing.assert_allclose(found.logs, exact.logs, rtol=0.02, atol=0.05)


def test_zeros_and_ones_stay_as_they_are() -> None:
    plan = Design([2])
    counts = Counts.of([(0, 0, 1.0, 3), (0, 1, 0.0, 4)])
    split = design.gridded(plan, counts)
    assert split.reward.tolist() == [0.0, 1.0]
    assert split.pulls.tolist() == [4, 3]


def test_late_reports_use_their_own_shares_and_the_fit_of_their_arrival() -> None:
    """As one version for each group, which the parameter `under` of fold can say as well."""
    plan, rng = Design([3, 2], min_lift=0.1), np.random.default_rng(5)
    versions = versions_of(plan, 6, 5)
    rows = []
    for _ in range(60):
        own = int(rng.integers(6))
        later = int(rng.integers(own, 6))
        rows.append((own, int(rng.integers(6)), float(rng.integers(2)), 3, later))
    found = design.fold(plan, design.start(plan), versions, Counts.of(rows))
    expected = design.start(plan)
    for *row, later in rows:
        expected = design.fold(
            plan, expected, versions, Counts.of([tuple(row)]), under=versions[later]
        )
    np.testing.assert_allclose(found.logs, expected.logs, atol=1e-9)
    # Slots are given in the order of the versions here, and in that of the rows there.
    assert found.pairs.sum() == pytest.approx(expected.pairs.sum())
    own_only = design.fold(plan, design.start(plan), versions, Counts.of([row[:4] for row in rows]))
    assert not np.allclose(found.logs, own_only.logs)


def test_nothing_is_bet_on_reports_that_came_under_the_first_version() -> None:
    plan = Design([2])
    versions = versions_of(plan, 3, 1)
    start = design.start(plan)
    none = design.fold(plan, start, versions, Counts.of([(0, 0, 1.0, 5, 0)]))
    some = design.fold(plan, start, versions, Counts.of([(0, 0, 1.0, 5, 2)]))
    assert (none.logs == 0).all()
    assert (some.logs != 0).any()


@pytest.mark.parametrize(
    ("message", "row"),
    [
        ("under must be one of the versions known .0, 1, 2., got 7", (1, 0, 1.0, 1, 7)),
        ("under must be the version of the pull, or a later one, got 1", (2, 0, 1.0, 1, 1)),
        ("version must be a whole number, got 1.5", (1.5, 0, 1.0, 1)),
        ("arm must be a whole number, got nan", (1, math.nan, 1.0, 1)),
    ],
)
def test_what_is_refused(message: str, row: Any) -> None:
    plan = Design([2])
    columns: Any = ([value] for value in row)
    with pytest.raises(rank1.InputError, match=message):
        design.fold(plan, design.start(plan), versions_of(plan, 3, 1), Counts(*columns))


@pytest.mark.parametrize("reward", [-0.5, 1.5, math.nan])
def test_the_grid_refuses_what_is_outside(reward: float) -> None:
    with pytest.raises(rank1.InputError, match=r"reward must be a number in \[0, 1\]"):
        design.gridded(Design([2]), Counts.of([(0, 0, reward, 1)]))
