"""Operations that only states of counts and sums have, callable from code for every state.

Numba compiles every branch, even for states that have no `load` or whose `forget` isn't compiled.
So these functions choose their implementation by the state's class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import overload_of
from rank1.policies.base import forget, load

__all__ = ["give_up", "learn_count", "load_tallies"]

Floats = NDArray[np.float64]


def learn_count(state: Any, arm: int, count: int, total: float) -> None:
    """Add rewards of pulls that the state never issued; only states with `load` learn them."""
    if hasattr(state, "load"):
        state.load(arm, count, total)


def give_up(state: Any, arm: int, tag: int) -> bool:
    """Give up on this pull's reward. Returns False if this state can't do so in compiled code."""
    if hasattr(state, "load"):
        state.forget(arm, tag)
        return True
    return False


@overload_of(learn_count)
def _learn_count(state: Any, arm: int, count: int, total: float) -> Any:
    if hasattr(state.instance_class, "load"):
        return lambda state, arm, count, total: load(state, arm, count, total)
    return lambda state, arm, count, total: None


@overload_of(give_up)
def _give_up(state: Any, arm: int, tag: int) -> Any:
    if not hasattr(state.instance_class, "load"):
        return lambda state, arm, tag: False

    def implementation(state: Any, arm: int, tag: int) -> bool:
        forget(state, arm, tag)
        return True

    return implementation


def load_tallies(state: Any, weights: Floats, sums: Floats) -> None:
    """Load the number and the sum of each arm's rewards into a new state.

    Discounted numbers are rounded; an arm that was ever tried counts at least once.
    """
    for arm in range(len(weights)):
        weight = weights[arm]
        if weight > 0.0:
            count = max(1, int(weight + 0.5))
            total = count * (sums[arm] / weight)
            learn_count(state, arm, count, min(max(total, 0.0), float(count)))
