"""UTS, beside a scan of all means and K + L − 1 Beta samples in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.bench_thompson import compare

Ints = NDArray[np.int64]


class PlainState(NamedTuple):
    successes: Ints
    failures: Ints
    led: Ints

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.successes.shape
        largest, tied, row, column = -1.0, 0, 0, 0
        for i in range(K):
            for j in range(L):
                count = self.successes[i, j] + self.failures[i, j]
                if count == 0:
                    return i, j, 0
                mean = self.successes[i, j] / count
                if mean > largest:
                    largest, tied, row, column = mean, 1, i, j
                elif mean == largest:
                    tied += 1
                    if rng.random() * tied < 1.0:
                        row, column = i, j
        self.led[row, column] += 1
        if self.led[row, column] % 2 == 0:
            return row, column, 0
        best, best_row, best_column = -1.0, 0, 0
        for j in range(L):
            y = rng.beta(1.0 + self.successes[row, j], 1.0 + self.failures[row, j])
            if y > best:
                best, best_row, best_column = y, row, j
        for i in range(K):
            if i != row:
                y = rng.beta(1.0 + self.successes[i, column], 1.0 + self.failures[i, column])
                if y > best:
                    best, best_row, best_column = y, i, column
        return best_row, best_column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        if reward > 0.0:
            self.successes[row, column] += 1
        else:
            self.failures[row, column] += 1


@dataclass(frozen=True)
class Plain(rank1.Policy):
    name = "plain"

    def start(self, known: rank1.Known) -> PlainState:
        shape = known.K, known.L
        return PlainState(*(np.zeros(shape, np.int64) for _ in range(3)))


def main() -> None:
    compare(rank1.UTS(), Plain(), 8, 200_000)
    compare(rank1.UTS(), Plain(), 16, 200_000)
    compare(rank1.UTS(), Plain(), 32, 200_000, " (at most 2500, aim 500)")


if __name__ == "__main__":
    main()
