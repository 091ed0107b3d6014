"""GLM-UCB, literally: inverts M and computes all indices in every step.

Filippi, Cappé, Garivier, Szepesvári: Parametric bandits: the generalized linear case. NIPS 2010:
the index is that of its Algorithm 1, the radius ρ that of its analysis, with M = I + Σ x xᵀ.

Cappé, Moulines: On-line expectation-maximization algorithm for latent data models. Journal of the
Royal Statistical Society B 71, 2009: û and v̂.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rank1.literal.linucb import first_largest, widths
from rank1.policies.base import Known, require_truth

Floats = NDArray[np.float64]


class LiteralGLMUCB:
    """The settings are those of `rank1.GLMUCB`."""

    def __init__(
        self,
        known: Known,
        confidence_scale: float = 1.0,
        c_mu: float | None = None,
        step: float = 0.6,
    ) -> None:
        K, L, n = known.K, known.L, known.n
        if c_mu is None:
            c_mu = require_truth("glm_ucb", known).lowest_mean
        self.K, self.L, self.alpha = K, L, step
        d = K + L
        k_mu = R_max = lambda_0 = 1.0
        c_m2, delta = 2.0, 1 / n
        kappa = math.sqrt(3 + 2 * math.log(1 + 2 * c_m2 / lambda_0))
        root = math.sqrt(2 * d * math.log(n) * math.log(2 * d * n / delta))
        self.c = confidence_scale * 2 * k_mu * kappa * R_max / c_mu * root
        self.M = np.eye(d)
        self.u, self.v = np.full(K, 0.5), np.full(L, 0.5)
        self.N_u, self.N_v = np.zeros(K), np.zeros(L)

    def means_and_bonuses(self) -> tuple[Floats, Floats]:
        return np.outer(self.u, self.v), self.c * widths(self.M, self.K)

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return first_largest(*self.means_and_bonuses()), 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        row, column = divmod(arm, self.L)
        u, v = self.u[row], self.v[column]
        # E[u] and E[v] after a failure; a reward in between counts partly as a success
        u_0 = u * (1 - v) / (1 - u * v) if u * v < 1 else 0.5
        v_0 = v * (1 - u) / (1 - u * v) if u * v < 1 else 0.5
        self.N_u[row] += 1
        self.N_v[column] += 1
        self.u[row] += (self.N_u[row] + 1) ** -self.alpha * (reward + (1 - reward) * u_0 - u)
        self.v[column] += (self.N_v[column] + 1) ** -self.alpha * (reward + (1 - reward) * v_0 - v)
        x = np.zeros(self.K + self.L)
        x[row] = x[self.K + column] = 1
        self.M += np.outer(x, x)
