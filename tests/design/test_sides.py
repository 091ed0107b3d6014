"""Sides that are given, levels that are retired or added later, and the verdict on any grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import design
from rank1.design import Counts, Design, Totals, Version
from tests.design.playing import play

pytestmark = pytest.mark.uncompiled

SEGMENTS = np.array([0.9, 0.5, 0.2])
CHANNELS = np.array([0.4, 0.8, 0.5, 0.4])
MEANS = np.multiply.outer(SEGMENTS, CHANNELS)
LIVING = (np.ones(2, np.bool_),) * 2
TRAFFIC = [np.array([0.1, 0.3, 0.6])]


def test_a_side_that_is_given_is_never_bet_on() -> None:
    plan = Design([3, 4], given=[0], growth=0.1)
    found = play(plan, MEANS, 20_000, 1, TRAFFIC)
    assert found.verdict.stop
    assert found.verdict.leaders == (-1, 1)
    assert found.verdict.living[0].all()
    assert found.verdict.living[1].tolist() == [False, True, False, False]
    assert (found.wealth.logs[:3] == 0).all()
    last = found.versions[max(found.versions)]
    assert all(version.leaders[0] == -1 for version in found.versions.values())
    assert last.shares[0].tolist() == [1 / 3] * 3
    # Its factors are fitted all the same: those of the traffic that came.
    ratio = last.fit[0] / last.fit[0][0]
    np.testing.assert_allclose(ratio, SEGMENTS / 0.9, rtol=0.25)


def test_the_threshold_counts_sides_that_are_chosen() -> None:
    assert Design([3, 4], given=[0]).threshold == Design([4]).threshold
    assert Design([3, 4, 2, 1], given=[2]).threshold == Design([3, 4]).threshold


def test_wealth_is_as_if_the_factor_of_the_segment_were_known() -> None:
    """A given side only scales m: with equal factors it makes no difference at all."""
    plan, alone = Design([2, 3], given=[0]), Design([3])
    third, fit = np.full(3, 1 / 3), np.array([0.5, 0.4, 0.3])
    living = np.ones(2, np.bool_), np.ones(3, np.bool_)
    version = Version(1, (np.full(2, 0.5), third), (-1, 0), (np.ones(2), fit), living)
    own = Version(1, (third,), (0,), (fit,), living[1:])
    rows = [(1, segment * 3 + k, float(x), 5 + k + x) for segment in (0, 1) for k in range(3)
            for x in (0, 1)]  # fmt: skip
    found = design.fold(plan, design.start(plan), {1: version}, Counts.of(rows))
    single = Counts.of([(1, arm % 3, x, n) for _, arm, x, n in rows])
    expected = design.fold(alone, design.start(alone), {1: own}, single)
    np.testing.assert_allclose(found.logs[2:], expected.logs)
    # A factor of 1/2 in one segment halves m there.
    halved = Version(1, version.shares, (-1, 0), (np.array([1.0, 0.5]), fit), living)
    other = design.fold(plan, design.start(plan), {1: halved}, Counts.of(rows[6:]))
    half = Version(1, (third,), (0,), (fit / 2,), living[1:])
    expected = design.fold(alone, design.start(alone), {1: half}, Counts.of([
        (1, arm % 3, x, n) for _, arm, x, n in rows[6:]
    ]))  # fmt: skip
    np.testing.assert_allclose(other.logs[2:], expected.logs)


@pytest.mark.parametrize(("given", "order"), [([1], (1, 0, 2)), ([0, 2], (0, 2, 1))])
def test_any_grid_keeps_sides_that_are_given(given: list[int], order: tuple[int, ...]) -> None:
    plan = Design([2, 3, 4], given=given, growth=0.2)
    arms = design.any_grid(plan)
    means = np.full((2, 3, 4), 0.2)
    means[1, 2, 3] = 0.9
    every = np.arange(24)
    moved = means.transpose(order).ravel()
    np.testing.assert_array_equal(moved[design.flat_arms(plan, every)], means.ravel())
    assert arms.given == tuple(range(len(given)))
    found = play(plan, means, 2000, 2)
    sums = found.sums
    flat = design.flattened(plan, found.versions[max(found.versions)], found.seen, sums)
    design.values.checked_version(arms, flat)
    chosen = [side for side in order if side not in given]
    best = np.ravel_multi_index(
        [(1, 2, 3)[side] for side in chosen], [plan.sizes[side] for side in chosen]
    )
    assert flat.leaders == (-1,) * len(given) + (best,)
    moved_counts = found.counts._replace(arm=design.flat_arms(plan, found.counts.arm))
    versions = {
        number: design.flattened(plan, version, found.seen, sums)
        for number, version in found.versions.items()
    }
    wealth = design.fold(arms, design.start(arms), versions, moved_counts)
    assert (wealth.logs[: -arms.sizes[-1]] == 0).all()
    assert design.verdict(arms, flat, wealth).log_e[-1].max() > 3


def test_any_grid_with_a_given_side_of_one_level_is_any_grid() -> None:
    plan, with_one = Design([2, 3]), Design([1, 2, 3], given=[0])
    found = play(plan, np.multiply.outer([0.8, 0.5], [0.9, 0.6, 0.5]), 1500, 3)
    sums = found.sums
    number = max(found.versions)
    flat = design.flattened(plan, found.versions[number], found.seen, sums)
    ones = (np.ones(1),)
    more = found.versions[number]
    longer = Version(
        number, ones + more.shares, (-1, *more.leaders), ones + more.fit,
        (np.ones(1, np.bool_), *more.living),
    )  # fmt: skip
    seen = Totals(found.seen.counts, np.append(sums.sum(), found.seen.sums))
    same = design.flattened(with_one, longer, seen, sums)
    assert same.leaders[1:] == flat.leaders
    np.testing.assert_allclose(same.shares[1], flat.shares[0])
    np.testing.assert_allclose(
        same.fit[1] / same.fit[1].max(), flat.fit[0] / flat.fit[0].max(), rtol=0.02
    )


def test_a_level_that_is_retired_has_no_share_for_good() -> None:
    means = np.array([0.9, 0.5, 0.4])
    before = Design([3], floor=0.1)
    found = play(before, means, 300, 1, until_stop=False)
    last = found.versions[max(found.versions)]
    plan = before.changed(retired=[(0, 0)])
    gone = Version(last.number, last.shares, last.leaders, last.fit, (means > 0.8,))
    with pytest.raises(rank1.InputError, match=r"side with a living level.*restarted"):
        design.next_version(plan, gone, found.wealth, found.seen)
    version, wealth = design.restarted(plan, last, found.wealth, 0)
    assert (wealth.logs == 0).all()
    for _ in range(3):
        version = design.next_version(plan, version, wealth, found.seen)
        assert version.shares[0][0] == 0
        assert version.shares[0].sum() == pytest.approx(1)
        assert version.shares[0][1:].min() >= 0.1 - 1e-12
        assert version.leaders == (1,)
        assert version.living[0].tolist() == [False, True, True]
    # The best of those that are left is found, and the one that is retired is no reason to go on.
    again = play(plan, means, 10_000, 2)
    assert again.verdict.stop
    assert again.verdict.leaders == (1,)
    assert not (again.counts.arm == 0).any()


def test_retiring_on_any_grid() -> None:
    plan = Design([2, 2], retired=[(0, 1)])
    version = design.next_version(
        plan, design.first_version(plan), design.start(plan), Totals(np.ones(4), np.ones(4))
    )
    flat = design.flattened(plan, version, Totals(np.ones(4), np.ones(4)), np.ones(4))
    assert flat.living[0].tolist() == [True, True, False, False]


def test_restricted_levels_never_come_back() -> None:
    plan = Design([3, 2])
    found = play(plan, np.multiply.outer([0.5, 0.5, 0.9], [0.5, 0.5]), 250, 1)
    last = found.versions[max(found.versions)]
    living = (np.array([True, True, False]), last.living[1])
    only = Version(last.number, last.shares, last.leaders, last.fit, living)
    after = design.next_version(plan, only, design.start(plan), found.seen)
    assert after.living[0].tolist() == [True, True, False]
    assert after.leaders[0] < 2
    assert after.shares[0][2] == 0


@pytest.mark.parametrize("min_lift", [0.0, 0.1])
def test_levels_that_are_added(min_lift: float) -> None:
    plan = Design([2, 2], min_lift=min_lift)
    found = play(plan, np.multiply.outer([0.8, 0.6], [0.7, 0.6]), 400, 1, until_stop=False)
    number, sizes = max(found.versions), (3, 2)
    later = plan.changed(sizes)
    version = design.padded(found.versions[number], sizes)
    wealth = design.padded_wealth(plan, found.wealth, sizes)
    seen = design.padded_totals(plan, found.seen, sizes)
    design.values.checked_version(later, version)
    assert version.shares[0][2] == 0
    assert version.fit[0][2] == pytest.approx(version.fit[0][:2].mean())
    assert version.living[0][2]
    np.testing.assert_array_equal(wealth.logs[[0, 1, 3, 4]], found.wealth.logs)
    assert (wealth.logs[2] == 0).all()
    # What was known is known: the same reports under both designs win the same.
    old = Counts.of([(number, arm, float(arm % 2), 7) for arm in range(4)])
    arms = np.ravel_multi_index(np.unravel_index(old.arm, plan.sizes), sizes)
    before = design.fold(plan, found.wealth, found.versions, old)
    after = design.fold(later, wealth, {number: version}, old._replace(arm=arms))
    np.testing.assert_allclose(after.logs[[0, 1, 3, 4]], before.logs)
    expected = design.padded_wealth(plan, before, sizes)
    np.testing.assert_allclose(after.pairs, expected.pairs)
    np.testing.assert_array_equal(after.slots, expected.slots)
    # From the next version on it is drawn, and it may lead.
    next_one = design.next_version(later, version, wealth, seen)
    assert next_one.shares[0][2] > 0.05
    assert seen.counts.sum() == found.seen.counts.sum()
    with pytest.raises(rank1.InputError, match=r"sizes must be at least \(2, 2\)"):
        design.padded(found.versions[number], (1, 2))


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("given must be sides in 0 … 1, got 2", lambda: Design([2, 2], given=[2])),
        ("given must be fewer sides: at least one must be chosen",
         lambda: Design([2, 2], given=[0, 1])),
        ("fixed must be a level of a side that is chosen",
         lambda: Design([2, 2], given=[0], fixed={(0, 1): 0.1})),
        ("retired must be a level of a side that is chosen", lambda: Design([2], retired=[(0, 2)])),
        ("retired must be fewer levels: at least one must remain on each side",
         lambda: Design([2], retired=[(0, 0), (0, 1)])),
        ("leader of side 0 in version 1 must be -1 for a given side, got 0",
         lambda: design.values.checked_version(
             Design([2, 2], given=[0]),
             Version(1, (np.full(2, 0.5),) * 2, (0, 0), (np.ones(2),) * 2, LIVING))),
    ],
)  # fmt: skip
def test_what_is_refused(message: str, call: Any) -> None:
    with pytest.raises(rank1.InputError, match=message):
        call()
