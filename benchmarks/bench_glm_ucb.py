"""GLM-UCB at K = L = 64, against a plain compiled step with all indices and the whole inverse.

python -m benchmarks.bench_glm_ucb
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.bench_linucb import (
    K,
    N,
    microseconds,
    report,
    sherman_morrison,
    squares_of_row,
)

Floats = NDArray[np.float64]


class PlainGLMUCB(NamedTuple):
    """Sherman–Morrison updates of the whole M⁻¹, and every index in every step."""

    c: Floats
    inverse: Floats
    z: Floats
    u: Floats
    v: Floats
    seen: Floats
    indices: Floats

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        K, L = len(self.u), len(self.v)
        best, arm = -math.inf, 0
        for i in range(K):
            squares_of_row(self.inverse, i, K, self.indices)
            for j in range(L):
                mean = self.u[i] * self.v[j]
                self.indices[j] = mean + self.c[0] * math.sqrt(self.indices[j])
            for j in range(L):
                if self.indices[j] > best:
                    best, arm = self.indices[j], i * L + j
        return arm, 0

    def update(self, arm: int, tag: int, reward: float) -> None:
        K, L = len(self.u), len(self.v)
        row, column = arm // L, arm % L
        sherman_morrison(self.inverse, self.z, row, K + column)
        self.seen[row] += 1
        self.seen[K + column] += 1
        u, v = self.u[row], self.v[column]
        u_new, v_new = 1.0, 1.0
        if reward == 0:
            u_new, v_new = u * (1 - v) / (1 - u * v), v * (1 - u) / (1 - u * v)
        self.u[row] += (self.seen[row] + 1) ** -0.6 * (u_new - u)
        self.v[column] += (self.seen[K + column] + 1) ** -0.6 * (v_new - v)


def main() -> None:
    d, policy = 2 * K, rank1.GLMUCB(c_mu=0.49)
    c = float(policy.start(rank1.Known(K, K, N)).settings[0].radius)
    plain = microseconds(
        lambda known: PlainGLMUCB(
            np.array([c]),
            np.eye(d),
            np.zeros(d),
            np.full(K, 0.5),
            np.full(K, 0.5),
            np.zeros(d),
            np.zeros(K),
        )
    )
    report("GLM-UCB", microseconds(policy.start), plain)
    small = microseconds(rank1.GLMUCB(confidence_scale=0.01, c_mu=0.49).start)
    print(f"{'  at confidence_scale=0.01:':<31}{small:7.2f} µs a step")


if __name__ == "__main__":
    main()
