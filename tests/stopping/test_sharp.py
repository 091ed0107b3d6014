"""The sharper evidence: its value, its promise, and what it saves."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

import rank1
from rank1 import stopping
from rank1.errors import InputError
from rank1.stopping.evalues import DIFFERENCE, RATIO
from rank1.stopping.sharp import FIRST_CHORD, RATIO_OF_CHORDS, log_sharp, steepest

TILTS = np.array([0.03, 0.06, 0.11, 0.2, 0.36, 0.65, 1.1, 2])
counts = st.one_of(st.integers(0, 60).map(float), st.integers(0, 10**5).map(float))


def one_sided(sign: int, s: float, n: float, m: Any) -> Any:
    """log E⁺ or log E⁻, by the definition."""
    base = 1 + np.multiply.outer(m, np.exp(sign * TILTS) - 1)
    return logsumexp(sign * TILTS * s - n * np.log(base), axis=-1) - math.log(8)


def least(null: int, margin: float, p: Any) -> Any:
    """The least mean of b in the null, where a's is p."""
    if null == RATIO:
        return margin * p
    return p ** (1 - 1 / null) * (p + margin) ** (1 / null)


def curve(null: int, margin: float, a: tuple[float, float], b: tuple[float, float]) -> float:
    """The least log E over a dense grid of p."""
    p = np.linspace(0, 1, 2001)
    p = p[least(null, margin, p) <= 1]
    e = one_sided(1, a[0], sum(a), p) + one_sided(-1, b[0], sum(b), least(null, margin, p))
    return float(e.min())


@settings(max_examples=40)
@given(st.tuples(counts, counts), st.tuples(counts, counts), st.sampled_from([0.0, 0.05, 0.3]))
@example((51.0, 7201.0), (1.0, 17320.0), 0.05)
def test_the_infimum(a: tuple[float, float], b: tuple[float, float], margin: float) -> None:
    """Never above what a dense grid finds, and attained where it says."""
    for null in (DIFFERENCE, 2, 3):
        value, p, q = log_sharp(null, margin, *a, *b)
        attained = one_sided(1, a[0], sum(a), p) + one_sided(-1, b[0], sum(b), q)
        assert value == pytest.approx(attained, abs=1e-7)
        assert value <= curve(null, margin, a, b) + 1e-9
        # The null it searches has a little room beside the edge, and only where that is bent:
        # close to 0 it has one chord in place of the edge.
        low, room, first = p, 0.0, RATIO_OF_CHORDS * FIRST_CHORD * margin
        if null != DIFFERENCE and margin > 0:
            low, room = max(p, first), 0.01 * q
        straight = least(null, margin, low) * (p / low if low > 0 else 1)
        assert straight - room - 1e-9 <= q <= least(null, margin, p) + 1e-9
    value, p, q = log_sharp(RATIO, 1 + margin, *a, *b)
    assert q == pytest.approx((1 + margin) * p)
    assert value <= curve(RATIO, 1 + margin, a, b) + 1e-9


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_the_mean_of_e_under_the_null_is_at_most_one(p: float) -> None:
    """Exactly, by all outcomes of n and m pulls of two arms of one mean."""
    for n, m in ((1, 1), (4, 9), (25, 12)):
        total = sum(
            binom.pmf(s, n, p)
            * binom.pmf(r, m, p)
            * math.exp(log_sharp(1, 0, s, n - s, r, m - r)[0])
            for s, r in itertools.product(range(n + 1), range(m + 1))
        )
        assert 0 < total <= 1


@given(st.booleans(), st.floats(0, 1), st.integers(0, 40), st.integers(0, 40), st.floats(0, 1))
def test_a_report_adds_no_more_than_is_reckoned_with(
    up: bool, m: float, s: int, f: int, x: float
) -> None:
    sign = 1 if up else -1
    grown = one_sided(sign, s + x, s + f + 1, m) - one_sided(sign, s, s + f, m)
    most = x * steepest(up, True, m) + (1 - x) * steepest(up, False, m)
    assert grown <= most + 1e-9


@settings(max_examples=30)
@given(
    st.integers(0, 10**6), st.sampled_from([(4,), (3, 2), (2, 2, 2)]), st.sampled_from([0, 0.05])
)
def test_pictures_agree_with_the_verdict(
    seed: int, sizes: tuple[int, ...], tolerance: float
) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 400, sizes)
    s = rng.binomial(n, rng.random(sizes) ** 2)
    found = stopping.verdict(s, n - s, 0.8, tolerance, rule="sharp")
    drawn = stopping.relative_intervals(s, n - s, 0.8, tolerance, rule="sharp")
    assert (drawn.out.sum() == s.size - 1) == found.stop
    effects = stopping.effects(s, n - s, 0.8, rule="sharp")
    beaten = all((side[:, 2] <= 1).all() for side in effects.sides)
    assert beaten == stopping.verdict(s, n - s, 0.8, rule="sharp").stop


def test_an_unknown_rule_is_refused() -> None:
    expected = "rule must be one of kt, sharp, got 'sharpe': did you mean sharp?"
    with pytest.raises(InputError, match=expected):
        stopping.verdict([1, 2], [2, 1], rule="sharpe")
    with pytest.raises(InputError, match="rule must be one of kt, sharp"):
        rank1.identify(rank1.Uniform(), rank1.Bernoulli([0.5, 0.2], [1.0]), rule="")


@pytest.mark.validate
def test_reference_figures() -> None:
    """An independent program needs 6,511 and 8,802 pulls; within 4 errors of the difference."""
    problem = rank1.spike(8, 8, 0.5, 0.5, 0.2, 0.2)
    for rule, reference in (("sharp", 6511), ("kt", 8802)):
        found = rank1.identify(rank1.TopTwo(), problem, runs=200, shuffle=True, rule=rule)[
            "top_two"
        ]
        assert found.wrong.sum() == 0
        error = found.pulls.std() / math.sqrt(200)
        assert abs(found.pulls.mean() - reference) < 4 * math.sqrt(2) * error


@pytest.mark.validate
@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_wrong_stops_on_a_near_tie(confidence: float) -> None:
    problem = rank1.Bernoulli([0.5, 0.49, 0.3], [0.8, 0.79])
    rules: dict[str, Any] = {"n": 20_000, "runs": 1000, "rule": "sharp", "shuffle": True}
    found = rank1.identify(rank1.TopTwo(), problem, confidence, **rules)["top_two"]
    assert found.wrong.sum() <= 1000 * (1 - confidence)
