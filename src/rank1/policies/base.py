"""The base of every policy: settings as an immutable value, and a state of plain arrays.

A policy is one file with two classes. The policy itself is a frozen dataclass whose fields are its
settings; `start` returns its state, a NamedTuple of NumPy arrays with the methods of `State`.
`choose` and `update` are plain Python that Numba can compile: the simulation loop inlines them,
and a live study calls the same code through `rank1.ask` and `rank1.tell`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import method, record
from rank1.errors import InputError, InputTypeError
from rank1.grid import MAX_KEPT, Grid

__all__ = [
    "Averages",
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
    "setting_text",
]

choose = method("choose")
update = method("update")
issued = method("issued")
load = method("load")
expects = method("expects")
forget = method("forget")

#: An array of records, whose entries have names; see `rank1.compiled.record`.
Records = NDArray[Any]

LIMITS = record("levels", "stride", "arms", "n", low=float, high=float, sigma=float)


class Truth(NamedTuple):
    """Facts about a problem that only a simulation knows; for policies with `needs_truth`."""

    best_arm: int
    #: Mean reward of the worst arm.
    lowest_mean: float


@dataclasses.dataclass(frozen=True)
class Known:
    """What a policy knows before the first step.

    Parameters
    ----------
    K, L
        Numbers of rows and columns, for a grid of two sides.
    n
        The horizon: the planned number of steps.
    low, high
        The smallest and the largest possible reward; infinite if rewards are unbounded.
    sigma
        Standard deviation of unbounded noise.
    truth
        What only a simulation knows, for policies that declare `needs_truth`; otherwise None.
    sides
        The number of levels of each side, or a `Grid`, instead of K and L.

    Examples
    --------
    >>> Known(K=2, L=3, n=1000).arms, Known(sides=(5, 5, 5), n=1000).arms
    (6, 125)
    >>> Known(K=0, L=3, n=1000)
    Traceback (most recent call last):
    ...
    rank1.InputError: K must be a whole number of at least 1, got 0
    """

    grid: Grid
    n: int
    low: float
    high: float
    sigma: float
    truth: Truth | None

    def __init__(
        self,
        K: int | None = None,
        L: int | None = None,
        n: int = 0,
        low: float = 0.0,
        high: float = 1.0,
        sigma: float = 0.0,
        truth: Truth | None = None,
        *,
        sides: Grid | Iterable[int] | None = None,
    ) -> None:
        if sides is None:
            sides = (checks.integer("K", K, 1), checks.integer("L", L, 1))
        elif K is not None or L is not None:
            raise InputError("sides", sides, "None where K and L are given")
        # Check here, because compiled code checks nothing.
        if not low <= high:  # catches NaN too
            raise InputError("low", low, f"at most high, which is {high}")
        values = {
            "grid": sides if isinstance(sides, Grid) else Grid(sides),
            "n": checks.integer("n", n, 1),
            "low": low,
            "high": high,
            "sigma": checks.number("sigma", sigma, 0),
            "truth": truth,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.grid.arms

    @property
    def K(self) -> int:
        """Number of rows of a grid of two sides."""
        return self._two_sides[0]

    @property
    def L(self) -> int:
        """Number of columns of a grid of two sides."""
        return self._two_sides[1]

    @property
    def _two_sides(self) -> tuple[int, ...]:
        if len(self.grid.sizes) != 2:
            raise InputError("sides", self.grid.sizes, "two, rows and columns", got=str(self.grid))
        return self.grid.sizes

    @property
    def limits(self) -> Records:
        """Everything except the truth, for the field `limits` that every state has.

        One record per side, with its `levels` and `stride`; `arms`, `n`, `low`, `high` and
        `sigma` are the same in every record.
        """
        more = self.arms, self.n, self.low, self.high, self.sigma
        sides = zip(self.grid.sizes, self.grid.strides, strict=True)
        return np.array([(*side, *more) for side in sides], LIMITS)

    @classmethod
    def of_limits(cls, limits: Records, truth: Truth | None = None) -> Known:
        """Rebuild a `Known` from the field `limits` of a state.

        >>> Known.of_limits(Known(sides=(2, 3, 4), n=10).limits).grid
        Grid(sizes=(2, 3, 4), names=None, labels=None)
        """
        _, _, _, n, low, high, sigma = limits[0].item()
        sizes = [int(side.levels) for side in limits]
        return cls(n=n, low=low, high=high, sigma=sigma, truth=truth, sides=sizes)


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


class Averages(Simple):
    """State methods for policies that learn the average reward of each arm.

    The state has the arrays `sums` and `counts`, with one entry per arm.
    """

    sums: NDArray[np.float64]
    counts: NDArray[np.int64]

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Count the reward."""
        self.sums[arm] += reward
        self.counts[arm] += 1

    def load(self, arm: int, count: int, total: float) -> None:
        """Count the rewards."""
        self.sums[arm] += total
        self.counts[arm] += count

    def best(self) -> int:
        """The arm with the largest average reward, among the arms that have one."""
        means = np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), -np.inf)
        return int(means.argmax())


class Leaps(NamedTuple):
    """How to play a policy's runs many pulls at a time, with the same law as pull by pull.

    `play(state, law, rng, splitter, n, until_done, checkpoints, curve, totals, *room)` plays the
    first n steps and is compiled for the state and the law. Like the loop, it returns the step it
    reached and the arm at which it stopped. `until_done` is set only for a policy with its own
    stopping rule: play then ends as soon as the state is done. `room(law, grid, checkpoints)`
    allocates work arrays. `suits(policy, problem)` tells whether the shortcut works for this policy
    on this problem, whose law must have the methods that `play` calls.
    """

    play: Callable[..., tuple[int, int]]
    room: Callable[..., tuple[Any, ...]]
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
        rank1.InputError: horizon must be at least 600, got 500: uts tries each of the 600 arms first; raise the horizon, merge levels, or use a policy that needn't try every arm, such as thompson
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
                f"fewer levels, for at most {self.most_arms:,} arms: {self.name} stores data for "
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
                "levels, or use a policy that needn't try every arm, such as thompson",
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
                raise InputTypeError(name, value, f"a plain value, as all settings of {self.name}")
        return {name: _plain(value) for name, value in values.items()}

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        return _changed(self.settings, type(self))

    @property
    def label(self) -> str:
        """The name with every setting that isn't at its default, as the command line takes it."""
        return label_of(self.name, self.settings, type(self))


def has_counts(state: Any) -> bool:
    """Whether a state learns only the number and the sum of each arm's rewards."""
    return hasattr(state, "load")


def label_of(name: str, settings: Mapping[str, Any], cls: type[Policy] | None = None) -> str:
    """The label of a policy with these settings; settings at their default are left out.

    Without a class, for example for a third-party policy named in a file, it shows all settings.

    >>> import rank1
    >>> label_of("linucb", {"confidence_scale": 1 / 3, "ridge": 1.0}, rank1.LinUCB)
    'linucb:confidence_scale=1/3'
    >>> label_of("mine", {"a": 2.0, "b": "wide"})
    'mine:a=2,b=wide'
    """
    shown = [f"{key}={setting_text(value)}" for key, value in _changed(settings, cls).items()]
    return name + (":" + ",".join(shown) if shown else "")


def _changed(settings: Mapping[str, Any], cls: type[Policy] | None) -> dict[str, Any]:
    fields = dataclasses.fields(cls) if cls else ()
    defaults = {field.name: _plain(field.default) for field in fields}
    return {
        key: value
        for key, value in settings.items()
        if key not in defaults or value != defaults[key]
    }


def _plain(value: Any) -> Any:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if is_number:
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def setting_text(value: Any) -> str:
    """The shortest text that the command line parses as this value.

    >>> setting_text(0.0), setting_text(1 / 3), setting_text(1000000.5), setting_text(False)
    ('0', '1/3', '1000000.5', 'false')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if float(f"{value:g}") == value:
        return f"{value:g}"
    texts = [str(value)]
    for denominator in range(3, 100):
        if value > 0 and round(value * denominator) / denominator == value:
            texts.append(f"{round(value * denominator)}/{denominator}")
    return min(texts, key=len)


def require_truth(policy: str, known: Known) -> Truth:
    """Return the truth, or raise an error that names the policy that needs it.

    >>> require_truth("oracle", Known(K=2, L=2, n=10))
    Traceback (most recent call last):
    ...
    rank1.InputError: truth must be known for oracle, got None: only a simulation knows it
    """
    if known.truth is None:
        raise InputError("truth", None, f"known for {policy}", "only a simulation knows it")
    return known.truth


def require_unit_rewards(policy: str, known: Known) -> None:
    """Reject a problem whose rewards may lie outside [0, 1].

    >>> require_unit_rewards("uts", Known(K=2, L=2, n=10, low=0.0, high=5.0))
    Traceback (most recent call last):
    ...
    rank1.InputError: rewards must be in [0, 1] for uts, got [0, 5]: scale them, or use a policy for any noise, such as rank1elim
    """  # noqa: E501
    if known.low < 0 or known.high > 1:
        raise InputError(
            "rewards",
            (known.low, known.high),
            f"in [0, 1] for {policy}",
            "scale them, or use a policy for any noise, such as rank1elim",
            got=f"[{known.low:g}, {known.high:g}]",
        )
