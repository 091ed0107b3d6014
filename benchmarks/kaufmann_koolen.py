"""Kaufmann and Koolen's stopping rule for the best of several arms, with Bernoulli rewards.

Stop when, for the leader a and every other arm b, N_a·kl(a, m) + N_b·kl(b, m), with m their pooled
mean, exceeds 3·log(1 + log N_a) + 3·log(1 + log N_b) + 2·C_exp(½·log((arms − 1)/α)).

Kaufmann, Koolen: Mixture martingales revisited with applications to sequential tests and confidence
intervals. JMLR 22 (246), 2021. https://arxiv.org/abs/1811.11419 (Theorem 7, Section 5.1.)

The formula and its constants are those of another implementation, `Tconf` and `beta_threshold` in
https://github.com/rssalessio/OSRL-SC (src/math_func_cython.pyx), except for the point at which the
two pieces of h̃ meet. h̃ is the minimum of z·(y − log log z) over bases z up to 3/2, so the pieces
meet smoothly at y = h(1/log 1.5) = 1.56. That implementation continues with the second piece up to
h⁻¹(1/log 1.5) = 3.80: up to 7% more for few arms, and the same for 64 arms at α = 0.05.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

from rank1.grid import Grid
from rank1.stopping.evalues import log_loss

__all__ = ["KaufmannKoolen", "c_exp"]


def c_exp(x: float) -> float:
    """C_exp(x) = 2·h̃((h⁻¹(1 + x) + log(2·ζ(2)))/2), about x + 4·log(1 + x + √(2x)).

    >>> round(c_exp(5.0), 2), round(c_exp(30.0), 2)
    (15.19, 43.86)
    """
    y = (_h_inverse(1 + x) + math.log(math.pi**2 / 3)) / 2
    end = 1 / math.log(1.5)
    if y >= end - math.log(end):  # both pieces are equal at this point
        u = _h_inverse(y)
        return 2 * math.exp(1 / u) * u
    return 2 * 1.5 * (y - math.log(math.log(1.5)))


def _h_inverse(x: float) -> float:
    """Return the u ≥ 1 with u − log u = x."""
    return float(-lambertw(-math.exp(-x), -1).real)


@dataclass(frozen=True)
class KaufmannKoolen:
    """The rule in the form of `rank1.simulation.stop`; it looks every `arms` pulls."""

    alpha: float

    def start(self, grid: Grid) -> Evidence:
        """Return the state before the first pull."""
        level = 2 * c_exp(math.log((grid.arms - 1) / self.alpha) / 2)
        return Evidence(np.array([level]), np.zeros(1, np.int64), *np.zeros((2, grid.arms)))


class Evidence(NamedTuple):
    """The rewards seen so far."""

    level: NDArray[np.float64]
    pulls: NDArray[np.int64]
    successes: NDArray[np.float64]
    failures: NDArray[np.float64]

    def learn(self, arm: int, reward: float) -> None:
        """Add a reward of an arm."""
        self.pulls[0] += 1
        self.successes[arm] += reward
        self.failures[arm] += 1.0 - reward

    def may_stop(self, state: Any) -> bool:
        """Tell whether the leader is better than every other arm."""
        arms = len(self.successes)
        if self.pulls[0] % arms > 0:
            return False
        a, best = 0, -1.0
        for k in range(arms):
            count = self.successes[k] + self.failures[k]
            if count < 1.0:
                return False
            if self.successes[k] / count > best:
                a, best = k, self.successes[k] / count
        s_a, f_a = self.successes[a], self.failures[a]
        for b in range(arms):
            s_b, f_b = self.successes[b], self.failures[b]
            m = (s_a + s_b) / (s_a + f_a + s_b + f_b)
            price = 3 * math.log(1 + math.log(s_a + f_a)) + 3 * math.log(1 + math.log(s_b + f_b))
            evidence = log_loss(s_a, f_a, m) + log_loss(s_b, f_b, m)
            if b != a and not evidence > self.level[0] + price:
                return False
        return True

    def leader(self) -> int:
        """Return the arm with the largest mean."""
        return int(np.argmax(self.successes / np.maximum(self.successes + self.failures, 1)))
