"""Every pair once, in row-major order, for policies that begin so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined

__all__ = ["REPORTED", "SHARED", "best_mean", "first_pulls", "issue_again"]

# What the first entries of such a policy's `at` are.
CURSOR = 0  # the lowest pair that has not been issued
REPORTED = 1  # t: rewards that came in
AGAIN = 2  # pairs issued a second time, because no reward at all had come in
SHARED = 3  # how many entries there are; a policy's own follow

#: The tag of a pull of the first round.
FIRST = 1


@inlined
def first_pulls(at: NDArray[np.int64], issued: NDArray[np.bool_]) -> tuple[int, int]:
    """The next pair of the first round and its tag, or -1 when the round is over.

    While nothing at all is reported after it, the pairs are gone through again.
    """
    k = at[CURSOR]
    if k < len(issued):
        issued[k] = True
        at[CURSOR] += 1
        while at[CURSOR] < len(issued) and issued[at[CURSOR]]:
            at[CURSOR] += 1
        return k, FIRST
    if at[REPORTED] == 0:
        k = at[AGAIN] % len(issued)
        at[AGAIN] += 1
        return k, 0
    return -1, 0


def issue_again(at: NDArray[np.int64], issued: NDArray[np.bool_], pair: int, tag: int) -> None:
    """A pull of the first round whose reward will never come is issued again."""
    if tag == FIRST:
        issued[pair] = False
        at[CURSOR] = min(at[CURSOR], pair)


def best_mean(sums: NDArray[Any], counts: NDArray[np.int64]) -> tuple[int, int]:
    """The pair of the largest average reward among those with a report."""
    means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
    row, column = np.unravel_index(int(means.argmax()), means.shape)
    return int(row), int(column)
