"""The compiled loop: one pull at a time, any policy on any problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, method
from rank1.errors import InputError
from rank1.policies.base import choose, update

__all__ = ["draw", "gap", "note", "play", "refuse", "room_for_curve", "step"]

draw = method("draw")
gap = method("gap")


@inlined
def step(
    state: Any, law: Any, rng: np.random.Generator, K: int, L: int, totals: NDArray[np.float64]
) -> tuple[bool, int, int, float]:
    """One step: the policy's random numbers are drawn first, then the reward's.

    Returns whether the pull lies on the grid, the pull, and its reward. One that doesn't is not
    played: neither law nor state would notice, and both would read and write beside their arrays.
    """
    row, column, tag = choose(state, rng)
    # As unsigned numbers negative ones are large, so that one comparison does for two.
    if np.uint64(row) >= np.uint64(K) or np.uint64(column) >= np.uint64(L):
        return False, row, column, 0.0
    reward, regret = draw(law, row, column, rng)
    update(state, row, column, tag, reward)
    totals[0] += gap(law, row, column)
    totals[1] += regret
    return True, row, column, reward


def play(
    state: Any,
    law: Any,
    rng: np.random.Generator,
    K: int,
    L: int,
    t: int,
    stop: int,
    checkpoints: NDArray[np.int64],
    curve: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> tuple[int, int, int]:
    """Steps t … stop - 1; the totals of regret go into `curve` at the checkpoints on the way.

    So do row, column and reward of the step at the checkpoint; see `room_for_curve`.

    Returns the step that was reached. If that isn't `stop`, the policy's pull lay outside the grid
    and wasn't played; it is returned, too, for `refuse`.
    """
    mark = 0
    while checkpoints[mark] <= t:
        mark += 1
    while t < stop:
        inside, row, column, reward = step(state, law, rng, K, L, totals)
        if not inside:
            return t, row, column
        t += 1
        if t == checkpoints[mark]:
            note(curve, mark, totals)
            curve[mark, 2], curve[mark, 3], curve[mark, 4] = row, column, reward
            mark += 1
    return t, 0, 0


def room_for_curve(checkpoints: int) -> NDArray[np.float64]:
    """A line for each checkpoint: expected and realised regret so far, row, column and reward.

    What `play` alone fills in, row, column and reward, is written at checkpoints only, and shows
    every step to who has a checkpoint at each.

    >>> room_for_curve(3).shape
    (3, 5)
    """
    return np.zeros((checkpoints, 5))


@inlined
def note(curve: NDArray[np.float64], mark: int, totals: NDArray[np.float64]) -> None:
    """Write down expected and realised regret so far."""
    curve[mark, 0] = totals[0]
    curve[mark, 1] = totals[1]


def refuse(policy: str, t: int, row: int, column: int, K: int, L: int) -> InputError:
    """The error for a pull outside the grid, from what `play` returned.

    >>> refuse("mine", 6, 1, 99, K=2, L=3)
    InputError('mine must pull pairs on the grid of 2 rows and 3 columns, got (1, 99) at step 7')
    """
    return InputError(
        f"{policy} must pull pairs on the grid of {K} rows and {L} columns, "
        f"got ({row}, {column}) at step {t + 1}"
    )
