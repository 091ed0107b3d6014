"""OptSpace: what it recovers, how it descends, and what it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rank1.paper.completion import optspace
from rank1.paper.completion.entries import Entries
from rank1.paper.completion.optspace import _trimmed

Floats = NDArray[np.float64]


def planted(
    n: int, m: int, rank: int, seen: float, seed: int = 0, noise: float = 0.0
) -> tuple[Floats, Floats]:
    """A matrix of the given rank, and what was seen of it."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))
    matrix = true + noise * rng.normal(size=(n, m))
    matrix[rng.random((n, m)) >= seen] = np.nan
    return true, matrix


@pytest.mark.parametrize(
    ("n", "m", "rank", "seen"),
    [(60, 50, 1, 0.4), (50, 60, 2, 0.5), (100, 80, 3, 0.4), (300, 200, 5, 0.3), (150, 400, 8, 0.4)],
)
def test_recovers_noiseless_matrices_exactly(n: int, m: int, rank: int, seen: float) -> None:
    true, matrix = planted(n, m, rank, seen)
    assert np.abs(optspace(matrix, rank).matrix - true).max() < 1e-2  # with the default 50
    completion = optspace(matrix, rank, iterations=1000, tolerance=1e-11)
    assert completion.converged
    assert np.abs(completion.matrix - true).max() < 1e-8


def test_guesses_the_rank_by_itself() -> None:
    true, matrix = planted(200, 300, 4, 0.5)
    completion = optspace(matrix, tolerance=1e-10, iterations=200)
    assert completion.rank == 4
    assert completion.rank_guessed
    assert np.abs(completion.matrix - true).max() < 1e-7


def test_a_full_matrix_gives_its_best_approximation() -> None:
    _, matrix = planted(40, 30, 5, 1.0, noise=0.3)
    U, s, Vt = np.linalg.svd(matrix)
    best = (U[:, :2] * s[:2]) @ Vt[:2]
    completion = optspace(matrix, 2)
    assert completion.converged
    np.testing.assert_allclose(completion.matrix, best, atol=1e-9)
    np.testing.assert_allclose(completion.singular_values, s[:2])


def test_error_grows_with_the_noise_as_the_oracle_does() -> None:
    """An oracle that knows the subspaces has the error σ·√(r(n + m − r)/entries)."""
    n, m, rank = 200, 300, 3
    oracle = np.sqrt(rank * (n + m - rank) / (0.4 * n * m))
    errors = []
    for noise in (0.01, 0.1, 1.0):
        true, matrix = planted(n, m, rank, 0.4, noise=noise)
        completion = optspace(matrix, rank, iterations=300)
        errors.append(np.sqrt(np.mean((completion.matrix - true) ** 2)) / (noise * oracle))
    assert all(0.9 < error < 1.2 for error in errors), errors


def test_result_describes_the_completed_matrix() -> None:
    _, matrix = planted(80, 60, 3, 0.5, noise=0.2)
    completion = optspace(matrix, 3, iterations=7)
    np.testing.assert_allclose(completion.U.T @ completion.U, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(completion.V.T @ completion.V, np.eye(3), atol=1e-12)
    values = np.linalg.svd(completion.matrix, compute_uv=False)
    np.testing.assert_allclose(completion.singular_values, values[:3])
    assert values[3] < 1e-10
    rms = np.sqrt(np.nanmean((completion.matrix - matrix) ** 2))
    assert completion.residuals[-1] == pytest.approx(rms)
    assert completion.iterations == 7
    assert not completion.converged
    assert (np.diff(completion.residuals) < 0).all()
    report = completion.report()
    assert report["residual"] == completion.residuals[-1]
    assert report["entries"] == np.isfinite(matrix).sum()


def test_without_noise_the_residual_says_when_it_has_converged() -> None:
    for tolerance in (1e-2, 1e-4):
        _, matrix = planted(80, 60, 3, 0.5)
        completion = optspace(matrix, 3, iterations=1000, tolerance=tolerance)
        typical = np.sqrt(np.nanmean(matrix**2))
        assert completion.converged
        assert completion.residuals[-1] <= tolerance * typical < completion.residuals[-2]


def test_starts_from_the_trimmed_matrix() -> None:
    _, matrix = planted(40, 50, 2, 0.2, noise=0.3)
    matrix[3], matrix[:, 5] = 1.0, 2.0  # far over twice the average
    mask = np.isfinite(matrix)
    U, _, Vt = np.linalg.svd(_trimmed(np.where(mask, matrix, 0.0), mask))
    i, j = np.nonzero(mask)
    products = (U[i, :2, None] * Vt[:2, j].T[:, None, :]).reshape(len(i), 4)
    S = np.linalg.lstsq(products, matrix[mask])[0].reshape(2, 2)
    start = optspace(matrix, 2, iterations=0)
    np.testing.assert_allclose(start.matrix, U[:, :2] @ S @ Vt[:2], atol=1e-9)
    assert start.iterations == 0


@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e6, 1e200])
def test_units_do_not_matter(factor: float) -> None:
    _, matrix = planted(30, 40, 2, 0.6, noise=0.1)
    one, other = optspace(matrix, 2), optspace(matrix * factor, 2)
    np.testing.assert_allclose(other.matrix / factor, one.matrix, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.residuals / factor, one.residuals)


def test_order_and_orientation_do_not_matter() -> None:
    _, matrix = planted(40, 50, 2, 0.5, noise=0.1)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(40), rng.permutation(50)
    completed = optspace(matrix, 2).matrix
    np.testing.assert_allclose(optspace(matrix.T, 2).matrix.T, completed, atol=1e-8)
    shuffled = optspace(matrix[np.ix_(rows, columns)], 2).matrix
    np.testing.assert_allclose(shuffled, completed[np.ix_(rows, columns)], atol=1e-8)


def test_input_is_left_alone_and_answers_repeat() -> None:
    _, matrix = planted(30, 20, 2, 0.5)
    before = matrix.copy()
    one, other = optspace(matrix, 2), optspace(matrix, 2)
    np.testing.assert_array_equal(matrix, before)
    np.testing.assert_array_equal(one.matrix, other.matrix)


def test_zeros_are_entries() -> None:
    """0 is a value like others: only NaN is missing."""
    matrix = np.outer([1.0, 0.0, 2.0, 1.0], [1.0, 3.0, 0.0, 2.0])
    matrix[3, 3] = np.nan
    completion = optspace(matrix, 1, iterations=500, tolerance=1e-10)
    assert completion.matrix[3, 3] == pytest.approx(2.0, abs=1e-6)
    assert completion.entries == 15


def test_lines_without_entries_stay_unknown_and_change_nothing_else() -> None:
    _, matrix = planted(40, 30, 2, 0.6, noise=0.1)
    padded = np.full((42, 31), np.nan)
    rows, columns = np.delete(np.arange(42), [0, 17]), np.delete(np.arange(31), 5)
    padded[np.ix_(rows, columns)] = matrix
    completion = optspace(padded, 2)
    assert np.isnan(completion.matrix[[0, 17]]).all()
    assert np.isnan(completion.matrix[:, 5]).all()
    inner = completion.matrix[np.ix_(rows, columns)]
    np.testing.assert_array_equal(inner, optspace(matrix, 2).matrix)
    report = completion.report()
    assert (report["empty_rows"], report["empty_columns"]) == (2, 1)


@pytest.mark.parametrize(
    ("matrix", "completed"),
    [
        ([[3.0]], [[3.0]]),
        ([[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]),
        ([[1.0], [2.0]], [[1.0], [2.0]]),
        (np.zeros((4, 5)), np.zeros((4, 5))),
        (np.zeros((1001, 1002)), np.zeros((1001, 1002))),
        ([[1, np.nan], [np.nan, np.nan]], [[1, np.nan], [np.nan, np.nan]]),
    ],
)
@pytest.mark.parametrize("how", [{}, {"method": "alternating", "penalty": 0}])
def test_tiny_and_empty_matrices(matrix: Any, completed: Any, how: dict[str, Any]) -> None:
    completion = optspace(matrix, **how)
    assert completion.rank == 1
    assert completion.converged
    np.testing.assert_allclose(completion.matrix, completed, atol=1e-11)


def test_an_undetermined_middle_factor_stays_small() -> None:
    """Six entries on the diagonal say nothing about the rest."""
    matrix = np.where(np.eye(6) > 0, 1.0, np.nan)
    completion = optspace(matrix, 6)
    np.testing.assert_allclose(completion.matrix, np.eye(6), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"matrix": [[np.nan, np.nan]]}, ValueError, r"at least one entry .* shape \(1, 2\)"),
        ({"matrix": np.empty((0, 3))}, ValueError, r"at least one entry .* shape \(0, 3\)"),
        ({"matrix": [[1.0, np.nan, -np.inf]]}, ValueError, r"matrix\[0, 2\] .* got -inf: .* NaN"),
        ({"matrix": [1.0, 2.0]}, ValueError, r"two dimensions, got shape \(2,\)"),
        ({"matrix": "ratings"}, TypeError, "matrix must be a matrix of numbers.*'ratings'"),
        ({"matrix": [[1, 2], [3]]}, TypeError, "matrix must be a matrix of numbers"),
        ({"matrix": [[1 + 2j]]}, TypeError, "matrix must be a matrix of numbers"),
        ({"rank": 3}, ValueError, "rank must be .* at most 2, got 3"),
        ({"rank": 0}, ValueError, "rank must be .* at least 1 .* got 0"),
        ({"rank": True}, TypeError, "rank must be .* got True"),
        ({"iterations": -1}, ValueError, "iterations must be .* at least 0, got -1"),
        ({"tolerance": -0.1}, ValueError, "tolerance must be .* at least 0, got -0.1"),
        ({"method": "newton"}, ValueError, "method must be one of descent, alternating, got 'newt"),
        ({"penalty": 0.1}, ValueError, "penalty must be None with method 'descent'.*got 0.1"),
        (
            {"method": "alternating", "penalty": -1},
            ValueError,
            "penalty must be .* at least 0, got -1",
        ),
    ],
)
def test_errors_name_argument_value_and_remedy(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {"matrix": [[1.0, 2.0, np.nan], [3.0, 4.0, np.nan]], **arguments}
    with pytest.raises(error, match=message):
        optspace(**given)


def test_trimming_weighs_overfull_lines_down_to_twice_the_average() -> None:
    mask = np.zeros((10, 8), dtype=bool)
    mask[0], mask[:, 0] = True, True
    trimmed = _trimmed(mask.astype(float), mask)
    average_row, average_column = mask.sum() / 10, mask.sum() / 8
    column_weight = 2 * average_column / 10
    np.testing.assert_allclose(trimmed[1:, 0], column_weight)
    np.testing.assert_allclose(trimmed[0, 1:], 2 * average_row / 8)
    np.testing.assert_allclose(trimmed[1:, 1:], 0.0)
    even = np.ones((4, 6), dtype=bool)
    np.testing.assert_array_equal(_trimmed(even * 2.0, even), even * 2.0)


class TestEntries:
    """The sums of the descent, against what they stand for, written out."""

    n, m, r = 37, 9_000, 3  # several blocks of rows, the last one short

    def setup_method(self) -> None:
        rng = np.random.default_rng(3)
        self.mask = rng.random((self.n, self.m)) < 0.3
        self.M = np.where(self.mask, rng.normal(size=(self.n, self.m)), 0.0)
        self.X, self.W = rng.normal(size=(2, self.n, self.r))
        self.Y, self.Z = rng.normal(size=(2, self.m, self.r))
        self.S = rng.normal(size=(self.r, self.r))
        self.entries = Entries(self.M, self.mask)
        assert len(self.entries.blocks) > 1
        assert self.n % (self.entries.blocks[0].stop) != 0

    def half_squares(self, X: Floats, S: Floats, Y: Floats) -> float:
        return float((((X @ S @ Y.T) - self.M)[self.mask] ** 2).sum() / 2)

    def test_middle_factor_solves_the_least_squares_problem(self) -> None:
        i, j = np.nonzero(self.mask)
        products = (self.X[i][:, :, None] * self.Y[j][:, None, :]).reshape(len(i), -1)
        expected = np.linalg.lstsq(products, self.M[i, j])[0].reshape(self.r, self.r)
        np.testing.assert_allclose(self.entries.best_S(self.X, self.Y), expected, atol=1e-12)

    def test_residual_and_gradients(self) -> None:
        residual, RY, RTX = self.entries.residual(self.X, self.S, self.Y)
        gradient_X, gradient_Y = RY @ self.S.T, RTX @ self.S
        squares = 2 * self.half_squares(self.X, self.S, self.Y)
        assert residual == pytest.approx(np.sqrt(squares / self.mask.sum()))
        h = 1e-5
        slope_X = (
            self.half_squares(self.X + h * self.W, self.S, self.Y)
            - self.half_squares(self.X - h * self.W, self.S, self.Y)
        ) / (2 * h)
        slope_Y = (
            self.half_squares(self.X, self.S, self.Y + h * self.Z)
            - self.half_squares(self.X, self.S, self.Y - h * self.Z)
        ) / (2 * h)
        assert np.vdot(gradient_X, self.W) == pytest.approx(slope_X, rel=1e-6)
        assert np.vdot(gradient_Y, self.Z) == pytest.approx(slope_Y, rel=1e-6)

    def test_quartic_along_a_line(self) -> None:
        start = self.half_squares(self.X, self.S, self.Y)
        _, RY, RTX = self.entries.residual(self.X, self.S, self.Y)
        c1 = np.vdot(RY @ self.S.T, self.W) + np.vdot(RTX @ self.S, self.Z)
        c2, c3, c4 = self.entries.quartic(self.X, self.S, self.Y, self.W, self.Z)
        for t in (-0.7, 0.3, 2.0):
            moved = self.half_squares(self.X + t * self.W, self.S, self.Y + t * self.Z)
            expected = start + c1 * t + c2 * t**2 + c3 * t**3 + c4 * t**4
            assert moved == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("noise", "apart"), [(0.0, 1e-6), (0.1, 1e-3)])
def test_agrees_with_gemelli(noise: float, apart: float) -> None:
    """The same minimum of the same sum of squares, by another implementation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports a part of NumPy that is on its way out
        gemelli = pytest.importorskip("gemelli.optspace")
    _, matrix = planted(60, 80, 3, 0.6, noise=noise)
    U, S, V = gemelli.OptSpace(3, 400, 1e-8).solve(matrix.copy())
    ours = optspace(matrix, 3, iterations=400, tolerance=1e-9)
    np.testing.assert_allclose(ours.matrix, U @ S @ V.T, atol=apart)


def test_zeros_with_holes_are_zeros() -> None:
    matrix = np.zeros((2, 3))
    matrix[0, 0] = matrix[1, 1:] = np.nan
    completion = optspace(matrix)
    np.testing.assert_array_equal(completion.matrix, np.zeros((2, 3)))
