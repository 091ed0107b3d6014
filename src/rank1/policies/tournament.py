"""Which of many numbers is the largest, while one of them changes at a time.

In two arrays, leaf `leaves + k` of `top` has the number of k, and node m the larger one of its
children 2m and 2m + 1. `ties[m]` is how many below m have the number `top[m]`; or, where `fewest`
is true, the least of a second number that these have. What has no number yet is −∞, and isn't
counted. A new number changes only the nodes above its leaf: a step costs log₂(leaves).

Averages are quotients of doubles, correctly rounded: equal ones are always seen as such, and those
of 0/1 rewards are never equal by rounding alone before a run has 2²⁶ steps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit

__all__ = ["fewest_winner", "leaves_of", "put", "replay_all", "start_tournament", "winner"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def start_tournament(size: int, value: float = -math.inf) -> tuple[Floats, Ints]:
    """`top` and `ties`, where each of `size` leaves has the same number."""
    leaves = 1 << (size - 1).bit_length()
    top, ties = np.full(2 * leaves, -math.inf), np.zeros(2 * leaves, np.int64)
    top[leaves : leaves + size] = value
    ties[leaves : leaves + size] = value > -math.inf
    replay_all(top, ties)
    return top, ties


@inlined
def put(
    top: Floats, ties: Ints, k: int, value: float, second: int = 1, fewest: bool = False
) -> None:
    """Leaf k has a new number."""
    node = len(top) // 2 + k
    top[node], ties[node] = value, second
    best, count = value, second
    while node > 1:
        other = top[node ^ 1]
        if other > best:
            best, count = other, ties[node ^ 1]
        elif other == best:
            count = min(count, ties[node ^ 1]) if fewest else count + ties[node ^ 1]
        node >>= 1
        if top[node] == best and ties[node] == count:
            return
        top[node], ties[node] = best, count


@jit
def replay_all(top: Floats, ties: Ints) -> None:
    """All leaves have new numbers."""
    for node in range(len(top) // 2 - 1, 0, -1):
        left, right = top[2 * node], top[2 * node + 1]
        top[node] = left if left >= right else right
        ties[node] = (ties[2 * node] if left >= right else 0) + (
            ties[2 * node + 1] if right >= left else 0
        )


@jit
def winner(top: Floats, ties: Ints, place: int = 0) -> int:
    """Of those with the largest number, in ascending order, the one at this place."""
    leaves, best = len(top) // 2, top[1]
    node = 1
    while node < leaves:
        node *= 2
        if top[node] < best:
            node += 1
        elif place >= ties[node]:
            place -= ties[node]
            node += 1
    return node - leaves


@jit
def fewest_winner(top: Floats, fewest: Ints) -> int:
    """Of those with the largest number and then the least second one, the first."""
    leaves, best, least = len(top) // 2, top[1], fewest[1]
    node = 1
    while node < leaves:
        node *= 2
        if top[node] < best or fewest[node] > least:
            node += 1
    return node - leaves


def leaves_of(top: Floats, size: int) -> Floats:
    """The numbers."""
    return top[len(top) // 2 :][:size]
