"""How many pulls it takes to know the best arm: the lower bound of fixed confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rank1 import checks
from rank1.problems import Problem
from rank1.problems.base import Floats
from rank1.theory.bounds import cross
from rank1.theory.kl import divergence

__all__ = ["CharacteristicTime", "characteristic_time"]

#: Halvings of an interval of 160 in the logarithm of a ratio of shares.
HALVINGS = 55


@dataclass(frozen=True)
class CharacteristicTime:
    """T* and the shares of pulls that attain it; what `characteristic_time` returns."""

    #: T*: pulls per unit of log(1/α).
    value: float
    #: By arm, with an axis for each side; they add up to 1, over the best arm and its neighbours.
    shares: Floats

    def pulls(self, confidence: float = 0.95) -> float:
        """T*·log(1/α) for α = 1 − confidence."""
        confidence = checks.number("confidence", confidence, 0, 1, below=True)
        return self.value * math.log(1 / (1 - confidence))


def characteristic_time(problem: Problem) -> CharacteristicTime:
    """T*: to name the best arm with error α takes at least about T*·log(1/α) pulls on average.

    1/T* = max over shares w of min over b of w_a·d(μ_a, m) + w_b·d(μ_b, m), where a is the best
    arm, b one of its neighbours (for two sides: another pair of its row or column), and
    m = (w_a·μ_a + w_b·μ_b)/(w_a + w_b). This is the bound for grids in which an arm that beats its
    neighbours is the best one, as in grids of rank one; it is asymptotic in α → 0.

    Parameters
    ----------
    problem
        `Product` (also `Bernoulli` and its kin) or `Gaussian`, with one best arm; for Bernoulli
        rewards its mean must be below 1, as for `unimodal_bound`.

    Returns
    -------
    CharacteristicTime
        With value 0 for a grid of one arm.

    Notes
    -----
    Solved as by Garivier and Kaufmann. With x = w_b/w_a the evidence against b is w_a·g_b(x), where
    g_b grows from 0 to d(μ_a, μ_b). At the optimum all g_b are one number y, which is the zero of
    Σ_b d(μ_a, m_b)/d(μ_b, m_b) − 1. Where all B neighbours are alike, the best arm's share is
    1/(1 + √B) for Gaussian rewards, and nearly that for Bernoulli ones.

    It is not a bound for policies that rely on rank one itself and not only on what follows for
    neighbours: there, other arms say something of the best one's levels, too. On the grid below
    shares exist that need 739 pulls where this bound says 888.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> best = theory.characteristic_time(rank1.spike(4, 4, 0.5, 0.5, 0.2, 0.2))
    >>> round(best.pulls(confidence=0.95))
    888
    >>> best.shares.round(3)[:2]
    array([[0.287, 0.119, 0.119, 0.119],
           [0.119, 0.   , 0.   , 0.   ]])

    References
    ----------
    Garivier, Kaufmann: Optimal best arm identification with fixed confidence. COLT 2016.
    https://arxiv.org/abs/1602.04589
    """
    from scipy.optimize import brentq

    sides = cross(problem)  # raises what a bound requires and the problem lacks
    shares = np.zeros(problem.arms)
    gaps = np.concatenate([gap for gap, _ in sides])
    if gaps.size == 0:
        shares[problem.best_arm] = 1
        return CharacteristicTime(0.0, shares.reshape(problem.grid.sizes))
    best = problem.best_mean
    others = best - gaps
    d = divergence(problem)
    assert d is not None

    def middle(x: Floats) -> Floats:
        # By the gap, so that it is never beyond either mean.
        return best - gaps * (x / (1 + x))

    def evidence(x: Floats) -> Floats:
        m = middle(x)
        return d.of(np.full_like(m, best), m) + x * d.of(others, m)

    def ratios(y: float) -> Floats:
        """The x at which each g_b(x) = y, by bisection of log x."""
        low, high = np.full(gaps.shape, -80.0), np.full(gaps.shape, 80.0)
        for _ in range(HALVINGS):
            x = (low + high) / 2
            short = evidence(np.exp(x)) < y
            low, high = np.where(short, x, low), np.where(short, high, x)
        return np.exp((low + high) / 2)

    def imbalance(y: float) -> float:
        m = middle(ratios(y))
        with np.errstate(divide="ignore"):
            total = (d.of(np.full_like(m, best), m) / d.of(others, m)).sum()
            return float(1 / (1 + 1 / total)) - 0.5  # from −½ to ½, and finite

    most = float(d.of(np.full_like(others, best), others).min())
    y = brentq(imbalance, 0.0, most, xtol=1e-15 * most, rtol=1e-13)
    x = ratios(y)
    share = 1 / (1 + x.sum())
    shares[problem.best_arm] = share
    shares[problem.grid.neighbours(problem.best_arm)] = share * x
    return CharacteristicTime(float(1 / (y * share)), shares.reshape(problem.grid.sizes))
