"""Pulls and reports of each arm, for policies that count a pull as soon as it is handed out.

In a policy's state, `pulls[k]` is how often arm k was handed out and not given back, `reports[k]`
is how many of those rewards arrived, and `sums[k]` is their sum. Many simultaneous pulls are thus
spread as if they came one by one, while averages use only the rewards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined
from rank1.policies.base import Simple
from rank1.policies.every_arm_once import issue_again, learn, skip_begun

__all__ = ["Counted", "add_pull", "add_reports", "give_back", "start_counts"]


class Counted(Simple):
    """State methods for such a policy.

    Its own method `learn(arm, count, total)` adds `count` rewards with this sum to an arm.
    """

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Learn one reward."""
        learn(self, arm, 1, reward)

    def load(self, arm: int, count: int, total: float) -> None:
        """Learn many rewards."""
        if count > 0:
            learn(self, arm, count, total)


def start_counts(arms: int) -> dict[str, NDArray[Any]]:
    """The fields for this number of arms."""
    return {
        "pulls": np.zeros(arms, np.int64),
        "reports": np.zeros(arms, np.int64),
        "sums": np.zeros(arms),
    }


@inlined
def add_pull(state: Any, k: int) -> None:
    """Record that arm k was handed out."""
    at = state.at[0]
    if at.reported == 0 and at.cursor == len(state.pulls):
        at.again += 1
    state.pulls[k] += 1
    skip_begun(state.at, state.pulls)


@inlined
def add_reports(state: Any, k: int, count: int, total: float) -> float:
    """Add `count` rewards of arm k with this sum. Returns the arm's new average."""
    state.at[0].reported += count
    state.reports[k] += count
    state.sums[k] += total
    if state.pulls[k] < state.reports[k]:  # loaded, never handed out
        state.pulls[k] = state.reports[k]
        skip_begun(state.at, state.pulls)
    return state.sums[k] / state.reports[k]


@inlined
def give_back(state: Any, k: int) -> None:
    """Give up on a reward of arm k. An arm with no pull left rejoins the first round."""
    if state.pulls[k] > state.reports[k]:
        state.pulls[k] -= 1
    if state.pulls[k] == 0:
        issue_again(state.at, k)
