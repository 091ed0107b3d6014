"""Literal policies that play until the rule stops them: TopTwo, and an equal split."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, kernel
from rank1.grid import Grid
from rank1.stopping import may_stop, note_report, start_watch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Run(NamedTuple):
    #: Pulls until the rule stopped; -1 where it didn't.
    pulls: int
    leader: tuple[int, ...]


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
def top_two(s: Floats, n: Floats, led: Ints, sizes: Ints, share: float) -> int:
    """EB-TCI by neighbours, by the book: everything is computed in every step."""
    leader, best = -1, -1.0
    for k in range(len(s)):
        if n[k] == 0.0:
            return k
        if s[k] / n[k] > best:
            leader, best = k, s[k] / n[k]
    led[leader] += 1
    if math.floor(share * led[leader]) > math.floor(share * (led[leader] - 1)):
        return leader
    challenger, least, stride = -1, math.inf, len(s)
    for size in sizes:
        stride //= size
        first = leader - leader // stride % size * stride
        for level in range(size):
            k = first + level * stride
            if k != leader:
                value = math.log(n[k])
                if s[k] / n[k] < best:
                    m = (s[k] + s[leader]) / (n[k] + n[leader])
                    value += loss(s[k], n[k], m) + loss(s[leader], n[leader], m)
                if value < least or (value == least and k < challenger):
                    challenger, least = k, value
    return challenger


def _run(
    watch: Any, rng: np.random.Generator, means: Floats, s: Floats, n: Floats, led: Ints,
    sizes: Ints, share: float, every: int, limit: int,
) -> int:  # fmt: skip
    for t in range(limit):
        arm = top_two(s, n, led, sizes, share) if share > 0.0 else t % len(s)
        reward = 1.0 if rng.random() < means[arm] else 0.0
        s[arm] += reward
        n[arm] += 1.0
        note_report(watch, arm, reward)
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
    watch = start_watch(means.shape, **rule)
    share = 0.0 if equal_split else 1.0 / (1.0 + math.sqrt(sum(means.shape) - means.ndim))
    room = np.zeros(means.size), np.zeros(means.size), np.zeros(means.size, np.int64)
    how = np.array(means.shape), share, every, limit
    rng = np.random.default_rng(seed)
    pulls = kernel(_run, watch)(watch, rng, np.ascontiguousarray(means).ravel(), *room, *how)
    return Run(int(pulls), Grid(means.shape).levels(int(watch.at[0].leader)))
