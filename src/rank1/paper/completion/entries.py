"""Sums over the known entries of a matrix, for fitting a low rank."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Entries", "Fit", "at_rest"]

Floats = NDArray[np.float64]

#: Numbers in a block of rows: a block and what is computed from it fit in a core's cache.
BLOCK = 2**17
#: Added to sums of squares, as a fraction of them, so that too few entries leave nothing
#: undetermined: among equally good solutions, the small one is chosen.
RIDGE = 1e-14


class Fit(NamedTuple):
    """X·S·Yᵀ, with orthonormal X and Y, and how it was found; see `Completion`."""

    X: Floats
    S: Floats
    Y: Floats
    residuals: list[float]
    gradient: float
    converged: bool

    def turned(self) -> Fit:
        """The same for the transposed matrix."""
        return self._replace(X=self.Y, S=self.S.T, Y=self.X)


def at_rest(residual: float, gradient: float, rank: int, tolerance: float) -> bool:
    """Whether a fit has converged; the entries have size √rank."""
    return residual <= tolerance * math.sqrt(rank) or gradient <= tolerance


class Entries:
    """The known entries of a matrix M, and sums over them for M ≈ X·S·Yᵀ.

    They are stored as a full matrix and a mask of zeros and ones. On a grid of which a third is
    known, full products times the mask take a quarter of the time of sums over a list of entries.

    Parameters
    ----------
    M
        n×m with zeros for unknown entries.
    mask
        Which entries are known.
    """

    def __init__(self, M: Floats, mask: NDArray[np.bool_]) -> None:
        self.M = M
        self.seen = mask.astype(np.float64)
        self.count = int(mask.sum())
        n, m = M.shape
        size = min(n, max(1, BLOCK // m))
        self.blocks = [slice(start, min(n, start + size)) for start in range(0, n, size)]
        # Allocating memory for each product would cost more than the product.
        self.R = np.empty((n, m))
        self.R1, self.R2 = np.empty((size, m)), np.empty((size, m))

    def best_S(self, X: Floats, Y: Floats) -> Floats:
        """The S with the smallest residual for given X and Y, from r² normal equations.

        Their matrix is Σ x[i,a]·x[i,b]·y[j,c]·y[j,d] over the known entries (i, j). Only r(r+1)/2
        products differ on each side, and two matrix products give all the sums.
        """
        r = X.shape[1]
        a, b, pair = _products(r)
        sums = ((X[:, a] * X[:, b]).T @ self.seen) @ (Y[:, a] * Y[:, b])
        A = sums[pair[:, None, :, None], pair[None, :, None, :]].reshape(r * r, r * r)
        A[np.diag_indices(r * r)] += RIDGE * (np.trace(A) / r**2 or 1.0)
        S = np.linalg.solve(A, ((X.T @ self.M) @ Y).ravel())
        return S.astype(np.float64, copy=False).reshape(r, r)

    def best_Y(self, X: Floats, penalty: float) -> Floats:
        """The Y with the smallest sum of squares for X·Yᵀ, plus penalty·‖X·Yᵀ‖²."""
        return _by_line(X, self.seen.T, self.M.T @ X, penalty)

    def towards_best_X(self, Y: Floats, G: Floats, penalty: float) -> Floats:
        """G times the inverse Hessian in X: turns the gradient into the step to the best X."""
        return _by_line(Y, self.seen, G, penalty)

    def residual(self, X: Floats, S: Floats, Y: Floats) -> tuple[float, Floats, Floats]:
        """The root mean square residual, and R·Y and Rᵀ·X with the residuals R = X·S·Yᵀ − M.

        Times Sᵀ and S these are the gradients of half the sum of squares. `quartic` reuses the
        residuals, which stay in `R`.
        """
        XS, YT = X @ S, np.ascontiguousarray(Y.T)
        RY, XTR = np.empty(X.shape), np.zeros(YT.shape)
        total = 0.0
        for rows in self.blocks:
            R = self.R[rows]
            np.matmul(XS[rows], YT, out=R)
            R *= self.seen[rows]
            R -= self.M[rows]
            np.matmul(R, Y, out=RY[rows])
            XTR += X[rows].T @ R
            total += float(np.vdot(R, R))
        return math.sqrt(total / self.count), RY, XTR.T

    def quartic(
        self, X: Floats, S: Floats, Y: Floats, W: Floats, Z: Floats
    ) -> tuple[float, float, float]:
        """The change of half the sum of squares along (X + tW)·S·(Y + tZ)ᵀ.

        It is a quartic in t; these are the coefficients of t², t³ and t⁴. With them a step can be
        judged without another pass over the entries.
        """
        WS = W @ S
        left, right = np.hstack([WS, X @ S]), np.vstack([Y.T, Z.T])
        ZT = np.ascontiguousarray(Z.T)
        c2 = c3 = c4 = 0.0
        for rows in self.blocks:
            R, R1, R2 = (
                part[: rows.stop - rows.start] for part in (self.R[rows], self.R1, self.R2)
            )
            np.matmul(left[rows], right, out=R1)
            R1 *= self.seen[rows]
            np.matmul(WS[rows], ZT, out=R2)
            R2 *= self.seen[rows]
            c2 += float(np.vdot(R1, R1)) / 2 + float(np.vdot(R, R2))
            c3 += float(np.vdot(R1, R2))
            c4 += float(np.vdot(R2, R2)) / 2
        return c2, c3, c4


def _products(r: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """The r(r+1)/2 products of two of r columns: their indices, and an r×r table of them."""
    a, b = np.triu_indices(r)
    pair = np.empty((r, r), dtype=np.intp)
    pair[a, b] = pair[b, a] = np.arange(len(a))
    return a, b, pair


def _by_line(X: Floats, seen: Floats, B: Floats, penalty: float) -> Floats:
    """The solutions of r normal equations for each row of `seen`, with a row of B on the right.

    Their matrix is Σ x[i,a]·x[i,b] over the row's known entries; one matrix product gives them all.
    """
    r = X.shape[1]
    a, b, pair = _products(r)
    A = (seen @ (X[:, a] * X[:, b]))[:, pair]
    A += penalty * (X.T @ X)
    A[:, range(r), range(r)] += RIDGE * np.trace(A, axis1=1, axis2=2)[:, None] / r
    return np.linalg.solve(A, B[..., None])[..., 0].astype(np.float64, copy=False)
