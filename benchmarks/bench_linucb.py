"""LinUCB at K = L = 64, against a plain compiled step with all indices and the whole inverse.

python -m benchmarks.bench_linucb
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.timing import Start, ns_a_step
from rank1.compiled import inlined, jit

K, N, STEPS = 64, 2_000_000, 20_000
LIMIT = 3.0  # µs

Floats = NDArray[np.float64]


class PlainLinUCB(NamedTuple):
    """Sherman–Morrison updates of the whole V⁻¹, and every index in every step.

    The literal version inverts V, which no fast implementation does, so it isn't a fair rival.
    """

    c: Floats
    inverse: Floats
    z: Floats
    theta: Floats
    indices: Floats

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        L = len(self.indices)
        K = len(self.theta) - L
        best, arm = -math.inf, 0
        for i in range(K):
            squares_of_row(self.inverse, i, K, self.indices)
            for j in range(L):
                mean = self.theta[i] + self.theta[K + j]
                self.indices[j] = mean + self.c[0] * math.sqrt(self.indices[j])
            for j in range(L):
                if self.indices[j] > best:
                    best, arm = self.indices[j], i * L + j
        return arm, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        L = len(self.indices)
        K, row, column = len(self.theta) - L, arm // L, arm % L
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


def microseconds(start: Start) -> float:
    """Return the CPU time of a step early in a run of 2M steps, while every pair may be best."""
    return ns_a_step(start, K, N, repeats=5, steps=STEPS) / 1e3


def report(name: str, ours: float, plain: float) -> None:
    print(
        f"{name + ', K = L = 64:':<31}{ours:7.2f} µs a step (at most {LIMIT:g}); "
        f"plain {plain:.2f} µs, {plain / ours:.1f} times as long"
    )


def main() -> None:
    d = 2 * K
    c = 0.5 * math.sqrt(d * math.log((1 + 2 * N) * N)) + math.sqrt(d)
    plain = microseconds(
        lambda known: PlainLinUCB(np.array([c]), np.eye(d), np.zeros(d), np.zeros(d), np.zeros(K))
    )
    report("LinUCB", microseconds(rank1.LinUCB().start), plain)


if __name__ == "__main__":
    main()
