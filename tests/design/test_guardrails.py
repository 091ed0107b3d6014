"""Levels that harm are found, and those that don't hardly ever."""

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

pytestmark = pytest.mark.uncompiled


def table(rng: Any, versions: dict[int, Version], harm: Any, reports: int) -> Counts:
    """As many reports under each version."""
    rows = []
    for number, version in versions.items():
        shares = version.shares[0]
        for level, pulls in enumerate(rng.multinomial(reports, shares)):
            ones = int(rng.binomial(pulls, harm[level]))
            rows += [(number, level, 1.0, ones), (number, level, 0.0, int(pulls) - ones)]
    return Counts.of([row for row in rows if row[3]])


def some_versions(plan: Design, rng: Any, number: int) -> dict[int, Version]:
    first = design.first_version(plan)
    made = {0: first}
    for k in range(1, number):
        shares = tuple(rng.dirichlet(np.full(size, 3.0)) for size in plan.sizes)
        made[k] = Version(k, shares, (0,) * len(plan.sizes), first.fit, first.living)
    return made


@given(
    seed=st.integers(0, 10**6),
    worse_by=st.floats(0, 0.5),
    g=st.floats(0, 0.5),
    late=st.booleans(),
)
def test_the_mean_of_a_factor_is_at_most_one_at_the_margin(
    seed: int, worse_by: float, g: float, late: bool
) -> None:
    """The proof in numbers, after some history: level 1 is worse by exactly the margin."""
    plan, rng = Design([3]), np.random.default_rng(seed)
    versions = some_versions(plan, rng, 3)
    past = [(0, k, float(x), int(rng.integers(1, 9))) for k in range(3) for x in (0, 1)]
    before = design.harmful(plan, versions, Counts.of(past), (0,), worse_by)[0][1]
    means, total = [g, g + worse_by, 0.3], 0.0
    for level in range(3):
        more = [(*row, 0) for row in past] + [(1, level, means[level], 1, 2 if late else 1)]
        after = design.harmful(plan, versions, Counts.of(more), (0,), worse_by)[0][1]
        total += versions[1].shares[0][level] * math.exp(after - before)
    assert total <= 1 + 1e-9


def test_levels_at_the_margin_are_hardly_ever_called_harmful() -> None:
    """400 runs at α = 0.1 of a level at the margin, with a look after each of eight versions."""
    plan = Design([2], 0.9)
    dropped, bar = 0, design.harm_threshold(plan)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        versions = some_versions(plan, rng, 8)
        counts = table(rng, versions, [0.05, 0.07], 150)
        dropped += any(
            design.harmful(plan, versions, counts.take(counts.version <= last), (0,), 0.02)[0][1]
            >= bar
            for last in (1, 3, 7)
        )
    assert dropped <= 40 + 3 * math.sqrt(400 * 0.1 * 0.9)


def test_a_level_that_harms_is_found() -> None:
    """8% against 3%, where 2 points are allowed, is found in 36 of 40 runs of 8,000 visitors."""
    plan, found, spared = Design([3]), 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        versions = some_versions(plan, rng, 40)
        counts = table(rng, versions, [0.03, 0.08, 0.03], 200)
        evidence = design.harmful(plan, versions, counts, (0,), 0.02)[0]
        assert evidence[0] == 0
        found += evidence[1] >= design.harm_threshold(plan)
        spared += evidence[2] < 0
    assert found >= 36
    assert spared >= 36


def test_sides_are_looked_at_one_by_one_and_given_ones_not_at_all() -> None:
    plan, rng = Design([2, 3, 2], given=[2], low=-5, high=70), np.random.default_rng(1)
    versions = {0: design.first_version(plan)}
    harm = np.full((2, 3, 2), 0.03)
    harm[:, 2] = 0.15
    arms = rng.integers(12, size=6000)
    hit = (rng.random(6000) < harm.ravel()[arms]).astype(float)
    counts = Counts(np.zeros(6000, np.int64), arms, hit, np.ones(6000))
    sides = design.harmful(plan, versions, counts, (0, 0, -1), 0.02)
    bar = design.harm_threshold(plan)
    assert bar == pytest.approx(math.log(3 / 0.05))
    assert [(side >= bar).tolist() for side in sides] == [
        [False, False], [False, False, True], [False, False]
    ]  # fmt: skip
    assert (sides[2] == 0).all()


def test_a_level_that_isnt_drawn_beside_the_control_has_no_evidence() -> None:
    plan = Design([2])
    first = design.first_version(plan)
    only = Version(1, (np.array([0.0, 1.0]),), (1,), first.fit, first.living)
    counts = Counts.of([(1, 1, 1.0, 500)])
    assert design.harmful(plan, {1: only}, counts, (0,), 0.0)[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("message", "control", "worse_by", "value"),
    [
        ("worse_by must be a number of at least 0 and below 1, got 1", (0,), 1, 0.0),
        ("control must be 1 levels, one for each side", (0, 0), 0.1, 0.0),
        (r"control\[0\] must be a level in 0 … 1, got 2", (2,), 0.1, 0.0),
        (r"reward must be a number in \[0, 1\], got 1.5", (0,), 0.1, 1.5),
    ],
)
def test_what_is_refused(message: str, control: Any, worse_by: float, value: float) -> None:
    plan = Design([2], high=500)
    versions = {0: design.first_version(plan)}
    with pytest.raises(rank1.InputError, match=message):
        design.harmful(plan, versions, Counts.of([(0, 0, value, 1)]), control, worse_by)
