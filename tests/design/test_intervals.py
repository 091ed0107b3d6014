"""Intervals for lifts: valid at any time, never at odds with the verdict, and nearly exact."""

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
from rank1.design.bets import clipped
from rank1.design.ratios import ORDER, RATIOS, History, _add, _log_e, _polynomials
from tests.design.playing import play

pytestmark = pytest.mark.uncompiled


def exact_log_e(plan: Design, history: History, side: int, a: int, rival: int, s: float) -> float:
    """The wealth of bets against "the rival is at least s times as good as a", report by report."""
    every, others = history.shown(side)
    top = max(1.0, plan.kappas[-1])
    logs = np.zeros(len(plan.kappas))
    levels = history.rows.arm // plan.grid.strides[side] % plan.sizes[side]
    for pair, level, x, n in zip(
        history.pair, levels, plan.scaled(history.rows.reward), history.rows.pulls, strict=True
    ):
        r_a, r_l = every.shares[pair, a], every.shares[pair, rival]
        if level not in (a, rival) or r_a == 0 or r_l == 0:
            continue
        rho, m = r_l / (r_a + r_l), clipped(every.fit[pair, rival] * others[pair, 0])
        most = max(rho * m, (1 - rho) * (1 - m))
        part = rho * (s * x - m) if level == a else (rho - 1) * (x - m)
        for k, eta in enumerate(np.minimum(plan.kappas / top, 0.95)):
            logs[k] += n * math.log1p(eta * min(top / (1 - m), 1 / most) * part)
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def bound(plan: Design, history: History, side: int, a: int, s: float) -> Any:
    """The polynomial's value for each level."""
    every, others = history.shown(side)
    sums, lost = np.zeros((ORDER + 1, ORDER + 1, plan.sizes[side])), np.zeros(plan.sizes[side])
    top = max(1.0, float(plan.kappas[-1]))
    _add(every.take(np.s_[:, a : a + 1]), every, others, top, sums, lost)
    return _log_e(_polynomials(sums, lost, np.minimum(plan.kappas / top, 0.95)), np.array(s))


@given(
    seed=st.integers(0, 10**6),
    s=st.floats(0.05, 20),
    high=st.sampled_from([1.0, 50.0]),
    given_side=st.booleans(),
)
def test_the_polynomial_is_below_the_log_wealth(
    seed: int, s: float, high: float, given_side: bool
) -> None:
    plan = Design([3, 2], high=high, given=[1] if given_side else [])
    rng = np.random.default_rng(seed)
    versions = {}
    for number in range(1, 4):
        shares = tuple(rng.dirichlet(np.ones(size)) for size in plan.sizes)
        fit = tuple(rng.uniform(0.05, 1, size) for size in plan.sizes)
        leaders = (int(rng.integers(3)), -1 if given_side else 0)
        living = tuple(np.ones(size, np.bool_) for size in plan.sizes)
        versions[number] = Version(number, shares, leaders, fit, living)
    rows = []
    for _ in range(20):
        own = int(rng.integers(1, 4))
        x = high * float(rng.choice([0, 1, rng.random()]))
        rows.append((own, int(rng.integers(6)), x, 3.0, int(rng.integers(own, 4))))
    history = History(plan, versions, Counts.of(rows))
    below = bound(plan, history, 0, 1, s)
    for rival in (0, 2):
        assert below[rival] <= exact_log_e(plan, history, 0, 1, rival, s) + 1e-9


def test_the_polynomial_is_nearly_exact_where_it_matters() -> None:
    """Near the ends of the interval, the log wealth loses less than a tenth."""
    plan = Design([4])
    found = play(plan, [0.12, 0.1, 0.1, 0.1], 6000, 1, until_stop=False)
    history = History(plan, found.versions, found.counts)
    for rival, s in ((1, 1.2), (1, 1.3), (2, 1.1), (3, 1.4)):
        exact = exact_log_e(plan, history, 0, 0, rival, s)
        assert exact > 1.5
        assert bound(plan, history, 0, 0, s)[rival] > 0.9 * exact


@pytest.mark.parametrize(
    ("plan", "means"),
    [
        (Design([4, 3], growth=0.3), np.multiply.outer([0.8, 0.4, 0.4, 0.5], [0.8, 0.4, 0.4])),
        (Design([2, 2, 2], growth=0.3, floor=0.1),
         np.einsum("i,j,k", [0.9, 0.6], [0.8, 0.5], [0.9, 0.7])),
        (Design([2, 4], growth=0.3, given=[0]),
         np.multiply.outer([0.9, 0.3], [0.8, 0.4, 0.5, 0.4])),
    ],
)  # fmt: skip
def test_intervals_and_verdict_agree(plan: Design, means: Any) -> None:
    """At any time: a level has gone if and only if its interval over the leader lies below 0."""
    gone = 0
    for reports in (220, 500, 900, 2000):
        found = play(plan, means, reports, 1, until_stop=False)
        arguments = plan, found.versions, found.counts, found.wealth
        said, ends = found.verdict, design.lifts(*arguments)
        for side in plan.given:
            assert (ends[side] == [-1, np.inf]).all()
        for side in plan.chosen:
            leader = said.leaders[side]
            for level, (low, high) in enumerate(ends[side]):
                assert low <= high
                if level == leader:
                    assert low == high == 0
                    continue
                assert (high < 0) == (not said.living[side][level])
                assert low <= 0
                gone += high < 0
                # The leader's over that level says the same.
                over = tuple(level if d == side else -1 for d in range(len(plan.sizes)))
                low, high = design.lifts(*arguments, over=over)[side][leader]
                assert (low > 0) == (not said.living[side][level])
                assert high >= 0
        arm = design.arm_lift(*arguments)
        assert arm.low <= arm.estimate <= arm.high
        if said.stop:
            assert arm.low > 0
    assert gone > 3


def test_intervals_lie_around_the_lift() -> None:
    """Of 10 studies at confidence 0.999, none may miss, over a control that isn't the leader."""
    plan = Design([3], 0.999, growth=0.2, floor=0.15)
    for seed in range(10):
        found = play(plan, [0.3, 0.5, 0.4], 3000, seed, until_stop=False)
        ends = design.lifts(plan, found.versions, found.counts, found.wealth, over=(0,))[0]
        for (low, high), true in zip(ends, (0, 0.5 / 0.3 - 1, 0.4 / 0.3 - 1), strict=True):
            assert low <= true <= high
            assert high - low < 1.8


@given(seed=st.integers(0, 10**6), s=st.floats(0.1, 10))
def test_the_mean_of_a_factor_is_at_most_one_at_the_true_ratio(seed: int, s: float) -> None:
    """The proof in numbers: every arm gives its mean, and level 2 is s times as good as level 1."""
    plan, rng = Design([3, 2]), np.random.default_rng(seed)
    shares = tuple(rng.dirichlet(np.ones(size)) for size in plan.sizes)
    fit = tuple(rng.uniform(0.05, 1, size) for size in plan.sizes)
    living = tuple(np.ones(size, np.bool_) for size in plan.sizes)
    versions = {1: Version(1, shares, (0, 0), fit, living)}
    means = rng.uniform(0, min(1, 1 / s), (3, 2))
    means[2] = s * means[1]
    total = 0.0
    for arm in range(6):
        history = History(plan, versions, Counts.of([(1, arm, means.flat[arm], 1)]))
        chance = shares[0][arm // 2] * shares[1][arm % 2]
        total += chance * math.exp(bound(plan, history, 0, 1, s)[2])
    assert total <= 1 + 1e-9


def test_the_lift_of_an_arm_over_a_control() -> None:
    plan = Design([3, 2], growth=0.1)
    means = np.multiply.outer([0.4, 0.6, 0.5], [0.6, 0.9])
    found = play(plan, means, 6000, 1, until_stop=False)
    arguments = plan, found.versions, found.counts, found.wealth
    arm = design.arm_lift(*arguments, over=(0, 0))
    assert found.verdict.leaders == (1, 1)
    assert arm.over == (0, 0)
    assert arm.low < 1.25 < arm.high
    assert arm.estimate == pytest.approx(1.25, abs=0.6)
    # On each side it is wider than the interval of that side alone.
    low, high = design.lifts(*arguments, over=(0, 0))[0][1]
    one = design.arm_lift(*arguments, over=(0, 1))
    assert one.over == (0, 1)
    assert one.low <= low
    assert one.high >= high
    # Over itself there is no lift, and the runner-up differs in one level.
    assert design.arm_lift(*arguments, over=(1, 1))[1:] == (0, 0, 0)
    last = found.versions[max(found.versions)]
    ratios = {(2, 1): last.fit[0][2] / last.fit[0][1], (1, 0): last.fit[1][0] / last.fit[1][1]}
    assert design.arm_lift(*arguments).over == max(ratios, key=lambda key: ratios[key])


def test_levels_that_are_retired_are_not_called_worse() -> None:
    plan = Design([3], growth=0.1)
    found = play(plan, [0.5, 0.5, 0.5], 500, 1)
    other = plan.changed(retired=[(0, int((found.verdict.leaders[0] + 1) % 3))])
    ends = design.lifts(other, found.versions, found.counts, found.wealth)[0]
    retired = next(iter(other.retired))[1]
    assert ends[retired][0] < 0 < ends[retired][1]


def test_before_the_first_bet_nothing_is_known() -> None:
    plan = Design([2, 3])
    first = {0: design.first_version(plan)}
    counts = Counts.of([(0, 0, 1.0, 3), (0, 5, 0.0, 4)])
    for ends in design.lifts(plan, first, counts, design.start(plan), over=(0, 1)):
        assert (ends[[k for k in range(len(ends)) if (ends[k] != 0).any()]] == [-1, np.inf]).all()
    assert design.lifts(plan, first, counts, design.start(plan))[0].tolist() == [[-1, np.inf]] * 2
    assert RATIOS[0] == 2**-10


def test_what_is_refused() -> None:
    plan = Design([2, 3])
    first = {0: design.first_version(plan)}
    arguments = plan, first, Counts.of([]), design.start(plan)
    with pytest.raises(rank1.InputError, match="over must be 2 levels, one for each side"):
        design.lifts(*arguments, over=(0,))
    with pytest.raises(rank1.InputError, match=r"over\[1\] must be a level in 0 … 2, got 3"):
        design.arm_lift(*arguments, over=(0, 3))
    two, three = np.ones(2), np.ones(3)
    living = two > 0, three > 0
    short = Version(1, (two / 2, two / 2), (0, 0), (two, three), living)
    with pytest.raises(rank1.InputError, match="shares of side 1 in version 1 must be 3 numbers"):
        design.lifts(plan, {1: short}, Counts.of([(1, 0, 1.0, 1)]), design.start(plan))
