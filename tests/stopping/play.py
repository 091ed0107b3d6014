"""Literal policies that play until the rule stops them: TopTwo, and an equal split."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, kernel
from rank1.stopping import may_stop, report, start_watch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Run(NamedTuple):
    #: Pulls until the rule stopped; -1 where it didn't.
    pulls: int
    leader: tuple[int, int]


@jit
def loss(s: float, n: float, m: float) -> float:
    """n·kl(s/n, m)."""
    total = 0.0
    if s > 0.0:
        total += s * math.log(s / (n * m))
    if n > s:
        total += (n - s) * math.log((n - s) / (n * (1.0 - m)))
    return total


@jit
def top_two(s: Floats, n: Floats, led: Ints, share: float) -> tuple[int, int]:
    """EB-TCI on the rank-one graph, by the book: everything is computed in every step."""
    K, L = s.shape
    row, column, best = -1, -1, -1.0
    for i in range(K):
        for j in range(L):
            if n[i, j] == 0.0:
                return i, j
            if s[i, j] / n[i, j] > best:
                row, column, best = i, j, s[i, j] / n[i, j]
    led[row, column] += 1
    times = led[row, column]
    if math.floor(share * times) > math.floor(share * (times - 1)):
        return row, column
    chosen_row, chosen_column, least = -1, -1, math.inf
    for i in range(K):
        for j in range(L):
            if (i == row) != (j == column):
                value = math.log(n[i, j])
                if s[i, j] / n[i, j] < best:
                    m = (s[i, j] + s[row, column]) / (n[i, j] + n[row, column])
                    value += loss(s[i, j], n[i, j], m) + loss(s[row, column], n[row, column], m)
                if value < least:
                    chosen_row, chosen_column, least = i, j, value
    return chosen_row, chosen_column


def _run(
    watch: Any, rng: np.random.Generator, means: Floats, s: Floats, n: Floats, led: Ints,
    share: float, every: int, limit: int,
) -> int:  # fmt: skip
    K, L = means.shape
    for t in range(limit):
        if share > 0.0:
            row, column = top_two(s, n, led, share)
        else:
            row, column = (t // L) % K, t % L
        reward = 1.0 if rng.random() < means[row, column] else 0.0
        s[row, column] += reward
        n[row, column] += 1.0
        report(watch, row, column, reward)
        if (t + 1) % every == 0 and may_stop(watch):
            return t + 1
    return -1


def play_until_stop(
    means: Floats,
    seed: int,
    *,
    equal_split: bool = False,
    every: int = 1,
    limit: int = 1_000_000,
    **rule: Any,
) -> Run:
    K, L = means.shape
    watch = start_watch(K, L, **rule)
    share = 0.0 if equal_split else 1.0 / (1.0 + math.sqrt(K + L - 2.0))
    arrays = np.zeros((K, L)), np.zeros((K, L)), np.zeros((K, L), np.int64)
    rng = np.random.default_rng(seed)
    pulls = kernel(_run, watch)(watch, rng, means, *arrays, share, every, limit)
    row, column = divmod(int(watch.at[0].leader), L)
    return Run(int(pulls), (row, column))
