"""Low-rank completion by alternating least squares, accelerated by limited-memory BFGS.

Given X, the best Y for Σ (X·Yᵀ − M)² solves a small least-squares problem per column. So the sum of
squares is a function of X alone. A step of alternating least squares, which moves X to the best for
that Y, is Newton's step except for the reaction of Y: BFGS learns that part on the way.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from rank1.paper.completion.entries import Entries, Fit, Floats, at_rest

__all__ = ["alternate"]

#: Steps, and the change of the gradient along each.
Memory = deque[tuple[Floats, Floats]]

#: A penalty the size of rounding: among equally good fits, it picks a small one.
LEAST = 1e-12
#: The number of steps to remember.
MEMORY = 10
#: A step must achieve this fraction of what its slope promises, or it is halved; how often at most.
PART, HALVINGS = 1e-4, 10


class _Point(NamedTuple):
    """X with the best Y for it: X·S·Yᵀ, with orthonormal Y."""

    X: Floats
    S: Floats
    Y: Floats
    #: Root mean square over the entries.
    residual: float
    #: Half of the sum of squares with the penalty, and its gradient in X.
    half: float
    by_X: Floats
    #: As in `Fit`.
    gradient: float


def alternate(
    entries: Entries, X: Floats, iterations: int, tolerance: float, penalty: float
) -> Fit:
    """Minimise the sum of squares plus penalty·‖X·S·Yᵀ‖², from the column space X."""
    rank = X.shape[1]
    penalty = max(penalty, LEAST)
    at = _point(entries, np.linalg.qr(X)[0], penalty)
    residuals = [at.residual]
    memory: Memory = deque(maxlen=MEMORY)
    while not at_rest(at.residual, at.gradient, rank, tolerance) and len(residuals) <= iterations:
        new = _shortened(entries, at, _step(entries, at, memory, penalty), penalty)
        if new is None:
            if not memory:
                break  # a plain step of least squares fails only due to rounding
            memory.clear()
            continue
        s, y = new.X - at.X, new.by_X - at.by_X
        if np.vdot(s, y) > 0:  # otherwise it says nothing about the curvature at a minimum
            memory.append((s, y))
        at = new
        residuals.append(at.residual)
    converged = at_rest(at.residual, at.gradient, rank, tolerance)
    X, T = np.linalg.qr(at.X)
    return Fit(X, T @ at.S, at.Y, residuals, at.gradient, converged)


def _point(entries: Entries, X: Floats, penalty: float) -> _Point:
    Y, T = np.linalg.qr(entries.best_Y(X, penalty))
    S = T.T
    residual, RY, _ = entries.residual(X, S, Y)
    XS = X @ S
    half = (entries.count * residual**2 + penalty * float(np.vdot(XS, XS))) / 2
    # Y is the best for X, so the gradient is entirely in X.
    E = RY + penalty * XS
    gradient = float(np.linalg.norm(E)) / math.sqrt(2 * half) if half > 0 else 0.0
    return _Point(X, S, Y, residual, half, E @ T, gradient)


def _step(entries: Entries, at: _Point, memory: Memory, penalty: float) -> Floats:
    """Minus the gradient times BFGS's inverse Hessian, which starts at that of least squares."""
    q = -at.by_X
    parts = []
    for s, y in reversed(memory):
        parts.append(float(np.vdot(s, q) / np.vdot(s, y)))
        q = q - parts[-1] * y
    q = entries.towards_best_X(at.Y @ at.S.T, q, penalty)
    for (s, y), part in zip(memory, reversed(parts), strict=True):
        q = q + (part - float(np.vdot(y, q) / np.vdot(s, y))) * s
    return q


def _shortened(entries: Entries, at: _Point, step: Floats, penalty: float) -> _Point | None:
    """The point that the step leads to, halved until it achieves enough; None if it never does."""
    promised = float(np.vdot(at.by_X, step))
    if promised >= 0:
        return None
    for k in range(HALVINGS):
        new = _point(entries, at.X + step / 2**k, penalty)
        # Near the end the difference is lost in rounding; the gradient stays exact for longer.
        if new.half <= at.half * (1 + 1e-14) + PART * promised / 2**k:
            return new
    return None
