"""The compiled loop: one pull at a time, any policy on any problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, method
from rank1.policies.base import choose, update

__all__ = ["draw", "gap", "note", "play", "step"]

draw = method("draw")
gap = method("gap")


@inlined
def step(state: Any, law: Any, rng: np.random.Generator, totals: NDArray[np.float64]) -> None:
    """One step: the policy's random numbers are drawn first, then the reward's."""
    row, column, tag = choose(state, rng)
    reward, regret = draw(law, row, column, rng)
    update(state, row, column, tag, reward)
    totals[0] += gap(law, row, column)
    totals[1] += regret


def play(
    state: Any,
    law: Any,
    rng: np.random.Generator,
    t: int,
    stop: int,
    steps: NDArray[np.int64],
    curve: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Steps t … stop - 1; the totals of regret go into `curve` at the checkpoints on the way."""
    mark = 0
    while steps[mark] <= t:
        mark += 1
    while t < stop:
        step(state, law, rng, totals)
        t += 1
        if t == steps[mark]:
            note(curve, mark, totals)
            mark += 1


@inlined
def note(curve: NDArray[np.float64], mark: int, totals: NDArray[np.float64]) -> None:
    """Write down expected and realised regret so far."""
    curve[mark, 0] = totals[0]
    curve[mark, 1] = totals[1]
