"""OSUB, beside a scan of all means and K + L − 1 solved indices in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.bench_thompson import compare
from rank1.divergences import kl_level, kl_upper

Ints = NDArray[np.int64]


class PlainState(NamedTuple):
    sums: NDArray[np.float64]
    counts: Ints
    led: Ints
    t: Ints

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.sums.shape
        largest, row, column = -1.0, 0, 0
        for i in range(K):
            for j in range(L):
                if self.counts[i, j] == 0:
                    return i, j, 0
                mean = self.sums[i, j] / self.counts[i, j]
                if mean > largest:
                    largest, row, column = mean, i, j
        self.led[row, column] += 1
        if self.led[row, column] % (K + L - 1) == 0:
            return row, column, 0
        level = kl_level(self.t[0], 3.0)
        best, best_row, best_column = -1.0, 0, 0
        for k in range(K + L):
            i, j = (k, column) if k < K else (row, k - K)
            if k == row:  # comes again in its row
                continue
            count = self.counts[i, j]
            index = kl_upper(self.sums[i, j] / count, level / count)
            if index > best or (index == best and (i, j) < (best_row, best_column)):
                best, best_row, best_column = index, i, j
        return best_row, best_column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.sums[row, column] += reward
        self.counts[row, column] += 1
        self.t[0] += 1


@dataclass(frozen=True)
class Plain(rank1.Policy):
    name = "plain"

    def start(self, known: rank1.Known) -> PlainState:
        shape = known.K, known.L
        counts, led = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        return PlainState(np.zeros(shape), counts, led, np.zeros(1, np.int64))


def main() -> None:
    for K in (8, 16, 32):
        compare(rank1.OSUB(), Plain(), K, 50_000)


if __name__ == "__main__":
    main()
