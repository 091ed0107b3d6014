from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

import rank1
from rank1 import stopping

Floats = NDArray[np.float64]


@st.composite
def tables(draw: st.DrawFn, least: int = 1, sides: int = 2) -> tuple[Floats, Floats]:
    """Successes and failures: whole or not, from nothing to plenty, ties among them."""
    most = 4 if sides < 3 else 3
    shape = draw(st.tuples(*[st.integers(least, most)] * sides))
    scale = draw(st.sampled_from([1.0, 1.0, 0.37, 20.0, 400.0]))
    elements = st.integers(0, 30).map(float)
    return draw(arrays(float, shape, elements=elements)) * scale, draw(
        arrays(float, shape, elements=elements)
    ) * scale


#: Of one to four sides.
any_tables = st.integers(1, 4).flatmap(lambda sides: tables(sides=sides))


def differing(a: Any, b: Any) -> int:
    """On how many sides two arms differ."""
    return sum(x != y for x, y in zip(a, b, strict=True))


def log_e(s: Floats, f: Floats, a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """As in the definition."""
    kt = sum(betaln(s[x] + 0.5, f[x] + 0.5) - betaln(0.5, 0.5) for x in (a, b))
    won, lost = s[a] + s[b], f[a] + f[b]
    m = won / (won + lost) if won + lost else 0.5
    return float(kt - xlogy(won, m) - xlog1py(lost, -m))


@given(any_tables, st.sampled_from([0.5, 0.9, 0.95, 0.999]), st.booleans())
def test_the_rule_literally(counts: tuple[Floats, Floats], confidence: float, any_: bool) -> None:
    s, f = counts
    with np.errstate(invalid="ignore"):
        means = np.where(s + f > 0, s / (s + f), -1)
    leader = tuple(map(int, np.unravel_index(int(means.argmax()), s.shape)))
    values = {
        arm: log_e(s, f, leader, arm)
        for arm in np.ndindex(*s.shape)
        if arm != leader and (any_ or differing(arm, leader) == 1)
    }
    found = stopping.verdict(s, f, confidence, rank_one=not any_)
    assert found.leader == leader
    if not values:
        assert found.stop
        assert found.weakest is None
        return
    threshold = math.log((s.size - 1) / (1 - confidence))
    least = min(values.values())
    assert found.threshold == pytest.approx(threshold)
    assert found.log_e == pytest.approx(least, abs=1e-6)
    assert found.weakest is not None
    assert values[found.weakest] == pytest.approx(least, abs=1e-6)
    if abs(least - threshold) > 1e-6:
        assert found.stop == (least >= threshold)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 2, 2)])
def test_an_arm_without_a_report_never_leads(shape: tuple[int, ...]) -> None:
    """Not even where every report is a failure: of two arms of mean 0 the first that was tried."""
    for arm in range(1, math.prod(shape)):
        levels = tuple(map(int, np.unravel_index(arm, shape)))
        s, f = np.zeros(shape), np.zeros(shape)
        watch = stopping.start_watch(shape)
        for k in {arm, math.prod(shape) - 1}:
            f.flat[k] = 2
            stopping.report(watch, k, 0.0)
            stopping.report(watch, k, 0.0)
        for rank_one in (True, False):
            found = stopping.verdict(s, f, rank_one=rank_one)
            assert (found.leader, found.mean) == (levels, 0.0)
            assert stopping.relative_intervals(s, f, rank_one=rank_one).leader == levels
        assert stopping.effects(s, f).leader == levels
        assert watch.at[0].leader == arm


@given(any_tables, st.floats(0, 0.9), st.floats(0, 0.9), st.booleans())
def test_a_larger_tolerance_is_never_harder(
    counts: tuple[Floats, Floats], one: float, other: float, rank_one: bool
) -> None:
    less, more = sorted((one, other))
    strict = stopping.verdict(*counts, 0.9, less, rank_one)
    lax = stopping.verdict(*counts, 0.9, more, rank_one)
    assert lax.stop or not strict.stop
    assert strict.stop == (strict.log_e >= strict.threshold)


@given(any_tables, st.sampled_from([0.0, 0.05, 0.3]), st.booleans(), st.randoms())
def test_names_of_levels_and_sides_do_not_matter(
    counts: tuple[Floats, Floats], tolerance: float, rank_one: bool, random: Any
) -> None:
    s, f = counts
    lines = [list(range(size)) for size in s.shape]
    for levels in lines:
        random.shuffle(levels)
    at, axes = np.ix_(*lines), list(range(s.ndim))
    random.shuffle(axes)
    before = stopping.verdict(s, f, 0.8, tolerance, rank_one)
    after = stopping.verdict(s[at], f[at], 0.8, tolerance, rank_one)
    turned = stopping.verdict(s.transpose(axes), f.transpose(axes), 0.8, tolerance, rank_one)
    with np.errstate(invalid="ignore"):
        tied = (s / (s + f) == before.mean).sum() > 1
    if not tied and s.sum() + f.sum() > 0:
        assert before.stop == after.stop == turned.stop
        assert after.log_e == before.log_e == turned.log_e


def test_a_tolerance_the_long_way() -> None:
    """The e-value of a margin, and of the pair beyond a neighbour, by a search over all means."""
    s, f = np.array([[60.0, 30.0], [45.0, 0.0]]), np.array([[40.0, 70.0], [55.0, 0.0]])
    p, q = np.meshgrid(np.linspace(0, 1, 2001)[1:-1], np.linspace(0, 1, 2001)[1:-1])

    def reject(b: tuple[int, int], inside: Any) -> float:
        kt = sum(betaln(s[x] + 0.5, f[x] + 0.5) - betaln(0.5, 0.5) for x in ((0, 0), b))
        logs = xlogy(s[0, 0], p) + xlog1py(f[0, 0], -p) + xlogy(s[b], q) + xlog1py(f[b], -q)
        return float(kt - logs[inside].max())

    beyond = min(reject(b, q >= np.sqrt(p * (p + 0.2))) for b in ((0, 1), (1, 0)))
    direct = min(reject(b, q >= p + 0.2) for b in ((0, 1), (1, 0), (1, 1)))
    assert stopping.verdict(s, f, 0.9, 0.2).log_e == pytest.approx(beyond, abs=0.02)
    assert stopping.verdict(s, f, 0.9, 0.2, rank_one=False).log_e == pytest.approx(direct, abs=0.02)


def test_three_sides_by_hand() -> None:
    """Counts of a 2×2×2 grid beside the leader (1, 0, 1), each comparison by the formula."""
    s, f = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    s[1, 0, 1], f[1, 0, 1] = 60, 40
    for arm, won in (((0, 0, 1), 29), ((1, 1, 1), 24), ((1, 0, 0), 27)):
        s[arm], f[arm] = won, 100 - won
    found = stopping.verdict(s, f, 0.95)
    # log KT(60, 40) + log KT(29, 71) − log(0.445^89·0.555^111)
    assert found.leader == (1, 0, 1)
    assert found.weakest == (0, 0, 1)
    assert found.log_e == pytest.approx(-69.8321 - 62.7464 + 137.4170, abs=2e-4)
    assert found.threshold == pytest.approx(math.log(7 / 0.05))
    assert not found.stop
    assert stopping.verdict(s, f, 0.9).threshold < found.log_e  # log 70 = 4.248
    assert stopping.verdict(s, f, 0.9).reason.startswith(
        "stop: (1, 0, 1) is best at confidence 90%, because it beats every arm that differs "
        "from it in one level; the closest is (0, 0, 1)"
    )
    # The four arms that differ on more sides were never tried, and any of them may be better.
    anything = stopping.verdict(s, f, 0.9, rank_one=False)
    assert not anything.stop
    assert anything.weakest == (0, 0, 0)
    # A side without a choice changes nothing.
    for axis in range(4):
        wider = stopping.verdict(np.expand_dims(s, axis), np.expand_dims(f, axis), 0.9, 0.1)
        assert wider.log_e == stopping.verdict(s, f, 0.9, 0.1).log_e


def test_a_tolerance_on_three_sides_the_long_way() -> None:
    """The e-value of a neighbour that leads to an arm 0.2 above, by a search over all means."""
    s, f = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    for arm, won in (((0, 0, 0), 60), ((1, 0, 0), 45), ((0, 1, 0), 30), ((0, 0, 1), 20)):
        s[arm], f[arm] = won, 100 - won
    p, q = np.meshgrid(np.linspace(0, 1, 2001)[1:-1], np.linspace(0, 1, 2001)[1:-1])
    kt = sum(betaln(won + 0.5, 100 - won + 0.5) - betaln(0.5, 0.5) for won in (60, 45))
    logs = xlogy(60, p) + xlog1py(40, -p) + xlogy(45, q) + xlog1py(55, -q)
    least = kt - logs[q >= p * (1 + 0.2 / p) ** (1 / 3)].max()
    assert stopping.verdict(s, f, 0.9, 0.2).log_e == pytest.approx(least, abs=0.02)


def test_a_plateau_of_means_of_0_is_no_place_to_stop() -> None:
    """Two sides with a factor of 0: no neighbour is better, and the rule is never sure."""
    means = np.outer([0.0, 0.9], [0.0, 0.9])
    trials = np.array([[1e6, 1e6], [1e6, 0.0]])
    assert not stopping.verdict(means * trials, trials - means * trials, 0.5).stop


def test_a_single_line_needs_no_assumption() -> None:
    s, f = np.array([[60.0, 30.0, 50.0]]), np.array([[40.0, 70.0, 60.0]])
    for tolerance in (0.0, 0.1):
        assumed = stopping.verdict(s, f, 0.9, tolerance)
        assert assumed.log_e == stopping.verdict(s, f, 0.9, tolerance, rank_one=False).log_e
        assert assumed.log_e == stopping.verdict(s.T, f.T, 0.9, tolerance).log_e


def test_edges() -> None:
    one = stopping.verdict([[0]], [[0]])
    assert one.stop
    assert one.reason == "stop: (0, 0) is the only pair"
    nothing = stopping.verdict(np.zeros((2, 3)), np.zeros((2, 3)))
    assert not nothing.stop
    assert nothing.leader == (0, 0)
    assert nothing.reason == "keep going: no results yet"
    # A pair of the leader's row that was never tried could be anything.
    missing = stopping.verdict([[900, 0], [0, 0]], [[100, 0], [1000, 500]])
    assert not missing.stop
    assert missing.weakest == (0, 1)
    # One outside its row and column needs no trial, if rank one is assumed.
    spared = [[900, 0], [0, 0]], [[100, 1000], [1000, 0]]
    assert stopping.verdict(*spared).stop
    assert not stopping.verdict(*spared, rank_one=False).stop
    # Equal means: the first leads, and nothing is decided.
    tied = stopping.verdict([[500, 500]], [[500, 500]])
    assert tied.leader == (0, 0)
    assert not tied.stop
    # A pair that always pays can't be beaten by more than a little, even by one never tried.
    assert stopping.verdict([[1000, 0]], [[0, 0]], tolerance=0.05).stop


def test_reasons() -> None:
    s, f = [[300, 240], [150, 0]], [[300, 360], [450, 0]]
    assert "may still be better than" in stopping.verdict(s, f).reason
    lax = stopping.verdict(s, f, tolerance=0.2)
    assert lax.stop
    assert "within the tolerance of 0.2" in lax.reason
    assert "0.01 below the best" in stopping.verdict(s, f, tolerance=0.01).reason
    direct = stopping.verdict(s, f, tolerance=0.01, rank_one=False)
    assert "(1, 1) may still be 0.01 better than (0, 0)" in direct.reason
    assert "A, a" in lax.reason_with(lambda row, column: f"{'AB'[row]}, {'ab'[column]}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, -1]], [[0, 0]]), r"successes\[0, 1\] must be a number of at least 0"),
        (([[1, 1]], [[0, math.nan]]), r"failures\[0, 1\] must be a number of at least 0"),
        (([[1, math.inf]], [[0, 0]]), r"successes\[0, 1\] must be"),
        ((np.zeros((2, 2, 2)), np.full((2, 2, 2), -1)), r"failures\[0, 0, 0\] must be a number"),
        ((3, 4), r"successes must be an array with an axis .* got shape \(\)"),
        (([[]], [[]]), r"at least 1 level on each, got shape \(1, 0\)"),
        ((np.zeros((2, 0, 3)), [[0]]), r"successes must be .*, got shape \(2, 0, 3\)"),
        ((np.zeros([1] * 17), [[0]]), "1 to 16 sides"),
        (([[1, 1]], [[0], [0]]), r"failures must be of the same shape as successes, \(1, 2\), got"),
        (([[1], [1, 2]], [[0]]), "successes must be an array of numbers, one for each arm"),
        (([["a"]], [[0]]), "successes must be an array of numbers, one for each arm"),
        (([[1, 1]], [[0, 0]], 1.0), "confidence must be a number above 0 and below 1"),
        (([[1, 1]], [[0, 0]], 1.5), "confidence must be a number above 0 and below 1, got 1.5"),
        (([[1, 1]], [[0, 0]], 0.0), "confidence must be a number above 0"),
        (([[1, 1]], [[0, 0]], 0.9, 1.0), "tolerance must be a number of at least 0 and below 1"),
        (([[1, 1]], [[0, 0]], 0.9, -0.1), "tolerance must be a number of at least 0"),
        (([[1, 1]], [[0, 0]], 0.9, 0.0, "no"), "rank_one must be true or false, got 'no'"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], message: str) -> None:
    for function in (stopping.verdict, stopping.relative_intervals):
        with pytest.raises(rank1.Rank1Error, match=message):
            function(*arguments)
    with pytest.raises(rank1.InputError, match="confidence must be a number above 0 and below 1"):
        stopping.mean_intervals([[1]], [[1]], confidence=1.5)
