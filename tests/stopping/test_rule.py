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
def tables(draw: st.DrawFn, least: int = 1) -> tuple[Floats, Floats]:
    """Successes and failures: whole or not, from nothing to plenty, ties among them."""
    shape = draw(st.tuples(st.integers(least, 4), st.integers(least, 4)))
    scale = draw(st.sampled_from([1.0, 1.0, 0.37, 20.0, 400.0]))
    elements = st.integers(0, 30).map(float)
    return draw(arrays(float, shape, elements=elements)) * scale, draw(
        arrays(float, shape, elements=elements)
    ) * scale


def log_e(s: Floats, f: Floats, a: tuple[int, int], b: tuple[int, int]) -> float:
    """As in the definition."""
    kt = sum(betaln(s[x] + 0.5, f[x] + 0.5) - betaln(0.5, 0.5) for x in (a, b))
    won, lost = s[a] + s[b], f[a] + f[b]
    m = won / (won + lost) if won + lost else 0.5
    return float(kt - xlogy(won, m) - xlog1py(lost, -m))


@given(tables(), st.sampled_from([0.5, 0.9, 0.95, 0.999]), st.booleans())
def test_the_rule_literally(counts: tuple[Floats, Floats], confidence: float, any_: bool) -> None:
    s, f = counts
    with np.errstate(invalid="ignore"):
        means = np.where(s + f > 0, s / (s + f), -1)
    leader = divmod(int(means.argmax()), s.shape[1])
    values = {
        (i, j): log_e(s, f, leader, (i, j))
        for i, j in np.ndindex(*s.shape)
        if (i, j) != leader and (any_ or i == leader[0] or j == leader[1])
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


@given(tables(), st.floats(0, 0.9), st.floats(0, 0.9), st.booleans())
def test_cost_and_tolerance_agree(
    counts: tuple[Floats, Floats], one: float, other: float, rank_one: bool
) -> None:
    """Stop exactly where the cost is tolerated; a larger tolerance is never harder."""
    less, more = sorted((one, other))
    strict = stopping.verdict(*counts, 0.9, less, rank_one)
    lax = stopping.verdict(*counts, 0.9, more, rank_one)
    assert strict.stop == (strict.cost <= less)
    assert lax.stop or not strict.stop
    assert lax.cost == pytest.approx(strict.cost, abs=1e-6) or lax.stop
    assert 0 <= strict.cost <= 1


@given(tables(), st.sampled_from([0.0, 0.05, 0.3]), st.booleans(), st.randoms())
def test_names_of_lines_do_not_matter(
    counts: tuple[Floats, Floats], tolerance: float, rank_one: bool, random: Any
) -> None:
    s, f = counts
    rows, columns = list(range(s.shape[0])), list(range(s.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    at = np.ix_(rows, columns)
    before = stopping.verdict(s, f, 0.8, tolerance, rank_one)
    after = stopping.verdict(s[at], f[at], 0.8, tolerance, rank_one)
    turned = stopping.verdict(s.T, f.T, 0.8, tolerance, rank_one)
    with np.errstate(invalid="ignore"):
        tied = (s / (s + f) == before.mean).sum() > 1
    if not tied and s.sum() + f.sum() > 0:
        assert before.stop == after.stop == turned.stop
        assert after.log_e == before.log_e == turned.log_e
        assert after.cost == pytest.approx(before.cost, abs=1e-9)


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


def test_a_single_line_needs_no_assumption() -> None:
    s, f = np.array([[60.0, 30.0, 50.0]]), np.array([[40.0, 70.0, 60.0]])
    for tolerance in (0.0, 0.1):
        assumed = stopping.verdict(s, f, 0.9, tolerance)
        assert assumed.log_e == stopping.verdict(s, f, 0.9, tolerance, rank_one=False).log_e
        assert assumed.log_e == stopping.verdict(s.T, f.T, 0.9, tolerance).log_e


def test_edges() -> None:
    one = stopping.verdict([[0]], [[0]])
    assert one.stop
    assert one.cost == 0
    assert one.reason == "stop: (0, 0) is the only pair"
    nothing = stopping.verdict(np.zeros((2, 3)), np.zeros((2, 3)))
    assert not nothing.stop
    assert nothing.leader == (0, 0)
    assert nothing.cost == 1
    assert nothing.reason == "go on: nothing is reported yet"
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
    assert "too low" in stopping.verdict(s, f, tolerance=0.01).reason
    direct = stopping.verdict(s, f, tolerance=0.01, rank_one=False)
    assert "(1, 1) may still be 0.01 better than (0, 0)" in direct.reason
    assert "A, a" in lax.reason_with(lambda row, column: f"{'AB'[row]}, {'ab'[column]}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, -1]], [[0, 0]]), r"successes\[0, 1\] must be a number of at least 0"),
        (([[1, 1]], [[0, math.nan]]), r"failures\[0, 1\] must be a number of at least 0"),
        (([[1, math.inf]], [[0, 0]]), r"successes\[0, 1\] must be"),
        (([1, 1], [0, 0]), "successes must be a K×L table of at least one pair"),
        (([[]], [[]]), "successes must be a K×L table of at least one pair"),
        (([[1, 1]], [[0], [0]]), "must have one shape"),
        (([["a"]], [[0]]), "successes must be a K×L table of numbers"),
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
