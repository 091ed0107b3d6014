"""The stopping rule, checked after every pull, against computing the whole rule each time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rank1
from benchmarks.timing import cpu_seconds
from rank1.compiled import kernel
from rank1.stopping import may_stop, note_report, start_watch
from rank1.stopping.evalues import DIFFERENCE, log_e

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def incremental(watch: Any, arms: Ints, rewards: Floats) -> int:
    stops = 0
    for t in range(len(arms)):
        note_report(watch, arms[t], rewards[t])
        if may_stop(watch):  # the next run begins
            stops += 1
            watch.successes[:], watch.failures[:], watch.top[:] = 0.0, 0.0, -math.inf
            watch.at[0].leader = watch.at[0].witness = -1
            watch.at[0].bound = math.inf
    return stops


def plain(K: int, s: Floats, f: Floats, arms: Ints, rewards: Floats, threshold: float) -> int:
    """Find the leader by a scan, then check its row and column until a comparison falls short."""
    stops = 0
    for t in range(len(arms)):
        s[arms[t]] += rewards[t]
        f[arms[t]] += 1.0 - rewards[t]
        leader, best = 0, -1.0
        for arm in range(len(s)):
            n = s[arm] + f[arm]
            if n > 0.0 and s[arm] / n > best:
                leader, best = arm, s[arm] / n
        least = math.inf
        for arm in range(len(s)):
            if (arm // K == leader // K) != (arm % K == leader % K):
                value = log_e(DIFFERENCE, 0.0, s[leader], f[leader], s[arm], f[arm])
                least = min(least, value)
        if least >= threshold:
            stops += 1
            s[:], f[:] = 0.0, 0.0
    return stops


def pulls(K: int, n: int) -> tuple[Ints, Floats]:
    """Put half the pulls on the best pair's row and column, as a policy that identifies does."""
    rng = np.random.default_rng(K)
    problem = rank1.spike(K, K, 0.5, 0.5, 0.2, 0.2)
    rows, columns = rng.integers(K, size=n), rng.integers(K, size=n)
    kind = rng.random(n)
    rows[kind < 0.6], columns[kind > 0.4] = 0, 0
    rewards = (rng.random(n) < problem.means[rows, columns]).astype(np.float64)
    return rows * K + columns, rewards


def main() -> None:
    print(f"{'K = L':>6}{'incremental ns':>16}{'plain ns':>12}{'ratio':>8}   a report and a look")
    for K, n in ((4, 200_000), (8, 200_000), (16, 200_000), (64, 200_000)):
        data = pulls(K, n)
        shorter = tuple(x[: n // K] for x in data)
        threshold = math.log((K * K - 1) / 0.05)

        def ours(K: int = K, data: Any = data) -> int:
            watch = start_watch([K, K])
            return int(kernel(incremental, watch)(watch, *data))

        def anew(K: int = K, data: Any = shorter, threshold: float = threshold) -> int:
            return int(kernel(plain)(K, np.zeros(K * K), np.zeros(K * K), *data, threshold))

        fast = cpu_seconds(ours) / n * 1e9
        slow = cpu_seconds(anew) / (n // K) * 1e9
        print(f"{K:>6}{fast:>16.1f}{slow:>12.0f}{slow / fast:>8.0f}")


if __name__ == "__main__":
    main()
