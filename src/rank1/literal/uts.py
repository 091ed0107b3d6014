"""UTS, literally: all means and all K + L − 1 samples in every step.

Trinh, Kaufmann, Vernade, Combes: Solving Bernoulli rank-one bandits with unimodal Thompson
sampling. ALT 2020.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.policies.base import Known

Ints = NDArray[np.int64]


class LiteralUTS(NamedTuple):
    """A pair's posterior is Beta(1 + successes, 1 + failures), with T the sum of both."""

    gamma: NDArray[np.float64]  # γ, one number
    first_round: NDArray[np.bool_]  # one number
    successes: Ints
    T: Ints  # rewards of each pair
    sums: NDArray[np.float64]  # of rewards
    led: Ints  # how often a pair has been the leader
    uniform: NDArray[np.float64]  # one number, to decide whether the next reward is a success

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.sums.shape
        # The leader has the largest mean; of several, one at random.
        row, column, tied, largest = 0, 0, 0, -1.0
        for i in range(K):
            for j in range(L):
                if self.first_round[0] and self.T[i, j] == 0:  # every pair once
                    self.uniform[0] = rng.random()
                    return i, j, 0
                mean = self.sums[i, j] / max(1, self.T[i, j])  # 0 where nothing is known
                if mean > largest:
                    row, column, tied, largest = i, j, 1, mean
                elif mean == largest:
                    tied += 1
        if tied > 1:
            place = int(rng.random() * tied)
            for i in range(K):
                for j in range(L):
                    if self.sums[i, j] / max(1, self.T[i, j]) == largest:
                        if place == 0:
                            row, column = i, j
                        place -= 1
        self.led[row, column] += 1
        best_row, best_column, best = row, column, -1.0
        if self.led[row, column] % self.gamma[0] != 0:
            # Thompson sampling among the leader's row, then the rest of its column.
            for k in range(L + K):
                i, j = (row, k) if k < L else (k - L, column)
                if k < L or i != row:
                    won = self.successes[i, j]
                    sample = rng.beta(1.0 + won, 1.0 + self.T[i, j] - won)
                    if sample > best:
                        best_row, best_column, best = i, j, sample
        self.uniform[0] = rng.random()
        return best_row, best_column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.T[row, column] += 1
        self.sums[row, column] += reward
        if self.uniform[0] < reward:
            self.successes[row, column] += 1


def literal_uts(known: Known, gamma: float = 2, first_round: bool = True) -> LiteralUTS:
    """The settings are those of `rank1.UTS`."""
    shape = known.K, known.L
    return LiteralUTS(
        np.array([float(gamma)]),
        np.array([first_round]),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros(1),
    )
