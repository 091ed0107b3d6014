"""The compiled loop: any policy on any problem, one pull at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import method
from rank1.errors import InputError
from rank1.grid import Grid
from rank1.policies.step import note, step

__all__ = ["NEVER", "learn", "may_stop", "play", "refuse", "room_for_curve"]

# Methods of a stopping rule's state.
learn = method("learn")
may_stop = method("may_stop")


class Never(NamedTuple):
    """The state of a rule that never stops."""

    nothing: NDArray[np.float64]

    def learn(self, arm: int, reward: float) -> None:
        """Do nothing."""

    def may_stop(self, state: Any) -> bool:
        """Always false."""
        return False


NEVER = Never(np.zeros(0))


def play(
    state: Any,
    law: Any,
    rng: np.random.Generator,
    rule: Any,
    arms: int,
    t: int,
    stop: int,
    checkpoints: NDArray[np.int64],
    curve: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> tuple[int, int, bool]:
    """Play steps t … stop - 1, or until the rule says so, and record regret at each checkpoint.

    Also records the arm and reward of the step at the checkpoint; see `room_for_curve`.

    Returns the step it reached and, last, whether the rule ended it there. If neither that nor
    `stop` was reached, the policy's pull lay outside the grid and wasn't played; the second value
    is its arm, for `refuse`.
    """
    mark = 0
    while checkpoints[mark] <= t:
        mark += 1
    while t < stop:
        inside, arm, reward = step(state, law, rng, arms, totals)
        if not inside:
            return t, arm, False
        t += 1
        if t == checkpoints[mark]:
            note(curve, mark, totals)
            curve[mark, 2], curve[mark, 3] = arm, reward
            mark += 1
        learn(rule, arm, reward)
        if may_stop(rule, state):
            return t, arm, True
    return t, 0, False


def room_for_curve(checkpoints: int) -> NDArray[np.float64]:
    """A row per checkpoint: expected and realised regret so far, arm and reward.

    Only `play` fills in the arm and reward of the step at the checkpoint: with a checkpoint at
    every step they are the whole run.

    >>> room_for_curve(3).shape
    (3, 4)
    """
    return np.zeros((checkpoints, 4))


def refuse(policy: str, t: int, arm: int, grid: Grid) -> InputError:
    """The error for a pull outside the grid, from the return value of `play`.

    >>> refuse("mine", 6, 99, Grid([2, 3]))
    InputError('mine must be a policy that pulls arms 0 … 5 of the grid 2×3, got 99 at step 7')
    """
    expected = f"a policy that pulls arms 0 … {grid.arms - 1} of the grid {grid}"
    return InputError(policy, arm, expected, got=f"{arm} at step {t + 1}", step=t + 1)
