"""Pulls and reports of each pair, for policies to which a pull counts once it is handed out.

Pairs are numbered in row-major order. In a policy's state `pulls[k]` is how often pair k was handed
out and not given back, `reports[k]` how many of these rewards came in, and `sums[k]` their sum. So
many pulls at once are spread as they would be one by one, while averages are of rewards alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit

__all__ = ["SHARED", "add_pull", "add_reports", "first_pull", "give_back", "start_counts"]

#: The entries that the `at` of such a policy begins with; its own follow.
SHARED = (
    "cursor",  # every pair before this one was handed out
    "reported",  # rewards that came in
    "leader",  # the pair of the largest average reward; −1 before any report
)


def start_counts(pairs: int) -> dict[str, NDArray[Any]]:
    """The fields for so many pairs."""
    return {
        "pulls": np.zeros(pairs, np.int64),
        "reports": np.zeros(pairs, np.int64),
        "sums": np.zeros(pairs),
    }


@inlined
def first_pull(state: Any) -> int:
    """The next pair of the first round, in which each is pulled once; −1 when it is over.

    While no reward at all has come in after that, it is the pair with the fewest pulls.
    """
    if state.at[0].cursor < len(state.pulls):
        return state.at[0].cursor
    if state.at[0].reported == 0:
        return fewest(state.pulls)
    return -1


@jit
def fewest(pulls: NDArray[np.int64]) -> int:
    """The first of the pairs with the fewest pulls."""
    best = 0
    for k in range(len(pulls)):
        if pulls[k] < pulls[best]:
            best = k
    return best


@inlined
def add_pull(state: Any, k: int) -> None:
    """Pair k was handed out."""
    state.pulls[k] += 1
    _move_cursor(state)


@inlined
def add_reports(state: Any, k: int, count: int, total: float) -> float:
    """So many rewards of pair k came in, with this sum. Returns its average now."""
    state.at[0].reported += count
    state.reports[k] += count
    state.sums[k] += total
    if state.pulls[k] < state.reports[k]:  # known from elsewhere, and never handed out
        state.pulls[k] = state.reports[k]
        _move_cursor(state)
    return state.sums[k] / state.reports[k]


@inlined
def give_back(state: Any, k: int) -> None:
    """A reward of pair k will never come. A pair with no pull left is in the first round again."""
    if state.pulls[k] > state.reports[k]:
        state.pulls[k] -= 1
    if state.pulls[k] == 0:
        state.at[0].cursor = min(state.at[0].cursor, k)


@inlined
def _move_cursor(state: Any) -> None:
    at = state.at[0]
    while at.cursor < len(state.pulls) and state.pulls[at.cursor] > 0:
        at.cursor += 1
