"""For policies that start by playing every arm once, in ascending order.

An array of the state says which arms were handed out: `begun`, or `pulls` in policies that count a
pull as soon as it is handed out; see `counting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, method
from rank1.policies.base import Deterministic, Records, Simple

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

#: The first entries of such a policy's `at`; its own entries follow.
SHARED = (
    "cursor",  # the lowest arm that has not been issued
    "reported",  # t: rewards received
    "again",  # arms issued a second time, because no reward had arrived at all
)

learn = method("learn")

# The lowest bit of a pull's tag says whether it was an arm's first.
LATER, FIRST = 0, 1


@dataclass(frozen=True)
class EveryArmOnce(Deterministic):
    """A deterministic policy that plays every arm once first."""

    def first_pulls(self, arms: int) -> int:
        """Every arm once."""
        return arms


class BeginsWithAll(Simple):
    """State methods for such a policy, with the fields `at` and `begun`.

    Its own method `learn(arm, count, total)` adds `count` rewards with this sum to an arm.
    """

    at: Records
    begun: NDArray[np.bool_]

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Learn one reward."""
        learn(self, arm, 1, reward)

    def load(self, arm: int, count: int, total: float) -> None:
        """Learn many rewards; the arm needs no first pull any more."""
        if count > 0:
            mark_begun(self.at, self.begun, arm)
            learn(self, arm, count, total)

    def issued(self, arm: int, tag: int) -> None:
        """Record a first pull; other pulls change nothing."""
        note_first(self.at, self.begun, arm, tag)

    def forget(self, arm: int, tag: int) -> Self:
        """Issue an arm's first pull again; nothing depends on other pulls."""
        if tag & 1 == FIRST:
            self.begun[arm] = False
            issue_again(self.at, arm)
        return self


@inlined
def next_first(at: Records, begun: NDArray[Any]) -> int:
    """The next arm to pull for the first time, or -1 when all were issued.

    As long as no reward at all has arrived after that, the arms are issued again in the same order.
    """
    if at[0].cursor < len(begun):
        return at[0].cursor
    if at[0].reported == 0:
        return at[0].again % len(begun)
    return -1


@inlined
def first_pull(at: Records, begun: NDArray[np.bool_]) -> tuple[int, int]:
    """Like `next_first`, but records the pull and returns its tag, too."""
    arm = next_first(at, begun)
    tag = LATER
    if arm >= 0:
        if at[0].cursor < len(begun):
            tag = FIRST
        note_first(at, begun, arm, tag)
    return arm, tag


@inlined
def mark_begun(at: Records, begun: NDArray[np.bool_], arm: int) -> None:
    """Record that this arm needs no first pull any more."""
    begun[arm] = True
    skip_begun(at, begun)


@inlined
def skip_begun(at: Records, begun: NDArray[Any]) -> None:
    """Move the cursor to the lowest arm that has not been issued."""
    while at[0].cursor < len(begun) and begun[at[0].cursor]:
        at[0].cursor += 1


@inlined
def note_first(at: Records, begun: NDArray[np.bool_], arm: int, tag: int) -> bool:
    """Record a pull as `first_pull` does. Returns False if `first_pull` can't have chosen it."""
    if tag & 1 == FIRST:
        mark_begun(at, begun, arm)
        return True
    if at[0].reported == 0:
        at[0].again += 1
        return True
    return False


@inlined
def issue_again(at: Records, arm: int) -> None:
    """Issue an arm again, because its only reward will never arrive."""
    at[0].cursor = min(at[0].cursor, arm)
