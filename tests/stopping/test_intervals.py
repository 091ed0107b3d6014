from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

import rank1
from rank1 import stopping
from rank1.compiled import kernel
from rank1.stopping.evalues import log_price
from rank1.stopping.intervals import _ends, relative_intervals, ruled_out
from tests.stopping.test_rule import any_tables, differing, tables

Floats = NDArray[np.float64]


def evidence(s: Floats, f: Floats, a: Any, b: Any, margin: float) -> float:
    return stopping.log_e_value((s[a], f[a]), (s[b], f[b]), margin)


tolerances = st.sampled_from([0.0, 0.01, 0.1, 0.4])


@given(any_tables, st.sampled_from([0.5, 0.9, 0.95]), tolerances, st.booleans())
def test_the_picture_shows_separation_exactly_where_the_rule_stops(
    counts: tuple[Floats, Floats], confidence: float, tolerance: float, rank_one: bool
) -> None:
    verdict = stopping.verdict(*counts, confidence, tolerance, rank_one)
    drawn = stopping.relative_intervals(*counts, confidence, tolerance, rank_one)
    assert drawn.leader == verdict.leader
    assert not drawn.out[drawn.leader]
    if counts[0].size > 1:
        assert (drawn.out.sum() == counts[0].size - 1) == verdict.stop
    if counts[0].sum() + counts[1].sum() > 0:
        assert (drawn.lower <= drawn.upper).all()


@given(any_tables, st.sampled_from([0.5, 0.9, 0.95]), tolerances)
def test_a_compared_pair_is_out_exactly_where_its_e_value_says_so(
    counts: tuple[Floats, Floats], confidence: float, tolerance: float
) -> None:
    s, f = counts
    threshold = math.log(max(1, s.size - 1) / (1 - confidence))
    for rank_one in (True, False):
        drawn = stopping.relative_intervals(s, f, confidence, tolerance, rank_one)
        a = drawn.leader
        for b in np.ndindex(*s.shape):
            if b != a and (not rank_one or differing(a, b) == 1):
                value = evidence(s, f, a, b, tolerance)
                assert drawn.out[b] == (value >= threshold)


@given(tables(2), st.floats(0.3, 0.95))
def test_ends_are_where_the_evidence_reaches_the_threshold(
    counts: tuple[Floats, Floats], confidence: float
) -> None:
    s, f = counts
    threshold = math.log((s.size - 1) / (1 - confidence))
    drawn = stopping.relative_intervals(s, f, confidence, rank_one=False)
    a = drawn.leader
    if s[a] + f[a] == 0:
        assert np.isnan(drawn.upper).all()
        return
    mean = s[a] / (s[a] + f[a])
    for b in np.ndindex(*s.shape):
        if b == a:
            continue
        upper, lower = drawn.upper[b] - mean, drawn.lower[b] - mean
        for end, first, second in ((upper, a, b), (-lower, b, a)):
            if end < 1:
                at = [
                    evidence(s, f, first, second, margin)
                    for margin in (max(-1, end - 1e-6), min(1, end + 1e-6))
                ]
                assert at[0] <= threshold + 1e-3
                assert at[1] >= threshold - 1e-3


@given(tables(2), tolerances)
def test_beyond_the_row_and_the_column_rank_one_decides(
    counts: tuple[Floats, Floats], tolerance: float
) -> None:
    """A pair off the leader's lines is out exactly if the rule lets both its neighbours pass."""
    s, f = counts
    drawn = stopping.relative_intervals(s, f, 0.9, tolerance)
    row, column = drawn.leader
    for i, j in np.ndindex(*s.shape):
        if i != row and j != column:
            # The rule on the 2×2 grid of these lines, at the same threshold.
            small = np.ix_(sorted((i, row)), sorted((j, column)))
            level = 1 - 0.1 * 3 / (s.size - 1)
            assert drawn.out[i, j] == stopping.verdict(s[small], f[small], level, tolerance).stop


@given(tables(2, 3), tolerances)
def test_beyond_the_neighbours_rank_one_decides(
    counts: tuple[Floats, Floats], tolerance: float
) -> None:
    """On three sides an arm is out exactly if the rule lets all its neighbours pass."""
    s, f = counts
    drawn = stopping.relative_intervals(s, f, 0.9, tolerance)
    a = drawn.leader
    for b in np.ndindex(*s.shape):
        if differing(a, b) == 3:
            small = np.ix_(*(sorted(levels) for levels in zip(a, b, strict=True)))
            level = 1 - 0.1 * 7 / (s.size - 1)
            assert drawn.out[b] == stopping.verdict(s[small], f[small], level, tolerance).stop


@given(any_tables, st.sampled_from([0.5, 0.9, 0.95]))
def test_effects_agree_too(counts: tuple[Floats, Floats], confidence: float) -> None:
    s, f = counts
    drawn = stopping.relative_intervals(s, f, confidence)
    found = stopping.effects(s, f, confidence)
    for side, table in enumerate(found.sides):
        out = drawn.out[tuple(slice(None) if d == side else k for d, k in enumerate(found.leader))]
        assert ((table[:, 2] <= 1) == out)[table[:, 0] != 1].all()
        assert not (table[:, 1] > table[:, 2]).any()
        known = np.isfinite(table[:, 0])
        assert (table[known, 1] <= table[known, 0] + 1e-9).all()
        assert (table[known, 0] <= table[known, 2] + 1e-9).all()


def test_compiled_code_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    s, f = rng.integers(0, 300, (2, 3, 2, 3)).astype(float)

    def found() -> list[Any]:
        now, drawn = stopping.verdict(s, f, 0.9, 0.05), stopping.relative_intervals(s, f, 0.9, 0.05)
        ends = [drawn.lower, drawn.upper, *stopping.effects(s, f).sides]
        return [now.log_e, *ends, *stopping.mean_intervals(s, f)]

    written = found()
    for module in (stopping.rule, stopping.intervals):
        monkeypatch.setattr(module, "kernel_for", lambda function, work: kernel(function))
    for mine, theirs in zip(written, found(), strict=True):
        assert theirs == pytest.approx(mine, abs=1e-9)


def test_effects_by_the_definition() -> None:
    """The ends of an effect's interval, by a search over all means that may be it."""
    s, f = np.array([[60.0, 20.0]]), np.array([[40.0, 60.0]])
    p, q = np.meshgrid(np.linspace(0.3, 0.9, 1801), np.linspace(0.03, 0.51, 1441))
    kt = (betaln(s + 0.5, f + 0.5) - betaln(0.5, 0.5)).sum()
    logs = xlogy(60, p) + xlog1py(40, -p) + xlogy(20, q) + xlog1py(60, -q)
    kept = kt - logs < math.log(1 / 0.05)
    assert not kept[[0, -1]].any()
    assert not kept[:, [0, -1]].any()
    ends = stopping.effects(s, f).columns[1]
    assert ends[1] == pytest.approx((q / p)[kept].min(), abs=2e-3)
    assert ends[2] == pytest.approx((q / p)[kept].max(), abs=2e-3)
    drawn = stopping.relative_intervals(s, f)
    assert drawn.upper[0, 1] - 0.6 == pytest.approx((q - p)[kept].max(), abs=1e-3)
    assert drawn.lower[0, 1] - 0.6 == pytest.approx((q - p)[kept].min(), abs=1e-3)


@given(tables(), st.floats(0.1, 0.99))
def test_mean_intervals_by_the_definition(counts: tuple[Floats, Floats], confidence: float) -> None:
    s, f = counts
    lower, upper = stopping.mean_intervals(s, f, confidence)
    threshold = math.log(s.size / (1 - confidence))
    kt = betaln(s + 0.5, f + 0.5) - betaln(0.5, 0.5)
    for ends, outwards in ((lower, -1), (upper, 1)):
        for step, keeps in ((-1e-6, True), (1e-6, False)):
            p = ends + outwards * step
            inside = (p > 0) & (p < 1)
            with np.errstate(invalid="ignore", divide="ignore"):
                value = kt - xlogy(s, p) - xlog1py(f, -p)
            assert ((value < threshold + 1e-3) if keeps else (value > threshold - 1e-3))[
                inside
            ].all()
    assert (lower[s == 0] == 0).all()
    assert (upper[f == 0] == 1).all()


@pytest.mark.validate
def test_mean_intervals_hold_at_all_times() -> None:
    """400 runs of 1,000 reports with a look at each: misses stay within 20%, four errors above."""
    rng = np.random.default_rng(3)
    missed = 0
    true = np.repeat([0.1, 0.6], 1000)
    for _ in range(400):
        rewards = rng.random((2, 1000)) < true.reshape(2, 1000)
        s = rewards.cumsum(axis=1).astype(float).ravel()
        n = np.tile(np.arange(1.0, 1001), 2)
        least = math.log(2 / 0.2) - np.array(list(map(log_price, s, n - s)))  # of two arms
        lower, upper = _ends(s, n - s, least, 0.0), _ends(s, n - s, least, 1.0)
        missed += bool(((lower > true) | (upper < true)).any())
    assert missed <= 400 * 0.2 + 4 * math.sqrt(400 * 0.2 * 0.8)
    assert missed > 4  # and are not so wide as to say nothing


def test_refusals() -> None:
    with pytest.raises(rank1.InputError, match="confidence must be a number above 0 and below 1"):
        stopping.mean_intervals([[1]], [[1]], 1.0)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2), (1, 4)])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_which_arms_are_out_needs_the_neighbours_alone(
    shape: tuple[int, ...], tolerance: float
) -> None:
    rng, seen = np.random.default_rng(1), 0
    for _ in range(8):
        factors = [rng.uniform(0.3, 1.0, size) for size in shape]
        trials = rng.integers(0, 400, shape)
        won = rng.binomial(trials, reduce(np.multiply.outer, factors))
        out = ruled_out(won, trials - won, 0.95, tolerance)
        drawn = relative_intervals(won, trials - won, 0.95, tolerance)
        np.testing.assert_array_equal(out, drawn.out)
        seen += int(out.sum())
    assert seen
