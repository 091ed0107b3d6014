"""The rank guess: planted ranks, and the rules against a literal reading of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rank1.paper.completion import guess_rank, optspace
from rank1.paper.completion.optspace import _trimmed
from rank1.paper.completion.rank import from_values, leading

Floats = NDArray[np.float64]


@pytest.mark.parametrize("rank", range(1, 9))
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_planted_ranks(rank: int, noise: float) -> None:
    rng = np.random.default_rng(2)
    matrix = noise * rng.normal(size=(240, 360))
    matrix += rng.normal(size=(240, rank)) @ rng.normal(size=(rank, 360))
    matrix[rng.random(matrix.shape) < 0.5] = np.nan
    assert guess_rank(matrix) == rank
    assert guess_rank(matrix.T) == rank


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_full_matrices_without_noise_show_their_rank(rank: int) -> None:
    """Then all that is left after the rank is rounding, whose gaps mean nothing."""
    rng = np.random.default_rng(0)
    for n, m in ((12, 9), (50, 40), (240, 700), (1100, 1200)):
        assert guess_rank(rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))) == rank


def literal(s: Floats, shape: tuple[int, int], entries: int) -> int:
    """The two rules, step by step."""
    gaps = [s[k] - s[k + 1] for k in range(len(s) - 1)]
    unit = sum(gaps[-11:]) / len(gaps[-11:])
    by_gap, weight = 0, 0.05
    while by_gap <= 0:
        costs = [weight * max(gaps[k:]) / unit + k + 1 for k in range(len(gaps))]
        by_gap = costs.index(min(costs))
        weight += 0.05
    density = entries / math.sqrt(shape[0] * shape[1])
    R = [(s[k + 1] + s[0] * math.sqrt((k + 1) / density)) / s[k] for k in range(len(gaps))]
    return max(by_gap, R.index(min(R)) + 1)


@pytest.mark.parametrize("seed", range(40))
def test_rules_agree_with_a_literal_reading(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(14, 100))
    s = np.sort(rng.exponential(size=size) ** rng.uniform(0.2, 3))[::-1]
    s[: rng.integers(1, 6)] *= rng.uniform(1, 20)
    s = np.sort(s)[::-1] + 1
    shape, entries = (size, 3 * size), int(size**2 * rng.uniform(0.1, 3))
    assert from_values(s, shape, entries) == literal(s, shape, entries)


def test_only_the_first_hundred_values_count() -> None:
    """A gap further down would otherwise set the unit, or the rank."""
    s = np.concatenate([[50.0, 40.0], np.linspace(10, 9, 98), np.zeros(20)])
    orthogonal = np.linalg.qr(np.random.default_rng(0).normal(size=(120, 120)))[0]
    assert from_values(s[:100], (120, 120), 120**2) == 2
    assert guess_rank(orthogonal * s @ orthogonal.T) == 2


def test_neither_more_nor_fewer_values_count() -> None:
    """The 99th gap sets the unit in which two gaps matter; the 100th would drown them all."""
    gaps = np.full(119, 0.001)
    gaps[:5] = 20, 3, 0.5, 0.4, 0.05
    gaps[98:100] = 0.3, 20
    s = np.cumsum([3.0, *gaps[::-1]])[::-1]
    guesses = [from_values(s[:count], (120, 120), 120**2) for count in (30, 99, 100, 101)]
    assert guesses == [5, 5, 2, 1]
    orthogonal = np.linalg.qr(np.random.default_rng(0).normal(size=(120, 120)))[0]
    assert guess_rank(orthogonal * s @ orthogonal.T) == 2


@pytest.mark.parametrize(
    ("matrix", "rank"), [([[5.0]], 1), ([[1.0, 2.0]], 1), ([[0.0, 0.0], [0.0, 0.0]], 1)]
)
def test_tiny_matrices(matrix: list[list[float]], rank: int) -> None:
    assert guess_rank(matrix) == rank


def test_a_last_gap_that_is_the_largest_does_not_hang() -> None:
    assert from_values(np.array([3.0, 2.9, 0.1]), (3, 3), 9) == 2
    nearly_even = np.array([1.0 + 2e-15, 1.0 + 1e-15, 1.0, 1.0])
    assert 1 <= from_values(nearly_even, (4, 4), 16) <= 3


@pytest.mark.parametrize("shape", [(30, 50), (50, 30), (1001, 1003)])
def test_leading_singular_values_and_vectors(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(shape[0], 4)) @ rng.normal(size=(4, shape[1]))
    U, s, V = leading(matrix, 4)
    np.testing.assert_allclose((U * s) @ V.T, matrix, atol=1e-9)
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-9)
    assert (np.diff(s) <= 0).all()


def uneven(seed: int = 3) -> Floats:
    """Rank three; a few lines have far more entries than the others."""
    rng = np.random.default_rng(seed)
    matrix = 3 + rng.normal(size=(150, 3)) @ rng.normal(size=(3, 200))
    busy = np.where(rng.random(150) < 0.1, 0.9, 0.1)[:, None]
    matrix[rng.random(matrix.shape) >= busy] = np.nan
    return matrix


def test_the_matrix_is_not_trimmed() -> None:
    matrix = uneven()
    mask = np.isfinite(matrix)
    s = np.linalg.svd(np.nan_to_num(matrix), compute_uv=False)[:100]
    assert guess_rank(matrix) == literal(s, matrix.shape, int(mask.sum()))
    cut = np.linalg.svd(_trimmed(np.nan_to_num(matrix), mask), compute_uv=False)
    trimmed = np.asarray(cut[:100], np.float64)
    assert guess_rank(matrix) != literal(trimmed, matrix.shape, int(mask.sum()))  # would be seen
    assert optspace(matrix, iterations=1).rank == guess_rank(matrix)


def test_lines_without_entries_change_nothing() -> None:
    matrix = uneven()
    padded = np.full((400, 500), np.nan)
    padded[50:200, 100:300] = matrix
    assert guess_rank(padded) == guess_rank(matrix) == optspace(padded, iterations=1).rank
