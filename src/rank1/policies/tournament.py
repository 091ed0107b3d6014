"""What UTS and OSUB share: the leader among all pairs, by a tournament over their means.

Pairs are numbered in row-major order. In a policy's state, leaf `leaves + k` of `top` has the mean
of pair k, and node m the larger of the means of its children 2m and 2m + 1; `ties[m]` is how many
pairs below m have the mean `top[m]`. A pair with no report has mean −∞ and isn't counted. A new
mean changes only the nodes above its leaf, so a step costs log₂(K·L), not K·L.

Means are quotients of doubles, correctly rounded: equal ones are always seen as such, and those of
0/1 rewards are never equal by rounding alone before a run has 2²⁶ steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit

__all__ = [
    "best_reported",
    "first_leader",
    "report_mean",
    "start_unimodal",
    "tied_leader",
]


def start_unimodal(pairs: int, mean: float = -math.inf) -> dict[str, NDArray[Any]]:
    """The fields for so many pairs, none of which has a report.

    With another mean than −∞, each of them counts as having it until it has a report.
    """
    leaves = 1 << (pairs - 1).bit_length()
    top, ties = np.full(2 * leaves, -math.inf), np.zeros(2 * leaves, np.int64)
    if mean > -math.inf:
        top[leaves : leaves + pairs] = mean
        ties[leaves : leaves + pairs] = 1
        for node in range(leaves - 1, 0, -1):
            top[node] = max(top[2 * node], top[2 * node + 1])
            ties[node] = ties[2 * node] + ties[2 * node + 1]
    return {"top": top, "ties": ties}


@inlined
def report_mean(state: Any, k: int, mean: float) -> None:
    """Pair k has a new mean."""
    top, ties = state.top, state.ties
    node = len(top) // 2 + k
    top[node] = mean
    ties[node] = 1
    while node > 1:
        best, count = top[node], ties[node]
        other = top[node ^ 1]
        if other > best:
            best, count = other, ties[node ^ 1]
        elif other == best:
            count += ties[node ^ 1]
        node >>= 1
        if top[node] == best and ties[node] == count:
            return
        top[node] = best
        ties[node] = count


@jit
def tied_leader(top: NDArray[np.float64], ties: NDArray[np.int64], place: int) -> int:
    """Of the pairs with the largest mean, in row-major order, the one at this place."""
    leaves = len(top) // 2
    node = 1
    while node < leaves:
        node *= 2
        if top[node] < top[1]:
            node += 1
        elif place >= ties[node]:
            place -= ties[node]
            node += 1
    return node - leaves


def first_leader(state: Any) -> int:
    """The first of the pairs with the largest mean; the first pair when nothing is known."""
    return int(state.top[len(state.top) // 2 :].argmax())


def best_reported(state: Any, reported: NDArray[np.bool_]) -> int:
    """The same among the pairs with a report."""
    means = state.top[len(state.top) // 2 :][: len(reported)]
    return int(np.where(reported, means, -math.inf).argmax())
