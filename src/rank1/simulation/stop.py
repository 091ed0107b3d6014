"""When a run ends before its n steps: rules that look after every pull.

A policy may have a rule of its own, `OwnRule`: its state says when it is done. Any other rule is an
immutable value with `start(grid)`, which returns a state: a NamedTuple of arrays with
`learn(arm, reward)` and `may_stop(state)`, which compile and of which the second is given the
policy's state, and `leader()`, the arm that the run names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import method
from rank1.grid import Grid
from rank1.stopping.online import Watch, may_stop, note_report, start_watch

__all__ = ["NEVER", "BestArmRule", "OwnRule", "StopRule"]


done = method("done")


class StopRule(Protocol):
    """What ends a run. Two rules are the same if their `repr` and their code are."""

    def start(self, grid: Grid) -> Any:
        """Its state before the first pull."""


@dataclass(frozen=True)
class OwnRule:
    """The policy's own rule: a run ends when its state is done, and names what `best` does."""

    def start(self, grid: Grid) -> Own:
        """All there is to know is in the policy's state."""
        return Own(np.zeros(0))


class Own(NamedTuple):
    """The state of a policy's own rule."""

    nothing: NDArray[np.float64]

    def learn(self, arm: int, reward: float) -> None:
        """A reward of an arm."""

    def may_stop(self, state: Any) -> bool:
        """Whether the policy's state is done."""
        return bool(done(state))


class Evidence(NamedTuple):
    """What the rule of `rank1.stopping` has seen."""

    watch: Watch

    def learn(self, arm: int, reward: float) -> None:
        """A reward of an arm."""
        note_report(self.watch, arm, reward)

    def may_stop(self, state: Any) -> bool:
        """Whether the leader is the best arm, at the confidence asked for."""
        return may_stop(self.watch)

    def leader(self) -> int:
        """The arm of the largest mean."""
        return max(int(self.watch.at[0].leader), 0)


class Never(NamedTuple):
    """The state of no rule: nothing is looked at."""

    nothing: NDArray[np.float64]

    def learn(self, arm: int, reward: float) -> None:
        """A reward of an arm."""

    def may_stop(self, state: Any) -> bool:
        """Whether a run ends: it doesn't."""
        return False


NEVER = Never(np.zeros(0))


@dataclass(frozen=True)
class BestArmRule:
    """The rule of `rank1.stopping`: it ends a run when the leader may be called best."""

    confidence: float
    tolerance: float = 0.0
    #: Whether it may assume that the grid has rank one.
    rank_one: bool = True
    #: The evidence: "kt" or "sharp".
    rule: str = "kt"

    def start(self, grid: Grid) -> Evidence:
        """Its state before the first pull."""
        level = self.confidence, self.tolerance, self.rank_one
        return Evidence(start_watch(grid.sizes, *level, self.rule))
