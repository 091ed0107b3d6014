"""How the benchmarks measure: CPU time, the minimum of several repeats."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rank1
from rank1.compiled import kernel
from rank1.literal import LITERAL
from rank1.simulation.loop import NEVER, play, room_for_curve

#: Makes a player from what it may know: a policy's `start`, or one of `rank1.literal`.
Start = Callable[[rank1.Known], Any]


def cpu_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Return the minimum CPU time of several calls, after a warm-up call."""
    work()
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def ns_a_step(start: Start, K: int, n: int, repeats: int = 3, steps: int | None = None) -> float:
    """Return the CPU time of a step on the K×K spike in the compiled loop, with reward and regret.

    With `steps`, only the first steps of a run of n are played.
    """
    law, many = rank1.spike(K, K, 0.7, 0.7, 0.2, 0.2).law, steps or n

    def work() -> None:
        state, rng = start(rank1.Known(K, K, n)), np.random.default_rng(1)
        marks, curve, totals = np.array([n]), room_for_curve(1), np.zeros(2)
        kernel(play, state, law, NEVER)(
            state, law, rng, NEVER, K * K, 0, many, marks, curve, totals
        )

    return cpu_seconds(work, repeats) / many * 1e9


def literal(policy: rank1.Policy, **more: Any) -> Start:
    """Return the literal version of a policy."""
    return lambda known: LITERAL[policy.name](known, **policy.settings, **more)


def compare(policy: rank1.Policy, plain: Start, K: int, few: int, target: str = "") -> None:
    """Time our 2M steps, and our first few steps against the same number of plain ones."""
    n = 2_000_000
    whole, first, rival = (
        ns_a_step(start, K, length)
        for start, length in ((policy.start, n), (policy.start, few), (plain, few))
    )
    print(
        f"{policy.name}, K = L = {K:2}: {whole:6.0f} ns a step over {n:,} steps{target}; over the "
        f"first {few:,}: {first:.0f}, literal {rival:.0f}. Literal is {rival / first:.1f} times "
        f"as long there, {rival / whole:.1f} times our whole run's step."
    )
