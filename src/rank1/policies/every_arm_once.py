"""Every pair once, in row-major order, for policies that begin so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined
from rank1.policies.base import Records

__all__ = [
    "FIRST",
    "LATER",
    "SHARED",
    "best_mean",
    "first_pulls",
    "issue_again",
    "mark_begun",
    "note_first",
]

#: The entries that the `at` of such a policy begins with; its own follow.
SHARED = (
    "cursor",  # the lowest pair that has not been issued
    "reported",  # t: rewards that came in
    "again",  # pairs issued a second time, because no reward at all had come in
)

# The tag of a pull says whether it was a pair's first.
LATER, FIRST = 0, 1


@inlined
def first_pulls(at: Records, begun: NDArray[np.bool_]) -> tuple[int, int]:
    """The next pair to be pulled for the first time and its tag, or -1 when all were issued.

    While nothing at all is reported after that, the pairs are issued again, in the same order.
    """
    k = at[0].cursor
    if k < len(begun):
        mark_begun(at, begun, k)
        return k, FIRST
    if at[0].reported == 0:
        k = at[0].again % len(begun)
        at[0].again += 1
        return k, LATER
    return -1, LATER


@inlined
def mark_begun(at: Records, begun: NDArray[np.bool_], k: int) -> None:
    """Pair k needs no first pull any more."""
    begun[k] = True
    while at[0].cursor < len(begun) and begun[at[0].cursor]:
        at[0].cursor += 1


@inlined
def note_first(at: Records, begun: NDArray[np.bool_], k: int, tag: int) -> bool:
    """What `first_pulls` notes when it hands out this pull; False if it had not chosen it."""
    if tag == FIRST:
        mark_begun(at, begun, k)
        return True
    if at[0].reported == 0:
        at[0].again += 1
        return True
    return False


@inlined
def issue_again(at: Records, begun: NDArray[np.bool_], pair: int, tag: int) -> None:
    """A pair whose first reward will never come is issued again."""
    if tag == FIRST:
        begun[pair] = False
        at[0].cursor = min(at[0].cursor, pair)


def best_mean(sums: NDArray[Any], counts: NDArray[np.int64]) -> tuple[int, int]:
    """The pair of the largest average reward among those with a report."""
    means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
    row, column = np.unravel_index(int(means.argmax()), means.shape)
    return int(row), int(column)
