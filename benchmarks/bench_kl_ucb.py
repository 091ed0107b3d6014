"""KL-UCB beside the compiled plain argmax."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.timing import cpu_seconds
from rank1.divergences import kl_level, kl_upper
from rank1.policies.base import Known, Policy


class PlainState(NamedTuple):
    t: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        K, L = self.counts.shape
        if self.t[0] < K * L:
            return self.t[0] // L, self.t[0] % L, 0
        row, column, largest = 0, 0, -math.inf
        level = kl_level(self.t[0], 3.0)
        for i in range(K):
            for j in range(L):
                T = self.counts[i, j]
                index = kl_upper(self.sums[i, j] / T, level / T)
                if index > largest:
                    row, column, largest = i, j, index
        return row, column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        self.t[0] += 1
        self.counts[row, column] += 1
        self.sums[row, column] += reward

    def best(self) -> tuple[int, int]:
        return 0, 0


@dataclass(frozen=True)
class Plain(Policy):
    """Every index in every step."""

    name = "plain"

    def start(self, known: Known) -> PlainState:
        shape = known.K, known.L
        return PlainState(np.zeros(1, np.int64), np.zeros(shape, np.int64), np.zeros(shape))


def seconds_a_step(policy: Policy, K: int, n: int, repeats: int = 3) -> float:
    """CPU time of a step on the paper's spike, reward and regret included."""
    problem = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)
    work = cpu_seconds(lambda: rank1.simulate(policy, problem, n, 1, seed=1), repeats)
    return work / n


def main() -> None:
    ours = {K: seconds_a_step(rank1.KLUCB(), K, 2_000_000) for K in (8, 16, 32)}
    for K, seconds in ours.items():
        target = " (at most 1500)" if K == 32 else ""
        print(f"KL-UCB, {K * K:4} pairs:            {seconds * 1e9:8.0f} ns a step{target}")
    plain = seconds_a_step(Plain(), 32, 5_000)
    print(
        f"plain argmax, 1024 pairs:      {plain * 1e9:8.0f} ns a step; "
        f"KL-UCB is {plain / ours[32]:.0f} times as fast"
    )


if __name__ == "__main__":
    main()
