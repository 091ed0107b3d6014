"""OptSpace's own method: gradient descent over pairs of subspaces."""

from __future__ import annotations

import math

import numpy as np

from rank1.paper.completion.entries import Entries, Fit, Floats, at_rest

__all__ = ["descend"]

#: The longest step to try. The authors' program halves from 0.1; this lies on the same grid of
#: steps, four doublings up, since small matrices need longer steps.
LONGEST_STEP = 1.6


def descend(entries: Entries, X: Floats, Y: Floats, iterations: int, tolerance: float) -> Fit:
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
