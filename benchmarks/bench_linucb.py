"""LinUCB at K = L = 64 against a plain compiled step: all indices, the whole inverse.

python -m benchmarks.bench_linucb
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.timing import cpu_seconds
from rank1.compiled import inlined, jit, kernel
from rank1.simulation.loop import play

K, N, STEPS = 64, 2_000_000, 20_000
PROBLEM = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2)
LIMIT = 3.0  # µs

Floats = NDArray[np.float64]


class PlainLinUCB(NamedTuple):
    """Sherman and Morrison on the whole of V⁻¹; every index in every step."""

    c: Floats
    inverse: Floats
    z: Floats
    theta: Floats
    indices: Floats

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        L = len(self.indices)
        K = len(self.theta) - L
        best, row, column = -math.inf, 0, 0
        for i in range(K):
            squares_of_row(self.inverse, i, K, self.indices)
            for j in range(L):
                mean = self.theta[i] + self.theta[K + j]
                self.indices[j] = mean + self.c[0] * math.sqrt(self.indices[j])
            for j in range(L):
                if self.indices[j] > best:
                    best, row, column = self.indices[j], i, j
        return row, column, 0

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        K = len(self.theta) - len(self.indices)
        w2 = sherman_morrison(self.inverse, self.z, row, K + column)
        step = (reward - self.theta[row] - self.theta[K + column]) / (1 + w2)
        for k in range(len(self.z)):
            self.theta[k] += step * self.z[k]


@inlined
def squares_of_row(inverse: Floats, i: int, K: int, squares: Floats) -> None:
    for j in range(len(squares)):
        squares[j] = inverse[i, i] + 2 * inverse[i, K + j] + inverse[K + j, K + j]


@jit
def sherman_morrison(inverse: Floats, z: Floats, a: int, b: int) -> float:
    d = len(z)
    for k in range(d):
        z[k] = inverse[a, k] + inverse[b, k]
    w2 = z[a] + z[b]
    for r in range(d):
        factor = z[r] / (1 + w2)
        for k in range(d):
            inverse[r, k] -= factor * z[k]
    return w2


def microseconds(start: Any) -> float:
    """CPU time of a step, early in a run of 2M steps, where every pair is still in question."""
    steps, curve, totals = np.array([N]), np.zeros((1, 2)), np.zeros(2)

    def work() -> None:
        state, rng = start(), np.random.default_rng(1)
        loop = kernel(play, state, PROBLEM.law)
        loop(state, PROBLEM.law, rng, K, K, 0, STEPS, steps, curve, totals)

    return cpu_seconds(work) / STEPS * 1e6


def report(name: str, ours: float, plain: float) -> None:
    print(
        f"{name + ', K = L = 64:':<31}{ours:7.2f} µs a step (at most {LIMIT:g}); "
        f"plain {plain:.2f} µs, {plain / ours:.1f} times as long"
    )


def main() -> None:
    known = rank1.Known(K, K, N, *PROBLEM.facts)
    d = 2 * K
    c = 0.5 * math.sqrt(d * math.log((1 + 2 * N) * N)) + math.sqrt(d)
    plain = microseconds(
        lambda: PlainLinUCB(np.array([c]), np.eye(d), np.zeros(d), np.zeros(d), np.zeros(K))
    )
    report("LinUCB", microseconds(lambda: rank1.LinUCB().start(known)), plain)


if __name__ == "__main__":
    main()
