"""The base of every policy: settings as an immutable value, and a state of plain arrays.

A policy is one file with two classes. The policy itself is a frozen dataclass whose fields are its
settings; `start` returns its state, a NamedTuple of NumPy arrays with the methods of `State`.
`choose` and `update` are plain Python that Numba can compile: the simulation loop inlines them,
and a live study calls the same code through `rank1.ask` and `rank1.tell`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from rank1.compiled import method
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_KEPT, Grid
from rank1.policies.known import (
    Known,
    Records,
    Truth,
    require_truth,
    require_unit_rewards,
)
from rank1.policies.labels import changed, label_of, plain_setting

__all__ = [
    "Deterministic",
    "Known",
    "Leaps",
    "Policy",
    "Pull",
    "Records",
    "Simple",
    "State",
    "Truth",
    "has_counts",
    "label_of",
    "require_truth",
    "require_unit_rewards",
]

choose = method("choose")
update = method("update")
issued = method("issued")
load = method("load")
expects = method("expects")
forget = method("forget")


class Pull(NamedTuple):
    """One choice: an arm, and a tag by which the policy recognises the pull later."""

    arm: int
    tag: int


class State(Protocol):
    """What a policy has learned so far: a NamedTuple of NumPy arrays with these methods.

    Numba may compile `choose`, `issued`, `update` and `expects`, so they must not allocate;
    `forget` and `best` are plain Python. A state that only learns the number and the sum of each
    arm's rewards also has `load(arm, count, total)`, which adds `count` rewards with this sum; the
    arm then needs no first pull. Such a state's `load` and `forget` are compiled as well, and a
    study with such a policy can be revised and can forget.
    """

    #: Arrays that only save time: their contents never change the law of the choices.
    caches: ClassVar[tuple[str, ...]]

    @property
    def limits(self) -> Records:
        """`Known.limits` from `start`; `tell` rejects pulls and rewards outside these limits."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The next pull, as arm and tag.

        May be called any number of times before rewards arrive. The tag is an integer by which
        the policy recognises the pull later.
        """

    def issued(self, arm: int, tag: int) -> None:
        """Record that this pull was handed out: the side effects of `choose`, without randomness.

        A state that receives the pulls and rewards of another state ends up equal to it, except
        for the arrays named in `caches`. Accepts any pull on the grid, even one that this policy
        would not have chosen.
        """

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Learn a pull's reward. Rewards may arrive in any order."""

    def expects(self, arm: int, tag: int) -> bool:
        """Whether the state can accept this pull's reward now, as far as it can tell."""

    def forget(self, arm: int, tag: int) -> Self:
        """Give up on this pull's reward. Returns the state to use from now on."""

    def best(self) -> int:
        """The arm to recommend now."""

    def _asdict(self) -> dict[str, Any]:
        """The arrays by name; every NamedTuple has this method."""


class Simple:
    """State methods for policies that ignore a pull until its reward arrives.

    Put it last among the bases: `class MyState(MyArrays, Simple)`, where `MyArrays` is a
    NamedTuple.
    """

    caches: ClassVar[tuple[str, ...]] = ()

    def issued(self, arm: int, tag: int) -> None:
        """Do nothing: only rewards matter."""

    def expects(self, arm: int, tag: int) -> bool:
        """Accept any pull."""
        return True

    def forget(self, arm: int, tag: int) -> Self:
        """Return the same state: only rewards matter."""
        return self


class Leaps(NamedTuple):
    """How to play a policy's runs many pulls at a time, with the same law as pull by pull.

    `play(state, law, rng, splitter, n, until_done, work)` plays the first n steps and is compiled
    for the state and the law. Like the loop, it returns the step it reached and the arm at which it
    stopped. `until_done` is set only for a policy with its own stopping rule: play then ends as
    soon as the state is done. `room(law, grid, checkpoints, curve, totals)` allocates `work`, where
    play records regret. `suits(policy, problem)` tells whether the shortcut works for this policy
    on this problem, whose law must have the methods that `play` calls.
    """

    play: Callable[..., tuple[int, int]]
    room: Callable[..., Any]
    suits: Callable[[Any, Any], bool] = lambda policy, problem: True


@dataclasses.dataclass(frozen=True)
class Policy:
    """An algorithm with its settings."""

    #: The name on the command line and in results.
    name: ClassVar[str]
    #: The number of sides a grid must have; None: any number.
    sides: ClassVar[int | None] = None
    #: The largest number of arms it can play.
    most_arms: ClassVar[int] = MAX_KEPT
    #: Increase this when an array of the state changes its meaning: older snapshots are rejected.
    layout: ClassVar[int] = 1
    #: How to play its runs many pulls at a time, on problems whose law can draw sums.
    leaps: ClassVar[Leaps | None] = None

    @property
    def needs_truth(self) -> bool:
        """Whether `start` reads `Known.truth`, so that only simulations can play it."""
        return False

    @property
    def needs_all(self) -> tuple[str, ...]:
        """What must be known completely to choose a pull: all "pulls", all "rewards", or neither.

        Default: neither. If several processes choose for one policy, each may not yet know what
        the others did. If the policy can't use a pull that was chosen without this knowledge, the
        pull is dropped, with its reward.
        """
        return ()

    def start(self, known: Known) -> State:
        """The state before the first step."""
        raise InputTypeError("policy", self, "one with a method `start`")

    def first_pulls(self, arms: int) -> int:
        """The number of initial pulls that don't depend on any reward."""
        return 0

    def propensity(self, arms: int) -> float:
        """The probability with which `choose` picked its last pull; NaN if unknown."""
        return math.nan

    def judging(self, confidence: float, rank_one: bool) -> Policy | None:
        """This policy with its own stopping rule at this confidence; None if it has no rule.

        The state of a policy with a stopping rule has a compilable method `done()`: whether the
        arm that `best` returns can be declared the best.
        """
        return None

    def allowance(self, sides: int) -> float:
        """The factor by which the best arm may exceed the arm at which its own rule stops."""
        return 1.0

    def check(self, grid: Grid, horizon: int | None = None) -> None:
        """Raise an InputError if it can't play the grid, or can't try every arm by the horizon.

        >>> import rank1
        >>> rank1.Rank1Elim().check(Grid([5, 5, 5]))
        Traceback (most recent call last):
        ...
        rank1.InputError: sides must be 2 for rank1elim, got 3 (5×5×5): use a policy for any number of sides, such as uts
        >>> rank1.UTS().check(Grid([30, 20]), horizon=500)
        Traceback (most recent call last):
        ...
        rank1.InputError: horizon must be at least 600, got 500: uts tries each of the 600 arms first; raise the horizon, merge levels, or use a policy that doesn't try every arm first, such as thompson
        """  # noqa: E501
        if self.sides is not None and len(grid.sizes) != self.sides:
            raise InputError(
                "sides",
                grid.sizes,
                f"{self.sides} for {self.name}",
                "use a policy for any number of sides, such as uts",
                got=f"{len(grid.sizes)} ({grid})",
            )
        if grid.arms > self.most_arms:
            raise InputError(
                "sides",
                grid.sizes,
                f"small enough for {self.most_arms:,} arms, because {self.name} stores data for "
                "every arm",
                got=f"{grid.arms:,} ({grid})",
            )
        first = self.first_pulls(grid.arms)
        if horizon is not None and first > horizon:
            raise InputError(
                "horizon",
                horizon,
                f"at least {first:,}",
                f"{self.name} tries each of the {first:,} arms first; raise the horizon, merge "
                "levels, or use a policy that doesn't try every arm first, such as thompson",
                got=f"{horizon:,}",
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain values: 1 and 1.0 are the same setting and give the same runs.

        Infinite values are strings, since JSON has no number for them.
        """
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                raise InputTypeError(
                    name, value, f"a plain value, like all settings of {self.name}"
                )
        return {name: plain_setting(value) for name, value in values.items()}

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        return changed(self.settings, type(self))

    @property
    def label(self) -> str:
        """The name with every setting that isn't at its default, as the command line takes it."""
        return label_of(self.name, self.settings, type(self))


@dataclasses.dataclass(frozen=True)
class Deterministic(Policy):
    """A policy whose choices past events determine."""

    def propensity(self, arms: int) -> float:
        """1: there is one possible choice."""
        return 1.0


def has_counts(state: Any) -> bool:
    """Whether a state learns only the number and the sum of each arm's rewards."""
    return hasattr(state, "load")
