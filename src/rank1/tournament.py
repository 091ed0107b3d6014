"""The largest of many numbers, while one of them changes at a time.

Leaf `leaves + k` of `top` has the number of k, and node m the larger number of its children 2m and
2m + 1. A new number changes only the nodes above its leaf: a step costs log₂(leaves). A missing
number is −∞.

If it matters which of several equal numbers wins, a second array says so: `ties[m]` is how many
leaves below m have the number `top[m]`, except for −∞; or `fewest[m]` is the smallest second number
of those leaves.

Averages are correctly rounded quotients of doubles: equal averages are always equal as doubles, and
different averages of 0/1 rewards are never equal due to rounding before a run has 2²⁶ steps.
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
    """`top` and `ties`, with the same number at each of `size` leaves."""
    leaves = 1 << (size - 1).bit_length()
    ties = np.zeros(2 * leaves, np.int64)
    ties[leaves : leaves + size] = value > -math.inf
    while leaves > 1:
        ties[leaves // 2 : leaves] = ties[leaves : 2 * leaves].reshape(-1, 2).sum(axis=1)
        leaves //= 2
    return np.where(ties > 0, value, -math.inf), ties


@inlined
def put(top: Floats, k: int, value: float) -> None:
    """Give leaf k a new number."""
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
    """The same with a second number; for equal numbers these are added, or the smallest is kept."""
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
    """Recompute all nodes, after all leaves have new numbers."""
    for node in range(len(top) // 2 - 1, 0, -1):
        left, right = top[2 * node], top[2 * node + 1]
        top[node] = left if left > right else right


@jit
def winner(top: Floats) -> int:
    """The first leaf with the largest number."""
    leaves, best, node = len(top) // 2, top[1], 1
    while node < leaves:
        node *= 2
        node += top[node] < best
    return node - leaves


@jit
def tied_winner(top: Floats, ties: Ints, place: int) -> int:
    """The leaf at this place among those with the largest number, in ascending order."""
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
    """Among the leaves with the largest number, the first with the smallest second number."""
    leaves, best, least, node = len(top) // 2, top[1], fewest[1], 1
    while node < leaves:
        node *= 2
        if top[node] < best or fewest[node] > least:
            node += 1
    return node - leaves


def leaves_of(top: Floats, size: int) -> Floats:
    """The numbers of the leaves."""
    return top[len(top) // 2 :][:size]
