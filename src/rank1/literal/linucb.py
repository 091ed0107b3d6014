"""LinUCB, literally: inverts V and computes all indices in every step.

Abbasi-Yadkori, Pál, Szepesvári: Improved algorithms for linear stochastic bandits. NIPS 2011. θ and
the index are those of its Figure 1 (OFUL); the radius with the determinant is that of Theorem 2,
whose second form is the radius with the horizon.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known

Floats = NDArray[np.float64]


class LiteralLinUCB:
    """The settings are those of `rank1.LinUCB`."""

    def __init__(
        self,
        known: Known,
        confidence_scale: float = 1.0,
        radius: str = "horizon",
        noise: float = 0.5,
        ridge: float = 1.0,
        reward: str = "product",
        epsilon: float = 0.01,
    ) -> None:
        self.K, self.L, self.n, self.d = known.K, known.L, known.n, known.K + known.L
        self.scale, self.radius, self.ridge = confidence_scale, radius, ridge
        self.epsilon = epsilon if reward == "log" else None
        unit = abs(math.log(epsilon)) if reward == "log" else 1.0
        self.R, self.S = unit * noise, unit * math.sqrt(self.d)
        self.V = ridge * np.eye(self.d)
        self.b = np.zeros(self.d)

    def x(self, row: int, column: int) -> Floats:
        x = np.zeros(self.d)
        x[row] = x[self.K + column] = 1
        return x

    def beta(self) -> float:
        delta = 1 / self.n
        if self.radius == "horizon":
            root = math.sqrt(self.d * math.log((1 + 2 * self.n / self.ridge) / delta))
        else:
            log_det = np.linalg.slogdet(self.V / self.ridge).logabsdet
            root = math.sqrt(log_det + 2 * math.log(1 / delta))
        return self.R * root + math.sqrt(self.ridge) * self.S

    def means_and_bonuses(self) -> tuple[Floats, Floats]:
        theta = np.linalg.solve(self.V, self.b)
        means = theta[: self.K, None] + theta[self.K :]
        return means, self.scale * self.beta() * widths(self.V, self.K)

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return first_largest(*self.means_and_bonuses()), 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        y = reward if self.epsilon is None else math.log(max(reward, self.epsilon))
        x = self.x(*divmod(arm, self.L))
        self.V += np.outer(x, x)
        self.b += y * x


def widths(V: Floats, K: int) -> Floats:
    """The square root of xᵀV⁻¹x for every pair."""
    inverse = np.linalg.inv(V)
    diagonal = np.diag(inverse)
    return np.sqrt(diagonal[:K, None] + diagonal[K:] + 2 * inverse[:K, K:])


def first_largest(means: Floats, bonuses: Floats) -> int:
    """The first arm whose index is the largest up to rounding."""
    indices, at = means + bonuses, int((means + bonuses).argmax())
    largest = indices.flat[at]
    return int((indices >= largest - 1e-11 * (abs(largest) + bonuses.flat[at])).argmax())
