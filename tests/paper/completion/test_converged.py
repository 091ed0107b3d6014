"""What "converged" means, and that both methods get there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rank1.paper.completion import Completion, optspace
from rank1.paper.completion.alternating import LEAST
from rank1.paper.completion.optspace import LONGEST_STEP, PENALTY

Floats = NDArray[np.float64]


def ratings(
    n: int = 60, m: int = 90, seen: float = 0.4, seed: int = 0, weak: float = 0.4
) -> Floats:
    """Stars: a strong mean, two weak directions, and noise. The descent is slow on it."""
    rng = np.random.default_rng(seed)
    stars = 3 + weak * rng.normal(size=(n, 2)) @ rng.normal(size=(2, m))
    stars += 0.9 * rng.normal(size=(n, m))
    stars[rng.random((n, m)) >= seen] = np.nan
    return stars


def cosine(completion: Completion, matrix: Floats) -> float:
    """The definition: the part of the residuals that a matrix of this rank can move along."""
    mask = np.isfinite(matrix)
    Z = completion.matrix
    R = np.where(mask, Z - matrix, 0.0)
    length = np.sqrt((R**2).sum() + completion.penalty * (Z**2).sum())
    R = R + completion.penalty * Z
    U, V = completion.U, completion.V
    along = U @ (U.T @ R) + (R @ V) @ V.T - U @ (U.T @ R @ V) @ V.T
    return float(np.linalg.norm(along) / length)


HOW: list[dict[str, Any]] = [
    {"method": "descent"},
    {"method": "alternating"},
    {"method": "alternating", "penalty": 0.0},
    {"method": "alternating", "penalty": 0.05},
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("iterations", [0, 7, 20_000])
def test_converged_means_a_small_gradient(how: dict[str, Any], iterations: int) -> None:
    matrix = ratings()
    completion = optspace(matrix, 3, iterations, 1e-3, **how)
    assert completion.gradient == pytest.approx(cosine(completion, matrix), rel=1e-4, abs=1e-9)
    assert completion.converged == (iterations == 20_000) == (completion.gradient <= 1e-3)
    assert completion.iterations <= iterations
    report = completion.report()
    assert report["gradient"] == completion.gradient
    assert report["method"] == how["method"]
    assert report["penalty"] == how.get("penalty", 0 if how["method"] == "descent" else PENALTY)


def test_slow_is_not_converged() -> None:
    """Steps that hardly lower the residual any more, with a gradient that is far from zero."""
    matrix = ratings(100, 300, weak=0.2)
    slow = optspace(matrix, 3, tolerance=1e-4)
    before, last = slow.residuals[-2:]
    assert before - last < 1e-4 * before
    assert not slow.converged
    assert slow.gradient > 0.1
    fast = optspace(matrix, 3, tolerance=1e-4, method="alternating")
    assert fast.converged
    assert fast.residuals[-1] < last - 0.05


def test_both_methods_come_to_the_same_minimum() -> None:
    matrix = ratings(seen=0.7)
    slow = optspace(matrix, 3, 20_000, 1e-7)
    fast = optspace(matrix, 3, 200, 1e-7, method="alternating", penalty=0)
    assert slow.converged
    assert fast.converged
    assert 10 * fast.iterations < slow.iterations
    np.testing.assert_allclose(fast.matrix, slow.matrix, atol=1e-4)


def plain_alternation(matrix: Floats, X: Floats, penalty: float, times: int) -> tuple[Floats, ...]:
    """Alternating least squares as everybody writes it: a line at a time."""
    mask = np.isfinite(matrix)
    Y = np.empty((matrix.shape[1], X.shape[1]))
    for _ in range(times):
        for own, other, seen, values in ((Y, X, mask.T, matrix.T), (X, Y, mask, matrix)):
            whole = penalty * other.T @ other
            for i, there in enumerate(seen):
                A = other[there].T @ other[there] + whole
                own[i] = np.linalg.solve(A, other[there].T @ values[i][there])
    return X, Y


@pytest.mark.parametrize("penalty", [0.0, 0.01])
def test_alternating_comes_where_plain_alternation_comes(penalty: float) -> None:
    matrix = ratings(20, 30, seen=0.7)
    begin = optspace(matrix, 2, iterations=0).U
    X, Y = plain_alternation(matrix, begin.copy(), penalty, 500)
    fast = optspace(matrix, 2, 100, 1e-9, method="alternating", penalty=penalty)
    np.testing.assert_allclose(fast.matrix, X @ Y.T, atol=1e-6)
    assert fast.iterations < 60


@pytest.mark.parametrize("how", HOW[1:])
def test_it_is_a_minimum(how: dict[str, Any]) -> None:
    """No small move of the factors lowers the sum of squares with its penalty."""
    matrix = ratings()
    mask = np.isfinite(matrix)
    completion = optspace(matrix, 3, 500, 1e-8, **how)
    X, Y = completion.U * completion.singular_values, completion.V

    def cost(X: Floats, Y: Floats) -> float:
        Z = X @ Y.T
        return float(((Z - matrix)[mask] ** 2).sum() + completion.penalty * (Z**2).sum())

    rng = np.random.default_rng(1)
    least = cost(X, Y)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            U, V = size * rng.normal(size=X.shape), size * rng.normal(size=Y.shape)
            assert cost(X + U, Y + V / np.abs(X).max()) > least


def test_every_step_of_alternating_lowers_the_cost() -> None:
    matrix = ratings()
    steps = [optspace(matrix, 3, k, 0, method="alternating", penalty=0) for k in range(15)]
    residuals = steps[-1].residuals
    assert (np.diff(residuals) < 0).all()
    assert [step.residuals[-1] for step in steps] == pytest.approx(residuals.tolist())


def test_alternating_recovers_exact_matrices_without_penalty() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 80))
    matrix = np.where(rng.random(true.shape) < 0.4, true, np.nan)
    completion = optspace(matrix, 3, 200, 1e-11, method="alternating", penalty=0)
    assert completion.converged
    np.testing.assert_allclose(completion.matrix, true, atol=1e-7)
    shrunk = optspace(matrix, 3, 200, method="alternating")
    assert shrunk.converged
    assert 1e-3 < np.linalg.norm(shrunk.matrix - true) / np.linalg.norm(true) < 0.02


def test_a_penalty_on_a_full_matrix_shrinks_its_best_approximation() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 40))
    U, s, Vt = np.linalg.svd(matrix)
    completion = optspace(matrix, 2, 500, 1e-10, method="alternating", penalty=0.25)
    np.testing.assert_allclose(completion.singular_values, s[:2] / 1.25)
    np.testing.assert_allclose(completion.matrix, (U[:, :2] * s[:2]) @ Vt[:2] / 1.25, atol=1e-7)


def test_too_high_a_rank_is_no_trouble() -> None:
    """The third direction of a full matrix of rank two is nothing but rounding."""
    matrix = np.outer(np.arange(1.0, 9.0), np.ones(7)) + np.outer(np.ones(8), np.arange(7.0))
    for penalty in (0.0, 0.25):
        completion = optspace(matrix, 3, method="alternating", penalty=penalty)
        np.testing.assert_allclose(completion.matrix, matrix / (1 + penalty), atol=1e-6)


def test_the_penalty_keeps_lines_with_few_entries_in_bounds() -> None:
    """Without one, columns with hardly more entries than the rank run off."""
    matrix = ratings(60, 400, seen=1.0)
    rng = np.random.default_rng(1)
    for column, count in enumerate(rng.choice([4, 5, 6, 25], 400)):
        matrix[rng.permutation(60)[count:], column] = np.nan
    wild = optspace(matrix, 4, 300, method="alternating", penalty=0)
    tame = optspace(matrix, 4, 300, method="alternating")
    assert np.abs(wild.matrix).max() > 1000
    assert np.abs(tame.matrix).max() < 50
    assert tame.converged
    assert tame.residuals[-1] < wild.residuals[-1] + 0.01


@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e200])
def test_units_do_not_matter(factor: float) -> None:
    matrix = ratings()
    one, other = (optspace(m, 3, method="alternating") for m in (matrix, matrix * factor))
    assert (one.iterations, one.converged) == (other.iterations, other.converged)
    assert one.gradient == pytest.approx(other.gradient, rel=1e-3)
    np.testing.assert_allclose(other.matrix / factor, one.matrix, rtol=1e-6)


def test_orientation_and_empty_lines_do_not_matter() -> None:
    matrix = ratings()
    one = optspace(matrix, 3, 200, 1e-8, method="alternating")
    turned = optspace(matrix.T, 3, 200, 1e-8, method="alternating")
    np.testing.assert_allclose(turned.matrix.T, one.matrix, atol=1e-6)
    padded = np.full((62, 91), np.nan)
    padded[1:61, 1:] = matrix
    inner = optspace(padded, 3, 200, 1e-8, method="alternating").matrix
    np.testing.assert_array_equal(inner[1:61, 1:], one.matrix)
    assert np.isnan(inner[0]).all()


def test_least_penalty_is_nothing_but_rounding() -> None:
    assert 0 < LEAST <= 1e-12


def literal_descent(matrix: Floats, X: Floats, Y: Floats, steps: int) -> list[float]:
    """The authors' descent in their units: halve a step until it brings half of its promise."""
    n, m, r = *matrix.shape, X.shape[1]
    mask = np.isfinite(matrix)
    unit = np.sqrt(np.mean(matrix[mask] ** 2) / r)
    M = np.where(mask, matrix, 0) / unit
    X, Y = X * np.sqrt(n), Y * np.sqrt(m)
    i, j = np.nonzero(mask)

    def fit(X: Floats, Y: Floats, S: Floats | None = None) -> tuple[Floats, Floats, float]:
        if S is None:
            products = (X[i][:, :, None] * Y[j][:, None, :]).reshape(len(i), r * r)
            S = np.asarray(np.linalg.lstsq(products, M[i, j])[0].reshape(r, r), np.float64)
        R = np.where(mask, X @ S @ Y.T - M, 0.0)
        return S, R, float((R**2).sum() / 2)

    residuals = []
    for _ in range(steps):
        S, R, half = fit(X, Y)
        residuals.append(np.sqrt(2 * half / len(i)) * unit)
        W, Z = R @ Y @ S.T, R.T @ X @ S
        promise = (W**2).sum() + (Z**2).sum()
        t = 1.6
        while fit(X - t * W, Y - t * Z, S)[2] > half - t * promise / 2:
            t /= 2
        X = np.asarray(np.linalg.qr(X - t * W)[0] * np.sqrt(n), np.float64)
        Y = np.asarray(np.linalg.qr(Y - t * Z)[0] * np.sqrt(m), np.float64)
    return residuals


@pytest.mark.parametrize("shape", [(4, 5), (12, 15), (40, 50)])
def test_the_descent_takes_the_steps_of_a_literal_one(shape: tuple[int, int]) -> None:
    """On the smallest of these the longest step of all is taken, on the largest others."""
    matrix = ratings(*shape, seen=0.8, seed=3)
    begin = optspace(matrix, 2, iterations=0)
    expected = literal_descent(matrix, begin.U, begin.V, 12)
    found = optspace(matrix, 2, iterations=11).residuals
    assert found.tolist() == pytest.approx(expected, rel=1e-9)
    assert LONGEST_STEP == 1.6
