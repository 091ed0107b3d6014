"""What only states of counts and sums can do, in code that is compiled for every state.

Numba compiles every branch, also for states that have no `load`, or whose `forget` isn't compiled.
So what is done here is chosen by the state's class.
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
    """Rewards of pulls that the state knows nothing of; only states with `load` learn."""
    if hasattr(state, "load"):
        state.load(arm, count, total)


def give_up(state: Any, arm: int, tag: int) -> bool:
    """This pull's reward will never come. False if compiled code can't say so to this state."""
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
    """Tell a new state what is known of each arm: numbers of rewards, and their sums.

    Numbers that have faded are rounded, and an arm that was ever tried counts once at least.
    """
    for arm in range(len(weights)):
        weight = weights[arm]
        if weight > 0.0:
            count = max(1, int(weight + 0.5))
            total = count * (sums[arm] / weight)
            learn_count(state, arm, count, min(max(total, 0.0), float(count)))
