"""OptSpace: low-rank completion by gradient descent over pairs of subspaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rank1 import checks
from rank1.paper.completion.entries import Entries
from rank1.paper.completion.rank import VALUES, Bools, Floats, from_values, leading, observed

__all__ = ["Completion", "optspace"]

#: The longest step tried. The authors' program halves from 0.1; this lies on the same grid of
#: steps, four doublings up, since small matrices need longer ones.
LONGEST_STEP = 1.6


@dataclass(frozen=True, eq=False)
class Completion:
    """A completed matrix as factors, with how it was come by."""

    #: K×rank and L×rank, orthonormal columns. A line without any entry is NaN.
    U: Floats
    V: Floats
    #: Of the completed matrix, largest first.
    singular_values: Floats
    rank: int
    #: Whether the rank was guessed from the data.
    rank_guessed: bool
    #: Entries that were seen.
    entries: int
    #: Root mean square of completed less seen entries: at the start and after every iteration.
    residuals: Floats
    #: Whether the descent came to rest; otherwise it ran out of iterations.
    converged: bool

    @property
    def iterations(self) -> int:
        """Steps that were taken."""
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
            "rows": len(self.U),
            "columns": len(self.V),
            "empty_rows": int(np.isnan(self.U[:, 0]).sum()),
            "empty_columns": int(np.isnan(self.V[:, 0]).sum()),
            "entries": self.entries,
            "iterations": self.iterations,
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
) -> Completion:
    """Complete a matrix of low rank from some of its entries, exact or noisy.

    Minimises Σ ((X·S·Yᵀ)ᵢⱼ − Mᵢⱼ)² over the entries seen: overfull lines are trimmed, the best
    approximation of the given rank gives the first column spaces X and Y, then each iteration
    moves these against the gradient on their Grassmann manifolds and solves for S exactly.

    Parameters
    ----------
    matrix
        K×L numbers, NaN where one is missing.
    rank
        Of the completed matrix; by default it is guessed, see `guess_rank`.
    iterations
        Steps at most. Each costs a few passes over the full matrix, and rank⁶ for S.
    tolerance
        The descent is at rest once the residual is this small against the entries, or an
        iteration lowers it by no larger part than this.

    Returns
    -------
    Completion
        The factors, `matrix`, the rank, residuals and whether the descent came to rest.

    Notes
    -----
    Ratings are noisy and the descent is slow along weak directions, so that 50 iterations, the
    number in the authors' program, leave it far from rest. That is as much a feature: stopping
    early keeps the weak directions from fitting noise.

    The paper's trimming sets overfull lines to zero, the authors' program drops entries of theirs
    at random until twice the average is left. Here they are weighted down to that, which agrees
    with the program on average and is the same each time. The guess of the rank and the descent
    use all entries. As in the program, the paper's penalty on uneven rows is left out.

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
    Theory 56, 2010. Keshavan, Montanari, Oh: Matrix completion from noisy entries. JMLR 11, 2010.
    """
    M, mask = observed("matrix", matrix)
    rows: Bools = np.asarray(mask.any(axis=1))
    columns: Bools = np.asarray(mask.any(axis=0))
    iterations = checks.integer("iterations", iterations, 0)
    tolerance = checks.number("tolerance", tolerance, 0)
    if rank is not None:
        rank = checks.integer("rank", rank, 1, int(min(rows.sum(), columns.sum())))
    # Nothing can be said of a line without entries, and it must not dilute the averages.
    M, mask = M[np.ix_(rows, columns)], mask[np.ix_(rows, columns)]
    n, m = M.shape
    # In units of the largest entry, squares neither overflow nor vanish.
    unit = float(np.abs(M).max()) or 1.0
    M /= unit
    r = rank or from_values(leading(M, VALUES)[1], M.shape, int(mask.sum()))
    # The authors' units, in which their steps are meant: entries of size √r, XᵀX = n, YᵀY = m.
    typical = math.sqrt(np.vdot(M, M) / mask.sum()) or 1.0
    M *= math.sqrt(r) / typical
    unit *= typical / math.sqrt(r)
    X, _, Y = leading(_trimmed(M, mask), r)
    X, S, Y, residuals, converged = _descend(
        Entries(M, mask), X * math.sqrt(n), Y * math.sqrt(m), iterations, tolerance
    )
    left, values, right = np.linalg.svd(S)
    U, V = np.full((len(rows), r), np.nan), np.full((len(columns), r), np.nan)
    U[rows], V[columns] = X @ left / math.sqrt(n), Y @ right.T / math.sqrt(m)
    return Completion(
        U=U,
        V=V,
        singular_values=values * math.sqrt(n * m) * unit,
        rank=r,
        rank_guessed=rank is None,
        entries=int(mask.sum()),
        residuals=np.array(residuals) * unit,
        converged=converged,
    )


def _trimmed(M: Floats, mask: Bools) -> Floats:
    """`M` with lines that have over twice the average number of entries weighted down to that."""
    for axis in (0, 1):
        count = mask.sum(axis=axis, keepdims=True)
        M = M * np.minimum(1.0, 2 * count.mean() / count)
    return M


def _descend(
    entries: Entries, X: Floats, Y: Floats, iterations: int, tolerance: float
) -> tuple[Floats, Floats, Floats, list[float], bool]:
    """X, S and Y; the residuals; whether the descent came to rest."""
    n, m = entries.M.shape
    r = X.shape[1]
    residuals: list[float] = []
    while True:
        S = entries.best_S(X, Y)
        residual, W, Z = entries.residual(X, S, Y)
        residuals.append(residual)
        # Entries have size √r.
        converged = residual <= tolerance * math.sqrt(r) or (
            len(residuals) > 1 and residual >= (1 - tolerance) * residuals[-2]
        )
        if converged or len(residuals) > iterations:
            return X, S, Y, residuals, converged
        # S is the best, so XᵀRY = 0: the gradients have no part within the subspaces to take off.
        step = _step(*entries.quartic(X, S, Y, -W, -Z), float(np.vdot(W, W) + np.vdot(Z, Z)))
        # Back onto the manifolds. Another basis of the same subspace is as good: S follows.
        X = np.linalg.qr(X - step * W)[0] * math.sqrt(n)
        Y = np.linalg.qr(Y - step * Z)[0] * math.sqrt(m)


def _step(c2: float, c3: float, c4: float, slope: float) -> float:
    """The longest step on the grid that brings at least half of what the slope promises.

    Written without the residual itself, which would drown the difference near the end.
    """
    t = LONGEST_STEP
    while ((c4 * t + c3) * t + c2) * t > slope / 2:
        t /= 2
    return t
