"""UCB1 as it is written: the index of every pair in every step.

The methods are plain Python; long comparisons run them compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known, Policy


class LiteralUCB1State(NamedTuple):
    a: NDArray[np.float64]
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
        for i in range(K):
            for j in range(L):
                if self.T[i, j] > 0:
                    mean = self.sums[i, j] / self.T[i, j]
                    index = mean + math.sqrt(self.a[0] * math.log(self.t[0]) / self.T[i, j])
                    if index > largest:
                        row, column, largest = i, j, index
        return row, column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.t[0] += 1
        self.T[row, column] += 1
        self.sums[row, column] += reward

    def forget(self, row: int, column: int, tag: int) -> LiteralUCB1State:
        if tag == 1:
            self.issued[row, column] = False
        return self


@dataclass(frozen=True)
class LiteralUCB1(Policy):
    name = "literal_ucb1"
    confidence: float = 2.0

    def start(self, known: Known) -> LiteralUCB1State:
        shape = known.K, known.L
        reach = known.high - known.low  # of the rewards; the radius grows with it
        w = max(1.0, reach) if math.isfinite(reach) else 1.0
        return LiteralUCB1State(
            np.array([self.confidence * w**2]),
            np.zeros(1, np.int64),
            np.zeros(shape, np.bool_),
            np.zeros(shape, np.int64),
            np.zeros(shape),
        )
