"""Rules that can end a run before its n steps; they look after every pull.

A policy may have its own rule, `OwnRule`: its state says when it is done. Any other rule is an
immutable value with `start(grid)`, which returns a state: a NamedTuple of arrays with the
compilable methods `learn(arm, reward)` and `may_stop(state)`, which gets the policy's state, and
with `leader()`, the arm that the run names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import method
from rank1.grid import Grid
from rank1.stopping.online import Watch, may_stop, note_report, start_watch

__all__ = ["BestArmRule", "OwnRule", "StopRule"]


done = method("done")


class StopRule(Protocol):
    """A stopping rule. Two rules are the same if their `repr` and their code are."""

    def start(self, grid: Grid) -> Any:
        """The rule's state before the first pull."""


@dataclass(frozen=True)
class OwnRule:
    """The policy's own rule: a run ends when the policy's state is done, and names its best arm."""

    def start(self, grid: Grid) -> Own:
        """An empty state: everything needed is in the policy's state."""
        return Own(np.zeros(0))


class Own(NamedTuple):
    """The state of a policy's own rule."""

    nothing: NDArray[np.float64]

    def learn(self, arm: int, reward: float) -> None:
        """Do nothing."""

    def may_stop(self, state: Any) -> bool:
        """Whether the policy's state is done."""
        return bool(done(state))


class Evidence(NamedTuple):
    """What the rule of `rank1.stopping` has seen so far."""

    watch: Watch

    def learn(self, arm: int, reward: float) -> None:
        """Count a reward of an arm."""
        note_report(self.watch, arm, reward)

    def may_stop(self, state: Any) -> bool:
        """Whether the leader is the best arm at the requested confidence."""
        return may_stop(self.watch)

    def leader(self) -> int:
        """The arm with the largest mean."""
        return max(int(self.watch.at[0].leader), 0)


@dataclass(frozen=True)
class BestArmRule:
    """The rule of `rank1.stopping`: end a run when the leader can be declared the best."""

    confidence: float
    tolerance: float = 0.0
    #: Whether it may assume that the grid has rank one.
    rank_one: bool = True
    #: The evidence: "kt" or "sharp".
    rule: str = "kt"

    def start(self, grid: Grid) -> Evidence:
        """The rule's state before the first pull."""
        level = self.confidence, self.tolerance, self.rank_one
        return Evidence(start_watch(grid.sizes, *level, self.rule))
