from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaln, xlog1py, xlogy

from rank1.stopping.evalues import (
    DIFFERENCE,
    RATIO,
    edge_of,
    least_of,
    likeliest,
    log_e,
    log_loss,
    log_price,
)
from rank1.stopping.evidence import KT, largest_margin

#: Over how many sides the best arm may differ from the leader.
REACHES = (2, 3, 5, 16)

#: Counts and sums of rewards, small and large, among them nothing at all.
amounts = st.one_of(
    st.integers(0, 60).map(float),
    st.integers(0, 50_000).map(lambda k: k / 1000),
    st.integers(0, 10**7).map(float),
)
pairs = st.tuples(amounts, amounts)
#: A null and a margin for it.
nulls = st.one_of(
    st.tuples(st.just(DIFFERENCE), st.floats(-0.9, 0.9)),
    st.tuples(st.sampled_from(REACHES), st.floats(0.0, 0.9)),
    st.tuples(st.just(RATIO), st.floats(0.1, 4.0)),
    st.tuples(st.sampled_from([DIFFERENCE, *REACHES]), st.just(0.0)),
)


def kt(s: float, f: float) -> float:
    return float(betaln(s + 0.5, f + 0.5) - betaln(0.5, 0.5))


def likelihood(s: float, f: float, p: float) -> float:
    return float(xlogy(s, p) + xlog1py(f, -p))


def least_q(null: int, margin: float, p: float) -> float:
    """The nulls as they are defined."""
    if null == RATIO:
        return margin * p
    return p ** (1 - 1 / null) * (p + margin) ** (1 / null)


@given(pairs)
def test_the_price_is_that_of_the_kt_mixture(pair: tuple[float, float]) -> None:
    s, f = pair
    n = s + f
    largest = likelihood(s, f, s / n) if n else 0.0
    assert log_price(s, f) == pytest.approx(kt(s, f) - largest, rel=1e-9, abs=1e-9 * (1 + n))


def test_the_price_joins_smoothly_where_the_series_begins() -> None:
    for s in (9.999999, 10.0, 10.000001):
        for f in (3.0, 9.999999, 10.0, 1e6):
            exact = kt(s, f) - likelihood(s, f, s / (s + f))
            assert log_price(s, f) == pytest.approx(exact, abs=1e-8)


@given(nulls, pairs, pairs)
def test_the_likeliest_point_of_the_null(
    null: tuple[int, float], a: tuple[float, float], b: tuple[float, float]
) -> None:
    """It is in the null, and no other point that a search finds is likelier."""
    kind, margin = null
    p, q = likeliest(kind, margin, *a, *b)
    assert 0 <= p <= 1
    assert 0 <= q <= 1
    assert q >= least_q(kind, margin, p) - 1e-9
    found = likelihood(*a, p) + likelihood(*b, q)

    def lost(p: float) -> float:
        low = max(0.0, least_q(kind, margin, p))
        if low > 1:
            return math.inf
        best = b[0] / sum(b) if sum(b) else 1.0
        value = likelihood(*a, p) + likelihood(*b, max(low, best))
        return -value if math.isfinite(value) else 1e300

    top = min(1.0, {DIFFERENCE: 1 - margin, RATIO: 1 / margin if margin else 1}.get(kind, 1.0))
    if kind > DIFFERENCE:
        top = float(brentq(lambda p: least_q(kind, margin, p) - 1, 0, 1, xtol=1e-15))
    searched = minimize_scalar(lost, bounds=(0.0, top), method="bounded", options={"xatol": 1e-12})
    scale = 1 + sum(a) + sum(b)
    assert found >= -searched.fun - 1e-9 * scale


@given(pairs, pairs)
def test_without_a_margin_it_is_the_formula(a: tuple[float, float], b: tuple[float, float]) -> None:
    assume(sum(a) > 0 and sum(b) > 0)
    if a[0] / sum(a) < b[0] / sum(b):
        a, b = b, a
    s, f = a[0] + b[0], a[1] + b[1]
    formula = kt(*a) + kt(*b) - likelihood(s, f, s / (s + f))
    for null in (DIFFERENCE, *REACHES):
        assert log_e(null, 0.0, *a, *b) == pytest.approx(formula, abs=1e-9 * (1 + s + f))
    assert log_e(RATIO, 1.0, *a, *b) == pytest.approx(formula, abs=1e-9 * (1 + s + f))


@given(nulls, st.floats(0, 0.5), pairs, pairs)
def test_a_smaller_null_is_easier_to_reject(
    null: tuple[int, float], more: float, a: tuple[float, float], b: tuple[float, float]
) -> None:
    kind, margin = null
    less, larger = log_e(kind, margin, *a, *b), log_e(kind, margin + more, *a, *b)
    assert larger >= less - 1e-9 * (1 + abs(less))


@given(nulls, st.floats(0.5, 20), pairs, pairs)
def test_the_largest_margin_is_where_rejection_begins(
    null: tuple[int, float], threshold: float, a: tuple[float, float], b: tuple[float, float]
) -> None:
    kind, low = null
    high = 4.0 if kind == RATIO else 1.0
    assume(low < high and log_e(kind, low, *a, *b) < threshold)
    margin = largest_margin(KT, kind, low, high, threshold, *a, *b)
    assert low < margin <= high
    if margin < high:
        assert log_e(kind, margin, *a, *b) >= threshold
    below = margin - 1e-9 * (1 + abs(margin))
    if below > low:
        assert log_e(kind, below, *a, *b) < threshold


@given(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.01, 1))
def test_what_reach_is_about(margin: float, means: list[float], p: float) -> None:
    """If no neighbour is in the null, the arm beyond them is less than the margin above.

    And no more is excluded than that: with all of them at the null's edge, it is the margin above.
    """
    for sides in range(len(means), 7):
        least = least_of(sides, margin, p)
        below = [
            min(q, math.nextafter(least, 0)) for q in means
        ]  # out of the null, as near as can be
        assert p * math.prod(q / p for q in below) < p + margin + 1e-9
        assert p * (least / p) ** sides == pytest.approx(p + margin)


@given(st.sampled_from([DIFFERENCE, *REACHES]), st.floats(0, 0.9), st.floats(0.01, 1))
def test_the_edge_of_a_null(null: int, margin: float, p: float) -> None:
    """`edge_of` leads back from the least q to p, and has the slope and the bend there."""
    q = least_of(null, margin, p)
    back, rise, bend = edge_of(null, margin, q)
    assert back == pytest.approx(p)
    around = [edge_of(null, margin, q + step) for step in (-1e-6, 1e-6)]
    assert rise == pytest.approx((around[1][0] - around[0][0]) / 2e-6, rel=1e-3, abs=1e-4)
    assert bend == pytest.approx((around[1][1] - around[0][1]) / 2e-6, rel=1e-3, abs=1e-3)


@given(st.integers(2, 16), st.floats(0, 1), st.floats(1e-9, 1))
def test_the_bound_of_the_docs(sides: int, more: float, p: float) -> None:
    """Each neighbour exceeds a by ε′: then the best does by p·((1 + ε′/p)^D − 1), exactly."""
    bound = p * ((1 + more / p) ** sides - 1)
    assert least_of(sides, bound, p) == pytest.approx(p + more)
    if sides == 2:
        assert bound == pytest.approx(more * (2 + more / p))


@pytest.mark.parametrize("law", [(0.0, 1.0), (0.0, 0.5, 1.0)])
@pytest.mark.parametrize(("mean_a", "mean_b"), [(0.5, 0.5), (0.3, 0.4), (0.1, 0.1), (0.8, 0.9)])
@pytest.mark.parametrize(
    ("null", "margin"), [(DIFFERENCE, 0.0), (DIFFERENCE, 0.1), (2, 0.2), (3, 0.2)]
)
def test_rejecting_a_true_null_is_as_rare_as_promised(
    law: tuple[float, ...], mean_a: float, mean_b: float, null: int, margin: float
) -> None:
    """Every path of nine reports, exactly, under choices made to mislead and a look at each."""
    if mean_b < least_q(null, margin, mean_a):
        mean_b = least_q(null, margin, mean_a)
    chances: dict[str, tuple[float, ...]] = {}
    for x, mean in (("a", mean_a), ("b", mean_b)):
        if len(law) == 2:
            chances[x] = (1 - mean, mean)
        else:
            middle = min(mean, 1 - mean)
            chances[x] = (1 - mean - middle / 2, middle, mean - middle / 2)

    crossed = dict.fromkeys((1.5, 2.0, 3.0, 5.0), 0.0)

    def follow(s_a: float, f_a: float, s_b: float, f_b: float, chance: float, peak: float) -> None:
        value = log_e(null, margin, s_a, f_a, s_b, f_b)
        peak = max(peak, value)
        if s_a + f_a + s_b + f_b == 9:
            for c in crossed:
                crossed[c] += chance * (peak >= math.log(c) - 1e-12)
            return
        # Feed whichever looks as if it could widen the gap.
        chosen = "a" if s_a * (s_b + f_b) <= s_b * (s_a + f_a) or s_a + f_a < 3 else "b"
        for reward, share in zip(law, chances[chosen], strict=True):
            if chosen == "a":
                follow(s_a + reward, f_a + 1 - reward, s_b, f_b, chance * share, peak)
            else:
                follow(s_a, f_a, s_b + reward, f_b + 1 - reward, chance * share, peak)

    follow(0.0, 0.0, 0.0, 0.0, 1.0, -math.inf)
    for c, chance in crossed.items():
        assert chance <= 1 / c + 1e-12


def test_the_promise_is_not_kept_without_the_price() -> None:
    """What the mixture costs isn't decoration: the bare likelihood ratio fails the test above."""
    crossed = 0.0
    for path in itertools.product((0, 1), repeat=10):
        peak = 0.0
        for t in range(1, 11):
            rewards = np.array(path[:t])
            s_a, s_b = rewards[::2].sum(), rewards[1::2].sum()
            n_a, n_b = (t + 1) // 2, t // 2
            if n_b and s_a / n_a > s_b / n_b:
                m = (s_a + s_b) / t
                peak = max(
                    peak, log_loss(s_a, n_a - s_a, m) + log_loss(s_b, n_b - s_b, m)
                )  # fmt: skip
        crossed += (peak >= math.log(4)) / 2**10
    assert crossed > 0.25
