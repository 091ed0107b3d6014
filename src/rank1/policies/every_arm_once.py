"""Every arm once, in ascending order, for policies that begin so.

An array of the state says which arms were handed out: `begun`, or `pulls` in policies to which a
pull counts from then on. See `counting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined
from rank1.policies.base import Policy, Records, Simple

__all__ = [
    "FIRST",
    "LATER",
    "SHARED",
    "BeginsWithAll",
    "EveryArmOnce",
    "first_pull",
    "issue_again",
    "mark_begun",
    "next_first",
    "note_first",
    "skip_begun",
]

#: The entries that the `at` of such a policy begins with; its own follow.
SHARED = (
    "cursor",  # the lowest arm that has not been issued
    "reported",  # t: rewards that came in
    "again",  # arms issued a second time, because no reward at all had come in
)

# The lowest bit of a pull's tag says whether it was an arm's first.
LATER, FIRST = 0, 1


@dataclass(frozen=True)
class EveryArmOnce(Policy):
    """A policy that begins so, and draws nothing at random."""

    def first_pulls(self, arms: int) -> int:
        """Every arm once."""
        return arms

    def propensity(self, arms: int) -> float:
        """Its choices follow from what came before."""
        return 1.0


class BeginsWithAll(Simple):
    """State methods for such a policy, with the fields `at` and `begun`."""

    at: Records
    begun: NDArray[np.bool_]

    def issued(self, arm: int, tag: int) -> None:
        """Only a first pull changes anything."""
        note_first(self.at, self.begun, arm, tag)

    def forget(self, arm: int, tag: int) -> Self:
        """An arm's first pull is issued again; nothing else depends on the pull."""
        if tag & 1 == FIRST:
            self.begun[arm] = False
            issue_again(self.at, arm)
        return self


@inlined
def next_first(at: Records, begun: NDArray[Any]) -> int:
    """The next arm to be pulled for the first time, or -1 when all were issued.

    While nothing at all is reported after that, the arms are issued again, in the same order.
    """
    if at[0].cursor < len(begun):
        return at[0].cursor
    if at[0].reported == 0:
        return at[0].again % len(begun)
    return -1


@inlined
def first_pull(at: Records, begun: NDArray[np.bool_]) -> tuple[int, int]:
    """The same with its tag, and noted."""
    arm = next_first(at, begun)
    tag = LATER
    if arm >= 0:
        if at[0].cursor < len(begun):
            tag = FIRST
        note_first(at, begun, arm, tag)
    return arm, tag


@inlined
def mark_begun(at: Records, begun: NDArray[np.bool_], arm: int) -> None:
    """This arm needs no first pull any more."""
    begun[arm] = True
    skip_begun(at, begun)


@inlined
def skip_begun(at: Records, begun: NDArray[Any]) -> None:
    """Move the cursor to the lowest arm that has not been issued."""
    while at[0].cursor < len(begun) and begun[at[0].cursor]:
        at[0].cursor += 1


@inlined
def note_first(at: Records, begun: NDArray[np.bool_], arm: int, tag: int) -> bool:
    """What `first_pull` notes when it hands out this pull; False if it had not chosen it."""
    if tag & 1 == FIRST:
        mark_begun(at, begun, arm)
        return True
    if at[0].reported == 0:
        at[0].again += 1
        return True
    return False


@inlined
def issue_again(at: Records, arm: int) -> None:
    """An arm whose only reward will never come is issued again."""
    at[0].cursor = min(at[0].cursor, arm)
