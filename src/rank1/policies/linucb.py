"""LinUCB: linear regression on two-hot features, with a confidence ellipsoid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import jit
from rank1.policies.base import Known, Policy
from rank1.policies.two_hot import (
    REPORTS,
    TwoHotState,
    absorb,
    is_afresh,
    pick,
    start_two_hot,
)

__all__ = ["LinUCB"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# What the entries of `settings` are: c = SCALE·(NOISE·√SQUARE + BIAS).
RIDGE = 0  # λ
SCALE = 1
NOISE = 2  # R
SQUARE = 3  # d·log((1 + 2n/λ)/δ), or log det(V/λ) + 2·log(1/δ)
BIAS = 4  # √λ·S
GROWS = 5  # whether SQUARE has the determinant
EPSILON = 6  # 0 where rewards are taken as they are


class LinUCBState(TwoHotState):
    """`estimate` is θ, `totals` is Σ y x."""

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """Add the reward to the regression, and find the next pair."""
        settings, theta = self.settings, self.estimate
        K, L = self.counts.shape
        y = math.log(max(reward, settings[EPSILON])) if settings[EPSILON] > 0 else reward
        self.totals[row] += y
        self.totals[K + column] += y
        w2 = absorb(
            self.at, self.counts, self.A, self.pending, self.z, self.bound,
            row, column, settings[RIDGE],
        )  # fmt: skip
        step = (y - (theta[row] + theta[K + column])) / math.sqrt(1 + w2)
        for k in range(K + L):
            theta[k] += step * self.z[k]
        if is_afresh(self.at[REPORTS], K + L):
            refine(theta, self.totals, self.counts, self.A, self.z, settings[RIDGE])
        if settings[GROWS] > 0:
            settings[SQUARE] += math.log1p(w2)  # det(V + x xᵀ) = det V·(1 + w²)
        c = settings[SCALE] * (settings[NOISE] * math.sqrt(settings[SQUARE]) + settings[BIAS])
        for i in range(K):
            self.value[i] = theta[i] / c
        for j in range(L):
            self.offset[j] = theta[K + j] / c
        pick(
            self.at, self.A, self.pending, self.bound,
            self.value, self.slope, self.offset, self.top, L,
        )  # fmt: skip

    def best(self) -> tuple[int, int]:
        """The pair of the largest xᵀθ among those with reports."""
        K = len(self.counts)
        return self.best_of(self.estimate[:K, None] + self.estimate[K:])


@jit
def refine(
    theta: Floats, totals: Floats, counts: Ints, A: Floats, rest: Floats, ridge: float
) -> None:
    """θ + A(Σ y x - Vθ), for an A just computed: takes the rounding errors out of θ."""
    K, L = counts.shape
    for k in range(K + L):
        rest[k] = totals[k] - ridge * theta[k]
    for i in range(K):
        for j in range(L):
            part = counts[i, j] * (theta[i] + theta[K + j])
            rest[i] -= part
            rest[K + j] -= part
    for r in range(K + L):
        for k in range(K + L):
            theta[r] += A[r, k] * rest[k]


@dataclass(frozen=True)
class LinUCB(Policy):
    """Ridge regression of rewards on row plus column, and the pair of the largest upper bound.

    The index of a pair with feature x, ones at its row and its column, is
    xᵀθ + confidence_scale·β·‖x‖ in the norm of V⁻¹, where V = ridge·I + Σ x xᵀ.

    Parameters
    ----------
    confidence_scale
        Factor on the radius β. The paper tries 1 and 1/3.
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
        Where the logarithm is cut, above 0 and below 1.

    Notes
    -----
    For rewards of 0 and 1 the logarithm is the affine map |log ε|·(reward - 1). R and the bound
    √d of θ are scaled by |log ε| with it, so that both ways of regression play alike.

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
    """

    name = "linucb"
    confidence_scale: float = 1.0
    radius: str = "horizon"
    noise: float = 0.5
    ridge: float = 1.0
    reward: str = "product"
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        checks.number("confidence_scale", self.confidence_scale, 0, above=True)
        checks.one_of("radius", self.radius, ["horizon", "determinant"])
        checks.number("noise", self.noise, 0)
        checks.number("ridge", self.ridge, 0, above=True)
        checks.one_of("reward", self.reward, ["product", "log"])
        if checks.number("epsilon", self.epsilon, 0, above=True) >= 1:
            raise ValueError(f"epsilon must be a number above 0 and below 1, got {self.epsilon}")

    def start(self, known: Known) -> LinUCBState:
        """The state before the first step."""
        d, n = known.K + known.L, known.n
        log, grows = self.reward == "log", self.radius == "determinant"
        unit = abs(math.log(self.epsilon)) if log else 1.0
        square = 2 * math.log(n) if grows else d * math.log((1 + 2 * n / self.ridge) * n)
        settings = [0.0] * 7
        settings[RIDGE], settings[SCALE] = self.ridge, self.confidence_scale
        settings[NOISE], settings[BIAS] = unit * self.noise, unit * math.sqrt(self.ridge * d)
        settings[SQUARE], settings[GROWS] = square, float(grows)
        settings[EPSILON] = self.epsilon if log else 0.0
        return start_two_hot(LinUCBState, known, settings, estimate=0.0)
