"""What UTS and OSUB share: the first round, and the leader among all pairs.

Pairs are numbered in row-major order. The functions take a policy's state with these fields:

- `at`: see below;
- `issued`: whether the first round has issued a pair;
- `top` and `ties`: a tournament over the means. Leaf `leaves + k` has the mean of pair k, and node
  m the larger of the means of its children 2m and 2m + 1; `ties[m]` is how many pairs below m have
  the mean `top[m]`. A pair with no report has mean −∞ and counts for nothing. A new mean changes
  only the nodes above its leaf, so a step costs log₂(K·L), not K·L.

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
    "SHARED",
    "first_leader",
    "first_round",
    "issue_again",
    "report_mean",
    "spare",
    "start_unimodal",
    "tied_leader",
]

# What the first entries of `at` are.
CURSOR = 0  # every pair before it was issued in the first round
SPARE = 1  # what to play when the first round is over and no reward has come in
SHARED = 2  # how many entries there are; a policy's own follow


def start_unimodal(pairs: int, own: int) -> dict[str, NDArray[Any]]:
    """The fields for so many pairs, with room for a policy's own entries in `at`."""
    leaves = 1 << (pairs - 1).bit_length()
    return {
        "at": np.zeros(SHARED + own, np.int64),
        "issued": np.zeros(pairs, np.bool_),
        "top": np.full(2 * leaves, -math.inf),
        "ties": np.zeros(2 * leaves, np.int64),
    }


@inlined
def first_round(state: Any) -> int:
    """The next pair that hasn't been issued; −1 when all have."""
    at, issued = state.at, state.issued
    while at[CURSOR] < len(issued):
        k = at[CURSOR]
        at[CURSOR] += 1
        if not issued[k]:
            issued[k] = True
            return k
    return -1


@inlined
def spare(state: Any) -> int:
    """Pairs in row-major order, again and again, while nothing is known at all."""
    k = state.at[SPARE]
    state.at[SPARE] = k + 1 if k + 1 < len(state.issued) else 0
    return k


def issue_again(state: Any, k: int) -> None:
    """The first round's pull of pair k won't be reported."""
    state.issued[k] = False
    state.at[CURSOR] = min(state.at[CURSOR], k)


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
