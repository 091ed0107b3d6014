"""GLM-UCB: row and column factors by online EM, with the widths of a linear model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rank1 import checks
from rank1.compiled import record
from rank1.errors import InputError
from rank1.policies.base import Deterministic, Known, require_unit_rewards
from rank1.policies.two_hot import TwoHotState, absorb, bound_products, pick, start_two_hot

__all__ = ["GLMUCB"]

#: The record `settings`: scale·ρ, and α.
SETTINGS = record(radius=float, step=float)


class GLMUCBState(TwoHotState):
    """`estimate` holds û, then v̂."""

    def update(self, arm: int, tag: int, reward: float) -> None:
        """One step of EM for the pulled row and column, then find the next pair."""
        settings, seen, estimate = self.settings[0], self.seen, self.estimate
        K = len(self.value)
        L = len(estimate) - K
        row = arm // L
        column = arm - row * L
        absorb(self.at, seen, self.A, self.pending, self.z, self.bound, self.top, row, column)
        u, v = estimate[row], estimate[K + column]
        # After a failure at least one factor was 0. That is impossible if both estimates are 1;
        # use the limit of u = v → 1 then.
        u_failure, v_failure = 0.5, 0.5
        if u * v < 1:
            u_failure = u * (1 - v) / (1 - u * v)
            v_failure = v * (1 - u) / (1 - u * v)
        u_step = (seen[row] + 1.0) ** -settings.step
        v_step = (seen[K + column] + 1.0) ** -settings.step
        estimate[row] += u_step * (reward + (1 - reward) * u_failure - u)
        estimate[K + column] += v_step * (reward + (1 - reward) * v_failure - v)
        self.value[row] = estimate[row] / settings.radius
        self.slope[column] = estimate[K + column]
        bound_products(self.bound, self.value, self.slope, self.top)
        pick(
            self.at, self.A, self.pending, self.bound,
            self.value, self.slope, self.offset, self.top,
        )  # fmt: skip


@dataclass(frozen=True)
class GLMUCB(Deterministic):
    """Play the pair with the largest û·v̂ + confidence_scale·ρ·‖x‖, with factors by online EM.

    The norm is that of (I + Σ x xᵀ)⁻¹, where x has ones at the row and the column of a pair. The
    radius is ρ = (2κ/c_μ)·√(2d·log n·log(2dn²)) with κ = √(3 + 2·log 5) and d = K + L.

    Parameters
    ----------
    confidence_scale
        Factor on the radius ρ. The paper uses 1 and 1/100.
    c_mu
        c_μ, the smallest slope of the mean function: the mean of the worst pair. None: taken from
        the problem, if it is known.
    step
        α: after N reports, a row or column moves by (N + 1)^-α towards its new expectation.

    Notes
    -----
    After a success both factors were 1; after a failure, E[u] = u(1 - v)/(1 - uv) and
    E[v] = v(1 - u)/(1 - uv). A reward between 0 and 1 counts as that fraction of a success. Only
    the products û·v̂ are identified, and only they are used.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.spike(K=4, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    >>> policy = rank1.GLMUCB(confidence_scale=0.01)
    >>> rank1.simulate(policy, problem, n=20_000, runs=3, seed=1).outcomes[0].best_pairs
    [(0, 0), (0, 0), (0, 0)]

    References
    ----------
    Filippi, Cappé, Garivier, Szepesvári: Parametric bandits: the generalized linear case. NIPS
    2010. https://papers.nips.cc/paper/4166-parametric-bandits-the-generalized-linear-case

    Cappé, Moulines: On-line expectation-maximization algorithm for latent data models. Journal of
    the Royal Statistical Society B 71, 2009. https://arxiv.org/abs/0712.4273
    """

    name = "glm_ucb"
    sides = 2
    layout = 2
    confidence_scale: float = 1.0
    c_mu: float | None = None
    step: float = 0.6

    def __post_init__(self) -> None:
        checks.number("confidence_scale", self.confidence_scale, 0, 1e9, above=True)
        if self.c_mu is not None:
            checks.number("c_mu", self.c_mu, 1e-9, 1)
        checks.number("step", self.step, 0, 1, above=True)

    @property
    def needs_truth(self) -> bool:
        """Without `c_mu`, it needs to know the lowest mean."""
        return self.c_mu is None

    def start(self, known: Known) -> GLMUCBState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        lowest = known.truth.lowest_mean if known.truth else None
        c_mu = lowest if self.c_mu is None else self.c_mu
        if c_mu is None or not c_mu > 0:
            what = "only known to simulations" if c_mu is None else "0 here"
            raise InputError(
                "c_mu",
                self.c_mu,
                f"given for {self.name}",
                f"it is the mean of the worst pair, which is {what}; set a number above 0, such as "
                "c_mu=0.1",
            )
        d, n = known.K + known.L, known.n
        kappa = math.sqrt(3 + 2 * math.log(1 + 2 * 2))
        rho = 2 * kappa / c_mu * math.sqrt(2 * d * math.log(n) * math.log(2 * d * n * n))
        # log n = 0 for n = 1: only the mean counts then.
        radius = max(self.confidence_scale * rho, 1e-300)
        settings = np.array([(radius, self.step)], SETTINGS)
        state = start_two_hot(GLMUCBState, known, 1.0, settings, estimate=0.5)
        state.value[:] = 0.5 / radius
        state.slope[:] = 0.5
        return state
