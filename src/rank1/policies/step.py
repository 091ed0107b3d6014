"""One step of a run in compiled code: a policy's pull, its reward and its regret."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, method
from rank1.policies.base import choose, update

__all__ = ["draw", "gap", "note", "split", "step", "tally"]

# Methods of a problem's law.
draw = method("draw")
gap = method("gap")
tally = method("tally", inline=False)
split = method("split", inline=False)


@inlined
def step(
    state: Any, law: Any, rng: np.random.Generator, arms: int, totals: NDArray[np.float64]
) -> tuple[bool, int, float]:
    """Play one step: draw the policy's random numbers first, then the reward's.

    Returns whether the pull lies on the grid, its arm, and its reward. A pull outside the grid is
    not played: law and state don't check it and would read and write outside their arrays.
    """
    arm, tag = choose(state, rng)
    # A negative arm is a huge unsigned number, so one comparison covers both bounds.
    if np.uint64(arm) >= np.uint64(arms):
        return False, arm, 0.0
    totals[0] += gap(law, arm)
    reward, regret = draw(law, arm, rng)
    totals[1] += regret
    update(state, arm, tag, reward)
    return True, arm, reward


@inlined
def note(curve: NDArray[np.float64], mark: int, totals: NDArray[np.float64]) -> None:
    """Record the expected and realised regret so far."""
    curve[mark, 0] = totals[0]
    curve[mark, 1] = totals[1]
