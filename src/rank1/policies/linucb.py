"""LinUCB: linear regression on two-hot features, with a confidence ellipsoid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rank1 import checks
from rank1.compiled import record
from rank1.policies.base import Deterministic, Known
from rank1.policies.two_hot import TwoHotState, absorb, bound_sums, pick, start_two_hot

__all__ = ["LinUCB"]

#: The record `settings`: c = scale·(noise·√square + bias).
SETTINGS = record(
    "grows",  # whether `square` contains the determinant
    scale=float,
    noise=float,  # R
    square=float,  # d·log((1 + 2n/λ)/δ), or log det(V/λ) + 2·log(1/δ)
    bias=float,  # √λ·S
    epsilon=float,  # 0 if rewards are used unchanged
)


class LinUCBState(TwoHotState):
    """`estimate` is θ."""

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Add the reward to the regression, and find the next pair."""
        settings, theta = self.settings[0], self.estimate
        K, d = len(self.value), len(theta)
        row = arm // (d - K)
        column = arm - row * (d - K)
        y = math.log(max(reward, settings.epsilon)) if settings.epsilon > 0 else reward
        w2 = absorb(
            self.at, self.seen, self.A, self.pending, self.z, self.bound, self.top, row, column
        )
        # θ = V⁻¹Σ y x moves by V⁻¹x·(y - xᵀθ), with the new V
        step = (y - (theta[row] + theta[K + column])) / math.sqrt(1 + w2)
        for k in range(d):
            theta[k] += step * self.z[k]
        if settings.grows:
            settings.square += math.log1p(w2)  # det(V + x xᵀ) = det V·(1 + w²)
        c = settings.scale * (settings.noise * math.sqrt(settings.square) + settings.bias)
        for i in range(K):
            self.value[i] = theta[i] / c
        for j in range(d - K):
            self.offset[j] = theta[K + j] / c
        bound_sums(self.bound, self.value, self.offset, self.top)
        pick(
            self.at, self.A, self.pending, self.bound,
            self.value, self.slope, self.offset, self.top,
        )  # fmt: skip


@dataclass(frozen=True)
class LinUCB(Deterministic):
    """Ridge regression of rewards on row plus column; play the pair with the largest upper bound.

    The index of a pair with feature x, ones at its row and its column, is
    xᵀθ + confidence_scale·β·‖x‖ in the norm of V⁻¹, where V = ridge·I + Σ x xᵀ.

    Parameters
    ----------
    confidence_scale
        Factor on the radius β. The paper uses 1 and 1/3.
    radius
        "horizon": β = R·√(d·log((1 + 2n/λ)·n)) + √(λd), fixed.
        "determinant": β = R·√(log det(V/λ) + 2·log n) + √(λd).
    noise
        R: rewards are R-sub-Gaussian around their mean. 1/2 holds for rewards in [0, 1]; for
        Gaussian rewards it is their standard deviation.
    ridge
        λ.
    reward
        "product" regresses the reward itself, "log" its logarithm log(max(reward, epsilon)),
        which would be linear in the features if rewards had no noise.
    epsilon
        The lower cut-off of the logarithm, above 0 and below 1.

    Notes
    -----
    For rewards of 0 and 1 the logarithm is the affine map |log ε|·(reward - 1). R and the bound
    √d of θ are scaled by |log ε| with it, so both ways of regression make the same choices.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> policy = rank1.LinUCB(confidence_scale=1 / 3)
    >>> rank1.simulate(policy, problem, n=20_000, runs=3, seed=1).outcomes[0].best_pairs
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Abbasi-Yadkori, Pál, Szepesvári: Improved algorithms for linear stochastic bandits. NIPS 2011.
    https://papers.nips.cc/paper/4417-improved-algorithms-for-linear-stochastic-bandits
    """

    name = "linucb"
    sides = 2
    layout = 2
    confidence_scale: float = 1.0
    radius: str = "horizon"
    noise: float = 0.5
    ridge: float = 1.0
    reward: str = "product"
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        checks.number("confidence_scale", self.confidence_scale, 0, 1e9, above=True)
        checks.one_of("radius", self.radius, ["horizon", "determinant"])
        checks.number("noise", self.noise, 0, 1e9)
        checks.number("ridge", self.ridge, 1e-9, 1e9)
        checks.one_of("reward", self.reward, ["product", "log"])
        checks.number("epsilon", self.epsilon, 0, 1, above=True, below=True)

    def start(self, known: Known) -> LinUCBState:
        """The state before the first step."""
        self.check(known.grid)
        d, n = known.K + known.L, known.n
        log, grows = self.reward == "log", self.radius == "determinant"
        unit = abs(math.log(self.epsilon)) if log else 1.0
        settings = np.zeros(1, SETTINGS)
        settings[0].grows = grows
        settings[0].scale = self.confidence_scale
        settings[0].noise = unit * self.noise
        settings[0].square = (
            2 * math.log(n) if grows else d * math.log((1 + 2 * n / self.ridge) * n)
        )
        settings[0].bias = unit * math.sqrt(self.ridge * d)
        settings[0].epsilon = self.epsilon if log else 0.0
        return start_two_hot(LinUCBState, known, self.ridge, settings, estimate=0.0)
