"""KL-UCB as it is written: the index of every pair in every step.

The methods are plain Python; comparisons run them compiled. Indices are found by bisection from
the definition, or, to compare rounding too, by the policy's own solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit
from rank1.divergences import kl_upper
from rank1.policies.base import Known, Policy


@jit
def kl(p: float, q: float) -> float:
    """Divergence of Bernoulli laws, with 0·log 0 = 0."""
    total = 0.0
    if p > 0:
        total += p * math.log(p / q)
    if p < 1:
        total += (1 - p) * math.log((1 - p) / (1 - q))
    return total


@jit
def bisected(mean: float, T: int, level: float) -> float:
    """max{q : T·kl(mean, q) ≤ level}."""
    low, high = mean, 1.0
    for _ in range(60):
        q = (low + high) / 2
        if q <= mean or q >= 1.0:
            break
        if T * kl(mean, q) <= level:
            low = q
        else:
            high = q
    return low


@jit
def literal_level(t: int, c: float) -> float:
    if t == 1:
        return 0.0
    return max(0.0, math.log(t) + c * math.log(math.log(t)))


class LiteralKLUCBState(NamedTuple):
    c: NDArray[np.float64]
    bisect: NDArray[np.bool_]
    t: NDArray[np.int64]
    issued: NDArray[np.bool_]
    T: NDArray[np.int64]
    sums: NDArray[np.float64]

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.T.shape
        for i in range(K):
            for j in range(L):
                if not self.issued[i, j]:
                    self.issued[i, j] = True
                    return i, j, 1
        row, column, largest = 0, 0, -math.inf
        level = literal_level(self.t[0], self.c[0])
        for i in range(K):
            for j in range(L):
                T = self.T[i, j]
                if T > 0:
                    mean = self.sums[i, j] / T
                    if self.bisect[0]:
                        index = bisected(mean, T, level)
                    else:
                        index = kl_upper(mean, level / T)
                    if index > largest:
                        row, column, largest = i, j, index
        return row, column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.t[0] += 1
        self.T[row, column] += 1
        self.sums[row, column] += reward

    def forget(self, row: int, column: int, tag: int) -> LiteralKLUCBState:
        if tag == 1:
            self.issued[row, column] = False
        return self


@dataclass(frozen=True)
class LiteralKLUCB(Policy):
    name = "literal_kl_ucb"
    c: float = 3.0
    bisect: bool = False

    def start(self, known: Known) -> LiteralKLUCBState:
        shape = known.K, known.L
        return LiteralKLUCBState(
            np.array([self.c]),
            np.array([self.bisect]),
            np.zeros(1, np.int64),
            np.zeros(shape, np.bool_),
            np.zeros(shape, np.int64),
            np.zeros(shape),
        )
