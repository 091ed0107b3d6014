"""An arm and its neighbours, for policies that only look around the leader.

A neighbour has one level changed. The slots hold the arm and its neighbours in ascending order. In
a policy's state, `arms[s]` is the arm in slot s, `slot[k]` is the slot of arm k or −1, and
`at.home` is the arm whose neighbours these are, initially −1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit
from rank1.policies.base import Known, Records

__all__ = ["gather", "start_slots"]

Ints = NDArray[np.int64]


def start_slots(known: Known) -> dict[str, NDArray[Any]]:
    """The fields of the state before there is a leader."""
    slots, arms = known.grid.cross + 1, known.arms
    return {"arms": np.full(slots, -1), "slot": np.full(arms, -1)}


@jit
def gather(limits: Records, at: Records, arms: Ints, slot: Ints, leader: int) -> None:
    """Put this arm and its neighbours into the slots."""
    if at[0].home >= 0:
        for s in range(len(arms)):
            if arms[s] >= 0:
                slot[arms[s]] = -1
    at[0].home = leader
    s = 0
    for side in range(len(limits)):
        stride = limits[side].stride
        for lower in range(leader // stride % limits[side].levels, 0, -1):
            arms[s] = leader - lower * stride
            s += 1
    arms[s] = leader
    s += 1
    for side in range(len(limits) - 1, -1, -1):
        stride = limits[side].stride
        for higher in range(1, limits[side].levels - leader // stride % limits[side].levels):
            arms[s] = leader + higher * stride
            s += 1
    for k in range(s):
        slot[arms[k]] = k
