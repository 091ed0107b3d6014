"""Which of many numbers is the largest, while one of them changes at a time.

Leaf `leaves + k` of `top` has the number of k, and node m the larger one of its children 2m and
2m + 1. A new number changes only the nodes above its leaf: a step costs log₂(leaves). What has no
number yet is −∞.

Where it matters which of several equal ones wins, a second array says so: `ties[m]` is how many
below m have the number `top[m]`, those of −∞ left out; or `fewest[m]` the least of a second number
that these have.

Averages are quotients of doubles, correctly rounded: equal ones are always seen as such, and those
of 0/1 rewards are never equal by rounding alone before a run has 2²⁶ steps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit

__all__ = [
    "fewest_winner",
    "leaves_of",
    "put",
    "put_second",
    "replay_all",
    "start_tournament",
    "tied_winner",
    "winner",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def start_tournament(size: int, value: float = -math.inf) -> tuple[Floats, Ints]:
    """`top` and `ties`, where each of `size` leaves has the same number."""
    leaves = 1 << (size - 1).bit_length()
    ties = np.zeros(2 * leaves, np.int64)
    ties[leaves : leaves + size] = value > -math.inf
    while leaves > 1:
        ties[leaves // 2 : leaves] = ties[leaves : 2 * leaves].reshape(-1, 2).sum(axis=1)
        leaves //= 2
    return np.where(ties > 0, value, -math.inf), ties


@inlined
def put(top: Floats, k: int, value: float) -> None:
    """Leaf k has a new number."""
    node = len(top) // 2 + k
    top[node] = value
    while node > 1:
        other = top[node ^ 1]
        value = value if value > other else other
        node >>= 1
        if top[node] == value:
            return
        top[node] = value


@inlined
def put_second(
    top: Floats, seconds: Ints, k: int, value: float, second: int = 1, fewest: bool = False
) -> None:
    """The same with a second number; of equal ones these are added up, or the least is kept."""
    node = len(top) // 2 + k
    top[node], seconds[node] = value, second
    while node > 1:
        other = top[node ^ 1]
        if other > value:
            value, second = other, seconds[node ^ 1]
        elif other == value:
            second = min(second, seconds[node ^ 1]) if fewest else second + seconds[node ^ 1]
        node >>= 1
        if top[node] == value and seconds[node] == second:
            return
        top[node], seconds[node] = value, second


@jit
def replay_all(top: Floats) -> None:
    """All leaves have new numbers."""
    for node in range(len(top) // 2 - 1, 0, -1):
        left, right = top[2 * node], top[2 * node + 1]
        top[node] = left if left > right else right


@jit
def winner(top: Floats) -> int:
    """The first of those with the largest number."""
    leaves, best, node = len(top) // 2, top[1], 1
    while node < leaves:
        node *= 2
        node += top[node] < best
    return node - leaves


@jit
def tied_winner(top: Floats, ties: Ints, place: int) -> int:
    """Of those with the largest number, in ascending order, the one at this place."""
    leaves, best, node = len(top) // 2, top[1], 1
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
    leaves, best, least, node = len(top) // 2, top[1], fewest[1], 1
    while node < leaves:
        node *= 2
        if top[node] < best or fewest[node] > least:
            node += 1
    return node - leaves


def leaves_of(top: Floats, size: int) -> Floats:
    """The numbers."""
    return top[len(top) // 2 :][:size]
