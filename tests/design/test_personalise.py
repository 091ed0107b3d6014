"""Whether another level is best in another segment."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rank1
from rank1 import design
from rank1.design import Counts, Design, Version
from rank1.design.personalisation import Personalised
from tests.design.playing import Played, play

CROSSING = np.full((6, 3), 0.10)
CROSSING[np.arange(6), np.arange(6) % 3] = 0.13


def decided(plan: Design, found: Played, last: int) -> Personalised:
    """As it was said when a version began."""
    versions = {number: version for number, version in found.versions.items() if number <= last}
    counts = found.counts.take(found.counts.version < last)
    return design.personalise(plan, versions, counts, side=1, by=0)


@pytest.mark.uncompiled
def test_segments_that_differ_are_found() -> None:
    plan = Design([2, 2, 2], given=[0], growth=0.1, floor=0.1)
    means = np.zeros((2, 2, 2))
    means[:] = np.array([[0.5, 0.3], [0.3, 0.5]])[:, :, None] * [0.9, 0.6]
    found = play(plan, means, 4000, 1, until_stop=False)
    said = design.personalise(plan, found.versions, found.counts, side=1, by=0)
    assert said.pays
    assert said.rejected.all()
    assert said.leaders.tolist() == [0, 1]
    assert said.segments == (1 - said.common,)
    assert said.log_e.min() > math.log(20)
    gain = design.gain(plan, found.versions, found.counts, side=1, by=0)
    assert gain.low < 0.25 < gain.high
    assert gain.estimate == pytest.approx(0.25, abs=0.1)
    # The other side is the same in both segments, and chosen ones may be segments, too.
    other = design.personalise(plan, found.versions, found.counts, side=2, by=1)
    assert not other.pays
    assert other.common == 0
    assert (design.gain(plan, found.versions, found.counts, side=2, by=1).low) < 0.05


@pytest.mark.uncompiled
def test_the_wealth_is_what_the_page_says() -> None:
    """Two versions, late reports and three segments, one report after another."""
    plan, rng = Design([3, 2, 2], given=[0]), np.random.default_rng(3)
    first = design.first_version(plan)
    versions = {0: first}
    for number in (1, 2):
        shares = (first.shares[0], *(rng.dirichlet([3, 3]) for _ in range(2)))
        fit = tuple(rng.uniform(0.3, 0.9, size) for size in plan.sizes)
        versions[number] = Version(number, shares, (-1, 0, 1), fit, first.living)
    rows = []
    for _ in range(80):
        own = int(rng.integers(0, 3))
        reward = float(rng.integers(2))
        rows.append((own, int(rng.integers(12)), reward, 2, int(rng.integers(own, 3))))
    said = design.personalise(plan, versions, Counts.of(rows), side=1, by=0)
    sums, exposed = np.zeros((3, 2)), np.zeros((3, 2))
    logs = np.zeros((6, 2, 3))
    for under in range(3):
        by, arrived = versions[under], [row for row in rows if row[4] == under]
        means = (sums + 2) / (exposed + 2 / np.multiply.outer(by.fit[0], by.fit[1]))
        for own, arm, x, n, _ in arrived:
            i, level = arm // 4, arm // 2 % 2
            m_others = float(by.fit[2] @ versions[own].shares[2])
            a = int(means[i].argmax())
            rival = 1 - a
            if under:
                rho = float(versions[own].shares[1][rival])
                m = ((1 - rho) * means[i, a] + rho * means[i, rival]) * m_others
                m = min(max(m, 1e-4), 0.99)
                for k, kappa in enumerate(plan.kappas):
                    c = min(kappa / (1 - m), 0.95 / (rho * m), 0.95 / ((1 - rho) * (1 - m)))
                    part = rho if level == a else rho - 1
                    logs[k, rival, i] += n * math.log1p(c * part * (x - m))
        for own, arm, x, n, _ in arrived:
            i, level = arm // 4, arm // 2 % 2
            sums[i, level] += n * x
            exposed[i, level] += n * float(by.fit[2] @ versions[own].shares[2])
    expected = np.log(np.exp(logs).mean(axis=0))
    np.testing.assert_allclose(said.by_segment, expected, atol=1e-9)
    product = np.log(0.5 + 0.5 * np.exp(expected)).sum(axis=1)
    np.testing.assert_allclose(said.log_e, product, atol=1e-9)


@pytest.mark.uncompiled
def test_many_segments_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Design([6, 3], given=[0], growth=0.3, floor=0.05)
    found = play(plan, CROSSING * 3, 4000, 1, until_stop=False)
    arguments = plan, found.versions, found.counts, 1, 0
    at_once = design.personalise(*arguments)
    monkeypatch.setitem(design.personalise.__globals__, "ROOM", 1)
    one_by_one = design.personalise(*arguments)
    np.testing.assert_allclose(at_once.log_e, one_by_one.log_e)
    np.testing.assert_allclose(at_once.by_segment, one_by_one.by_segment)
    assert at_once.leaders.tolist() == one_by_one.leaders.tolist()


@pytest.mark.uncompiled
def test_where_one_level_is_best_for_all_it_hardly_ever_pays() -> None:
    """60 runs at α = 0.3 on near ties of rank one: more than 28 would be three errors off."""
    plan = Design([2, 2], 0.7, given=[0], growth=0.5, floor=0.2)
    means, alarms = np.multiply.outer([0.6, 0.4], [0.51, 0.5]), 0
    for seed in range(60):
        found = play(plan, means, 1500, seed, until_stop=False)
        alarms += design.personalise(plan, found.versions, found.counts, 1, 0).pays
    assert alarms <= 28


@pytest.mark.validate
def test_how_long_it_takes_on_the_crossing_grid() -> None:
    """40 runs with a floor of 5%: all decide, after 35,000 visitors on average at most."""
    plan, visitors = Design([6, 3], given=[0], floor=0.05), []
    for seed in range(40):
        found = play(plan, CROSSING, 80_000, seed, until_stop=False)
        assert decided(plan, found, max(found.versions)).pays
        low, high = 1, max(found.versions)
        while low < high:  # once it pays, it pays
            middle = (low + high) // 2
            if decided(plan, found, middle).pays:
                high = middle
            else:
                low = middle + 1
        visitors.append(found.counts.pulls[found.counts.version < low].sum())
    assert np.mean(visitors) <= 35_000


@pytest.mark.validate
def test_false_alarms_on_rank_one() -> None:
    """200 runs of a rank-one grid with a near tie at α = 0.05; three errors more are allowed."""
    plan = Design([4, 3], given=[0], growth=0.2, floor=0.1)
    means = np.multiply.outer([0.6, 0.3, 0.2, 0.1], [0.5, 0.49, 0.3])
    alarms = 0
    for seed in range(200):
        found = play(plan, means, 5000, seed, until_stop=False)
        alarms += design.personalise(plan, found.versions, found.counts, 1, 0).pays
    assert alarms <= 10 + 3 * math.sqrt(200 * 0.05 * 0.95)


@pytest.mark.parametrize(
    ("message", "side", "by"),
    [
        ("side must be a side that is chosen, got 0", 0, 1),
        ("by must be another side than 1, got 1", 1, 1),
        ("by must be another side than 1, got 5", 1, 5),
    ],
)
def test_what_is_refused(message: str, side: int, by: int) -> None:
    plan = Design([2, 2], given=[0])
    versions = {0: design.first_version(plan)}
    with pytest.raises(rank1.InputError, match=message):
        design.personalise(plan, versions, Counts.of([]), side, by)


def test_without_reports_nothing_is_said() -> None:
    plan = Design([2, 3], given=[0])
    versions = {0: design.first_version(plan)}
    said = design.personalise(plan, versions, Counts.of([]), 1, 0)
    assert not said.pays
    assert said.log_e.tolist() == [0, 0, 0]
    assert design.gain(plan, versions, Counts.of([]), 1, 0).estimate == 0
