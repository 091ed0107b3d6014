"""Sums over the entries seen of a matrix: what OptSpace's descent needs of its data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Entries"]

Floats = NDArray[np.float64]

#: Numbers in a block of rows: a block and what is computed from it stay in a core's cache.
BLOCK = 2**17


class Entries:
    """The entries seen of a matrix M, and sums over them for M ≈ X·S·Yᵀ.

    They are kept as a full matrix and a mask of zeros and ones. On a grid of which a third was
    seen, full products times the mask take a quarter of the time of sums over a list of entries.

    Parameters
    ----------
    M
        n×m with zeros where nothing was seen.
    mask
        Where something was seen.
    """

    def __init__(self, M: Floats, mask: NDArray[np.bool_]) -> None:
        self.M = M
        self.seen = mask.astype(np.float64)
        self.count = int(mask.sum())
        n, m = M.shape
        size = min(n, max(1, BLOCK // m))
        self.blocks = [slice(start, min(n, start + size)) for start in range(0, n, size)]
        # Fresh memory for each product would cost more than the product.
        self.R = np.empty((n, m))
        self.R1, self.R2 = np.empty((size, m)), np.empty((size, m))

    def best_S(self, X: Floats, Y: Floats) -> Floats:
        """The S of the smallest residual for given X and Y: r² normal equations.

        Their matrix is Σ x[i,a]·x[i,b]·y[j,c]·y[j,d] over the entries (i, j) seen. Only r(r+1)/2
        products differ on each side, and two matrix products give all the sums.
        """
        r = X.shape[1]
        a, b = np.triu_indices(r)
        sums = ((X[:, a] * X[:, b]).T @ self.seen) @ (Y[:, a] * Y[:, b])
        pair = np.empty((r, r), dtype=np.intp)
        pair[a, b] = pair[b, a] = np.arange(len(a))
        A = sums[pair[:, None, :, None], pair[None, :, None, :]].reshape(r * r, r * r)
        # Too few entries leave S undetermined; a ridge the size of rounding picks a small one.
        A[np.diag_indices(r * r)] += 1e-14 * (np.trace(A) / r**2 or 1.0)
        S = np.linalg.solve(A, ((X.T @ self.M) @ Y).ravel())
        return S.astype(np.float64, copy=False).reshape(r, r)

    def residual(self, X: Floats, S: Floats, Y: Floats) -> tuple[float, Floats, Floats]:
        """The root mean square residual, and the gradients of half its sum of squares.

        The residuals themselves stay in `R` for `quartic`.
        """
        XS, YS, YT = X @ S, Y @ S.T, np.ascontiguousarray(Y.T)
        W, ZT = np.empty(X.shape), np.zeros(YT.shape)
        total = 0.0
        for rows in self.blocks:
            R = self.R[rows]
            np.matmul(XS[rows], YT, out=R)
            R *= self.seen[rows]
            R -= self.M[rows]
            np.matmul(R, YS, out=W[rows])
            ZT += XS[rows].T @ R
            total += float(np.vdot(R, R))
        return math.sqrt(total / self.count), W, ZT.T

    def quartic(
        self, X: Floats, S: Floats, Y: Floats, W: Floats, Z: Floats
    ) -> tuple[float, float, float]:
        """How half the sum of squares changes along (X + tW)·S·(Y + tZ)ᵀ.

        It is a quartic in t; these are the factors of t², t³ and t⁴. With them a step can be
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
