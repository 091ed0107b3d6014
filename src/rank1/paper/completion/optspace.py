"""OptSpace: low-rank completion by least squares over pairs of subspaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rank1 import checks
from rank1.errors import InputError
from rank1.paper.completion.alternating import alternate
from rank1.paper.completion.entries import Entries, Fit, at_rest
from rank1.paper.completion.rank import VALUES, Bools, Floats, from_values, leading, observed

__all__ = ["Completion", "optspace"]

METHODS = ("descent", "alternating")
#: For "alternating": small against the entries of a line, large enough to have a minimum.
PENALTY = 1e-3
#: For "descent": the longest step to try. The authors' program halves from 0.1; this lies on the
#: same grid of steps, four doublings up, since small matrices need longer steps.
LONGEST_STEP = 1.6


@dataclass(frozen=True, eq=False)
class Completion:
    """A completed matrix as factors, and how it was found."""

    #: K×rank and L×rank, with orthonormal columns. A line without any entry is NaN.
    U: Floats
    V: Floats
    #: The singular values of the completed matrix, largest first.
    singular_values: Floats
    rank: int
    #: Whether the rank was guessed from the data.
    rank_guessed: bool
    #: The number of known entries.
    entries: int
    #: Root mean square of completed minus known entries: at the start and after every iteration.
    residuals: Floats
    #: The gradient at the end relative to the residuals: 0 at a minimum, at most 1; see `optspace`.
    gradient: float
    #: Whether the gradient or the residuals became small; otherwise the iterations ran out.
    converged: bool
    method: str
    #: The penalty on the size of the completed matrix, see `optspace`; 0 for the descent.
    penalty: float

    @property
    def iterations(self) -> int:
        """The number of steps taken."""
        return len(self.residuals) - 1

    @cached_property
    def matrix(self) -> Floats:
        """The completed matrix, K×L. Rows and columns without any entry stay NaN."""
        return (self.U * self.singular_values) @ self.V.T

    def report(self) -> dict[str, Any]:
        """How the completion went, as plain values."""
        return {
            "rank": self.rank,
            "rank_guessed": self.rank_guessed,
            "method": self.method,
            "penalty": self.penalty,
            "rows": len(self.U),
            "columns": len(self.V),
            "empty_rows": int(np.isnan(self.U[:, 0]).sum()),
            "empty_columns": int(np.isnan(self.V[:, 0]).sum()),
            "entries": self.entries,
            "iterations": self.iterations,
            "gradient": self.gradient,
            "converged": self.converged,
            "residual_start": float(self.residuals[0]),
            "residual": float(self.residuals[-1]),
            "singular_values": self.singular_values.tolist(),
        }


def optspace(
    matrix: ArrayLike,
    rank: int | None = None,
    iterations: int = 50,
    tolerance: float = 1e-6,
    method: str = "descent",
    penalty: float | None = None,
) -> Completion:
    """Complete a matrix of low rank from some of its entries, exact or noisy.

    Minimises Σ ((X·S·Yᵀ)ᵢⱼ − Mᵢⱼ)² over the known entries: overfull lines are trimmed, the best
    approximation of the given rank gives the first column spaces X and Y, then each iteration
    moves these on their Grassmann manifolds and solves for S exactly.

    Parameters
    ----------
    matrix
        K×L numbers, NaN for missing ones.
    rank
        The rank of the completed matrix; default: guessed, see `guess_rank`.
    iterations
        The largest number of steps. Each costs a few passes over the full matrix, and rank⁶ for S.
    tolerance
        A completion has converged once the residuals R are this small against the entries, or the
        gradient against the residuals: ‖R·V‖² + ‖Rᵀ·U‖² ≤ tolerance²·‖R‖², where U and V are
        orthonormal bases of the column spaces.
    method
        "descent": gradient descent, as in the authors' program. "alternating": alternating least
        squares accelerated by limited-memory BFGS, which converges in tens to hundreds of
        iterations where the descent takes many thousands.
    penalty
        For "alternating" only: penalty·‖X·S·Yᵀ‖² is added to the sum of squares (and to residuals
        and gradient in the definition of `tolerance`), as if every cell had been observed to be
        zero with this weight; default: 0.001. With 0 the sum of squares often has no minimum:
        lines with few entries diverge to ever larger values.

    Returns
    -------
    Completion
        The factors, `matrix`, the rank, residuals and whether it converged.

    Notes
    -----
    The page "Low-rank completion" of the docs says where this differs from the paper and from the
    authors' program, and what stopping after 50 iterations does.

    Examples
    --------
    >>> import numpy as np
    >>> from rank1.paper.completion import optspace
    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 50))
    >>> seen = np.where(rng.random(true.shape) < 0.5, true, np.nan)
    >>> completion = optspace(seen, rank=2)
    >>> completion.converged, bool(np.abs(completion.matrix - true).max() < 1e-4)
    (True, True)

    References
    ----------
    Keshavan, Montanari, Oh: Matrix completion from a few entries. IEEE Transactions on Information
    Theory 56, 2010. https://arxiv.org/abs/0901.3150

    Keshavan, Montanari, Oh: Matrix completion from noisy entries. JMLR 11, 2010.
    https://arxiv.org/abs/0906.2027
    """
    M, mask = observed("matrix", matrix)
    rows: Bools = np.asarray(mask.any(axis=1))
    columns: Bools = np.asarray(mask.any(axis=0))
    iterations = checks.integer("iterations", iterations, 0)
    tolerance = checks.number("tolerance", tolerance, 0)
    method = checks.one_of("method", method, METHODS)
    if method == "descent" and penalty is not None:
        raise InputError("penalty", penalty, "None with method 'descent', which has none")
    penalty = checks.number("penalty", PENALTY if penalty is None else penalty, 0)
    if rank is not None:
        rank = checks.integer("rank", rank, 1, int(min(rows.sum(), columns.sum())))
    # A line without entries can't be completed, and must not dilute the averages.
    M, mask = M[np.ix_(rows, columns)], mask[np.ix_(rows, columns)]
    n, m = M.shape
    # In units of the largest entry, squares neither overflow nor underflow.
    unit = float(np.abs(M).max()) or 1.0
    M /= unit
    r = rank or from_values(leading(M, VALUES)[1], M.shape, int(mask.sum()))
    # The authors' units, on which their steps depend: entries of size √r, XᵀX = n, YᵀY = m.
    typical = math.sqrt(np.vdot(M, M) / mask.sum()) or 1.0
    M *= math.sqrt(r) / typical
    unit *= typical / math.sqrt(r)
    X, _, Y = leading(_trimmed(M, mask), r)
    if method == "descent":
        fit = _descend(Entries(M, mask), X, Y, iterations, tolerance)
    elif n <= m:
        fit = alternate(Entries(M, mask), X, iterations, tolerance, penalty)
    else:  # move the shorter side
        turned = Entries(np.ascontiguousarray(M.T), np.ascontiguousarray(mask.T))
        fit = alternate(turned, Y, iterations, tolerance, penalty).turned()
    left, values, right = np.linalg.svd(fit.S)
    U, V = np.full((len(rows), r), np.nan), np.full((len(columns), r), np.nan)
    U[rows], V[columns] = fit.X @ left, fit.Y @ right.T
    return Completion(
        U=U,
        V=V,
        singular_values=values * unit,
        rank=r,
        rank_guessed=rank is None,
        entries=int(mask.sum()),
        residuals=np.array(fit.residuals) * unit,
        gradient=fit.gradient,
        converged=fit.converged,
        method=method,
        penalty=0.0 if method == "descent" else penalty,
    )


def _trimmed(M: Floats, mask: Bools) -> Floats:
    """`M` with lines that have over twice the average number of entries weighted down to that."""
    for axis in (0, 1):
        count = mask.sum(axis=axis, keepdims=True)
        M = M * np.minimum(1.0, 2 * count.mean() / count)
    return M


def _descend(entries: Entries, X: Floats, Y: Floats, iterations: int, tolerance: float) -> Fit:
    """Minimise the sum of squares, from the column spaces X and Y."""
    n, m = entries.M.shape
    # The authors' units, on which their steps depend: XᵀX = n, YᵀY = m.
    X, Y = X * math.sqrt(n), Y * math.sqrt(m)
    residuals: list[float] = []
    while True:
        S = entries.best_S(X, Y)
        residual, RY, RTX = entries.residual(X, S, Y)
        residuals.append(residual)
        length = residual * math.sqrt(entries.count)
        gradient = math.sqrt(np.vdot(RY, RY) / m + np.vdot(RTX, RTX) / n)
        gradient = gradient / length if length > 0 else 0.0
        converged = at_rest(residual, gradient, X.shape[1], tolerance)
        if converged or len(residuals) > iterations:
            X, S, Y = X / math.sqrt(n), S * math.sqrt(n * m), Y / math.sqrt(m)
            return Fit(X, S, Y, residuals, gradient, converged)
        # S is the best, so XᵀRY = 0: the gradients have no part within the subspaces to remove.
        W, Z = RY @ S.T, RTX @ S
        step = _step(*entries.quartic(X, S, Y, -W, -Z), float(np.vdot(W, W) + np.vdot(Z, Z)))
        # Back onto the manifolds. Any basis of the same subspace works: S adapts.
        X = np.linalg.qr(X - step * W)[0] * math.sqrt(n)
        Y = np.linalg.qr(Y - step * Z)[0] * math.sqrt(m)


def _step(c2: float, c3: float, c4: float, slope: float) -> float:
    """The longest step on the grid that achieves at least half of what the slope promises.

    Written without the residual itself, in which the difference would be lost near the end.
    """
    t = LONGEST_STEP
    while ((c4 * t + c3) * t + c2) * t > slope / 2:
        t /= 2
    return t
