"""OSUB, literally: all means and all K + L − 1 indices, by bisection, in every step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit


@jit
def divergence(p: float, q: float) -> float:
    value = 0.0
    if p > 0:
        value += p * math.log(p / q)
    if p < 1:
        value += (1 - p) * math.log((1 - p) / (1 - q))
    return value


@jit
def index(mean: float, count: int, level: float) -> float:
    """max{q : T·kl(mean, q) ≤ level}."""
    low, high = mean, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if middle < 1 and count * divergence(mean, middle) <= level:
            low = middle
        else:
            high = middle
    return low


@jit
def pair_to_play(
    sums: NDArray[np.float64], counts: NDArray[np.int64], led: NDArray[np.int64], t: int, c: float
) -> tuple[int, int]:
    K, L = sums.shape
    leader = (0, 0)
    for i in range(K):
        for j in range(L):
            if counts[i, j] == 0:  # every pair once
                return i, j
            if sums[i, j] / counts[i, j] > sums[leader] / counts[leader]:
                leader = (i, j)
    led[leader] += 1
    if led[leader] % (K + L - 1) == 0:
        return leader
    level = 0.0
    if t > 1:
        level = max(0.0, math.log(t) + c * math.log(math.log(t)))
    best, winner = -1.0, leader
    for i in range(K):
        for j in range(L):
            if i == leader[0] or j == leader[1]:
                q = index(sums[i, j] / counts[i, j], counts[i, j], level)
                if q > best:
                    best, winner = q, (i, j)
    return winner


class LiteralOSUB:
    def __init__(self, K: int, L: int, c: float = 3.0) -> None:
        self.sums = np.zeros((K, L))
        self.counts, self.led = np.zeros((K, L), np.int64), np.zeros((K, L), np.int64)
        self.t, self.c = 0, c

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        return *pair_to_play(self.sums, self.counts, self.led, self.t, self.c), 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.sums[row, column] += reward
        self.counts[row, column] += 1
        self.t += 1
