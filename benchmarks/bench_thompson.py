"""Thompson sampling on 1024 pairs, beside one Beta sample of every pair in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.timing import cpu_seconds
from rank1.compiled import kernel
from rank1.simulation.loop import play

Ints = NDArray[np.int64]


class PlainState(NamedTuple):
    successes: Ints
    failures: Ints

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        best, row, column = -1.0, 0, 0
        for i in range(self.successes.shape[0]):
            for j in range(self.successes.shape[1]):
                y = rng.beta(1.0 + self.successes[i, j], 1.0 + self.failures[i, j])
                if y > best:
                    best, row, column = y, i, j
        return row, column, 0

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
        return PlainState(np.zeros(shape, np.int64), np.zeros(shape, np.int64))


def ns_a_step(policy: rank1.Policy, K: int, n: int) -> float:
    """A whole run through the compiled loop, reward and regret included."""
    law, steps = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2).law, np.array([n])

    def work() -> None:
        state: Any = policy.start(rank1.Known(K, K, n))
        curve, totals = np.zeros((1, 2)), np.zeros(2)
        rng, loop = np.random.default_rng(1), kernel(play, state, law)
        loop(state, law, rng, K, K, 0, n, steps, curve, totals)

    return cpu_seconds(work, repeats=3) / n * 1e9


def compare(ours: rank1.Policy, plain: rank1.Policy, K: int, few: int, target: str = "") -> None:
    """Our 2M steps, and our first few beside the same number of plain ones."""
    n = 2_000_000
    whole, first, rival = ns_a_step(ours, K, n), ns_a_step(ours, K, few), ns_a_step(plain, K, few)
    print(
        f"{ours.name}, K = L = {K:2}: {whole:6.0f} ns a step over {n:,} steps{target}; over the "
        f"first {few:,}: {first:.0f}, plain {rival:.0f}. Plain is {rival / first:.1f} times as "
        f"long there, {rival / whole:.1f} times our whole run's step."
    )


def main() -> None:
    compare(rank1.ThompsonSampling(), Plain(), 8, 200_000)
    compare(rank1.ThompsonSampling(), Plain(), 32, 20_000, " (at most 15000)")


if __name__ == "__main__":
    main()
