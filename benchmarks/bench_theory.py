"""Times of `rank1.theory`: the fastest of a few calls, on problems with random factors."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

import rank1
from rank1 import theory


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the seconds of the fastest call."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def problem(K: int) -> rank1.Bernoulli:
    rng = np.random.default_rng(K)
    return rank1.Bernoulli(rng.random(K), rng.random(K))


def main() -> None:
    large = problem(4096)
    cases: list[tuple[str, int, Callable[[], object]]] = [
        ("hardness", 4096, partial(theory.hardness, large)),
        ("upper_bound", 4096, partial(theory.upper_bound, large, 2_000_000)),
        ("lower_bound", 4096, partial(theory.lower_bound, large)),
    ]
    for K in (8, 64, 128):
        some = problem(K)
        cases += [
            ("relaxed", K, partial(theory.relaxed, some)),
            ("graves_lai", K, partial(theory.graves_lai, some)),
        ]
    theory.relaxed(problem(2))  # imports the solver before the timing starts
    print(f"{'function':<14}{'K = L':>6}{'ms':>10}")
    for name, K, function in cases:
        target = " (at most 1000)" if K == 4096 or (name, K) == ("relaxed", 64) else ""
        print(f"{name:<14}{K:>6}{best(function) * 1e3:>10.2f}{target}")


if __name__ == "__main__":
    main()
