"""Standardised Thompson sampling: the levels of each side compete separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, record
from rank1.policies.base import Known, Policy, Records, Simple, require_unit_rewards

__all__ = ["FactorTS"]

Floats = NDArray[np.float64]

#: The number of times that a fit passes over all sides.
PASSES = 2
#: The next fit is due when the number of reports has grown by one part in this number.
GROWTH = 50
#: Prior successes of a level, at the average rate: they keep estimates away from 0.
PRIOR = 2.0

AT = record("reports", "due")


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # the number of reports, and the number at which the next fit is due
    sums: Floats
    counts: NDArray[np.int64]
    # For each level, one side after another:
    factors: Floats  # relative to the largest of its side
    won: Floats  # the sum of rewards
    exposure: Floats  # standardised pulls


class FactorTSState(_Arrays, Simple):
    """Sums and counts of the arms, the fitted factors, and the posterior of each level."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The level with the largest sample on each side. Draws one sample per level."""
        arm, at = 0, 0
        for side in self.limits:
            level, largest = 0, -1.0
            for k in range(side.levels):
                won, exposure = self.won[at + k], self.exposure[at + k]
                sample = rng.beta(1.0 + won, 1.0 + max(0.0, exposure - won))
                if sample > largest:
                    level, largest = k, sample
            arm += level * side.stride
            at += side.levels
        return arm, 0

    def load(self, arm: int, count: int, total: float) -> None:
        """Count the rewards."""
        learn(self, arm, count, total)

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Count the reward."""
        learn(self, arm, 1, reward)

    def best(self) -> int:
        """The arm with the largest fitted factors."""
        arm, at = 0, 0
        for side in self.limits:
            arm += int(self.factors[at : at + side.levels].argmax()) * int(side.stride)
            at += side.levels
        return arm


@jit
def learn(state: FactorTSState, arm: int, count: int, total: float) -> None:
    """Add rewards of an arm, with their sum."""
    limits, at, begin = state.limits, state.at[0], 0
    state.sums[arm] += total
    state.counts[arm] += count
    for side in range(len(limits)):
        level = begin + arm // limits[side].stride % limits[side].levels
        state.won[level] += total
        state.exposure[level] += count * others(limits, state.factors, arm, side)
        begin += limits[side].levels
    at.reports += count
    if at.reports >= at.due:
        fit(state)
        at.due = at.reports + 1 + at.reports // GROWTH


@jit
def others(limits: Records, factors: Floats, arm: int, side: int) -> float:
    """The product of the factors of an arm's levels on all sides but one."""
    product, at = 1.0, 0
    for d in range(len(limits)):
        if d != side:
            product *= factors[at + arm // limits[d].stride % limits[d].levels]
        at += limits[d].levels
    return product


@jit
def expose(state: FactorTSState, side: int, at: int) -> float:
    """Compute the exposure of each level of a side. Returns their sum."""
    stride, levels = state.limits[side].stride, state.limits[side].levels
    state.exposure[at : at + levels] = 0.0
    total = 0.0
    for arm in range(len(state.counts)):
        if state.counts[arm] > 0:
            more = state.counts[arm] * others(state.limits, state.factors, arm, side)
            state.exposure[at + arm // stride % levels] += more
            total += more
    return total


@jit
def fit(state: FactorTSState) -> None:
    """Fit the factors by alternating ratios, starting from the last fit; update the exposures."""
    for _ in range(PASSES):
        at = 0
        for side in range(len(state.limits)):
            exposed, levels = expose(state, side, at), state.limits[side].levels
            won = 0.0
            for k in range(at, at + levels):
                won += state.won[k]
            rate = (won + 1.0) / (exposed + 1.0)
            top = 0.0
            for k in range(at, at + levels):
                state.factors[k] = (state.won[k] + PRIOR) / (state.exposure[k] + PRIOR / rate)
                top = max(top, state.factors[k])
            for k in range(at, at + levels):
                state.factors[k] /= top
            at += levels
    at = 0
    for side in range(len(state.limits)):
        expose(state, side, at)
        at += state.limits[side].levels


@dataclass(frozen=True)
class FactorTS(Policy):
    """Thompson sampling of each side's levels, as if the other sides always showed their best.

    A level that was shown beside poor levels looks poor. So its pulls are standardised: a pull of
    arm x counts as ∏ f(x_e)/max f over the other sides e, where f are factors, fitted to all
    reports by alternating ratios. A level with reward sum S and exposure N (its standardised pulls)
    has the posterior Beta(1 + S, 1 + (N − S)⁺), and each side shows the level with the largest
    sample. On one side this is Thompson sampling.

    Notes
    -----
    There is no proof, and it relies on rank one: if a level is the best beside some levels and not
    beside others, it may settle on a poor arm permanently.

    The fit is f(l) = (S_l + 2)/(N_l + 2/g), where g is the same ratio over all levels of the side,
    in two passes over the sides. A fit is due when the number of reports has grown by 2%; in
    between, a report changes S and N using the factors of the last fit. So a step costs one sample
    per level, and the cost of a fit, which visits all arms, is negligible.

    Examples
    --------
    >>> import rank1
    >>> problem = rank1.Product([[0.8, 0.6, 0.6], [0.5, 0.9]])
    >>> result = rank1.simulate(rank1.FactorTS(), problem, n=20_000, runs=3, seed=1)
    >>> result.outcomes[0].best_arms
    [(0, 1), (0, 1), (0, 1)]

    References
    ----------
    A related method, which samples factors from a joint posterior: Hill, Nassif, Liu, Iyer,
    Vishwanathan: An efficient bandit algorithm for realtime multivariate optimization. KDD 2017.
    https://arxiv.org/abs/1810.09558

    Thompson: On the likelihood that one unknown probability exceeds another in view of the evidence
    of two samples. Biometrika 1933. https://doi.org/10.1093/biomet/25.3-4.285
    """

    name = "factor_ts"

    def start(self, known: Known) -> FactorTSState:
        """The state before the first step."""
        self.check(known.grid)
        require_unit_rewards(self.name, known)
        levels = sum(known.grid.sizes)
        return FactorTSState(
            known.limits,
            np.array([(0, 1)], AT),
            np.zeros(known.arms),
            np.zeros(known.arms, np.int64),
            np.ones(levels),
            np.zeros(levels),
            np.zeros(levels),
        )
