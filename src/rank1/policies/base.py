"""What every policy has: settings as an immutable value, and a state of plain arrays.

A policy is one file with two classes. The policy itself is a frozen dataclass whose fields are its
settings; `start` returns its state. The state is a NamedTuple of arrays with these methods, which
the simulation compiles and a live study calls one at a time:

- `choose(rng)`: the next pull, as (row, column, tag). May be called any number of times before
  rewards come in. The tag is a whole number by which the policy knows the pull again.
- `update(row, column, tag, reward)`: a reward has come in, in any order.
- `forget(row, column, tag)`: this pull's reward will never come. Returns the state to go on with.
  Plain Python, never compiled.
- `best()`: the pair to recommend now.

A field `limits`, set to `Known.limits`, lets `tell` refuse what doesn't belong to the grid, and a
method `expects(row, column, tag)`, plain Python, what can't have been asked for.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import kernel, method
from rank1.errors import InputError, InputTypeError

__all__ = ["Known", "Policy", "Pull", "Records", "ask", "record", "require_unit_rewards", "tell"]

choose = method("choose")
update = method("update")


class _Known(NamedTuple):
    K: int
    L: int
    #: The horizon: how many steps are planned.
    n: int
    #: Standard deviation of noise that isn't bounded.
    sigma: float = 0.0
    #: The least and the largest reward.
    low: float = 0.0
    high: float = 1.0
    #: Mean of the worst pair, where it is known.
    lowest_mean: float = math.nan
    #: For policies that only show what is possible; (-1, -1) where nobody knows.
    best_pair: tuple[int, int] = (-1, -1)


class Known(_Known):
    """What a policy is told before the first step.

    >>> Known(K=0, L=3, n=1000)
    Traceback (most recent call last):
    ...
    rank1.InputError: K must be a whole number of at least 1, got 0
    """

    __slots__ = ()

    def __new__(cls, *told: Any, **named: Any) -> Self:
        """Checked, because compiled code doesn't."""
        known = super().__new__(cls, *told, **named)
        for name in ("K", "L", "n"):
            checks.integer(name, getattr(known, name), 1)
        return known

    @property
    def limits(self) -> NDArray[np.float64]:
        """K, L, the least and the largest reward; `tell` looks at a state's field of this name."""
        return np.array([self.K, self.L, self.low, self.high], np.float64)


#: An array of one record, whose entries have names; see `record`.
Records = NDArray[Any]


def record(*names: str, **types: type) -> np.dtype[Any]:
    """A type for scalars that a state keeps: whole numbers, and others by their type.

    Compiled code and Python both read `state.at[0].stage`.

    >>> at = np.zeros(1, record("stage", "place", radius=float))
    >>> at[0].stage += 2
    >>> int(at[0].stage), float(at[0].radius)
    (2, 0.0)
    """
    fields = dict.fromkeys(names, np.int64) | types
    for name in fields:
        if hasattr(np.record, name):  # in Python the method would hide the entry
            raise InputError(
                f"an entry must not be called {name}, like a method of NumPy's records"
            )
    return np.dtype((np.record, list(fields.items())))


class Pull(NamedTuple):
    """One choice: a pair, and the tag by which the policy knows it again."""

    row: int
    column: int
    tag: int


@dataclasses.dataclass(frozen=True)
class Policy:
    """An algorithm with its settings."""

    #: The name on the command line and in results.
    name: ClassVar[str]
    #: Whether its state is an `EliminationState`, which can be simulated by whole stages.
    eliminates: ClassVar[bool] = False

    def start(self, known: Known) -> Any:
        """The state before the first step."""
        raise InputTypeError(f"{type(self).__name__} has no start")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain values: 1 and 1.0 are the same setting and give the same runs."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: _plain(value) for name, value in values.items()}

    @property
    def label(self) -> str:
        """The name with every setting that isn't the default, as the command line takes it."""
        settings = self.settings
        changed = [
            f"{field.name}={setting_text(settings[field.name])}"
            for field in dataclasses.fields(self)
            if settings[field.name] != field.default
        ]
        return self.name + (":" + ",".join(changed) if changed else "")


def _plain(value: Any) -> Any:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if is_number else value


def setting_text(value: Any) -> str:
    """The shortest text that the command line reads as this value.

    >>> setting_text(0.0), setting_text(1 / 3), setting_text(1000000.5)
    ('0', '1/3', '1000000.5')
    """
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if float(f"{value:g}") == value:
        return f"{value:g}"
    texts = [str(value)]
    for denominator in range(3, 100):
        if value > 0 and round(value * denominator) / denominator == value:
            texts.append(f"{round(value * denominator)}/{denominator}")
    return min(texts, key=len)


def _choose(state: Any, rng: np.random.Generator) -> Any:
    return choose(state, rng)


def _update(state: Any, row: int, column: int, tag: int, reward: float) -> None:
    update(state, row, column, tag, reward)


def ask(state: Any, rng: np.random.Generator) -> Pull:
    """The next pull, by the same compiled function that simulations use.

    >>> import numpy as np, rank1
    >>> state = rank1.Rank1Elim().start(rank1.Known(K=2, L=3, n=1000))
    >>> rng = np.random.default_rng(1)
    >>> pull = rank1.ask(state, rng)
    >>> rank1.tell(state, pull, reward=1.0)
    """
    return Pull(*kernel(_choose, state)(state, rng))


def tell(state: Any, pull: Pull, reward: float) -> None:
    """Report a pull's reward.

    The pull must be one that `ask` gave. That it lies on the grid is checked, as is the reward.

    >>> import rank1
    >>> state = rank1.UTS().start(rank1.Known(K=2, L=3, n=1000))
    >>> rank1.tell(state, rank1.Pull(2, 0, tag=0), reward=1.0)
    Traceback (most recent call last):
    ...
    rank1.InputError: pull must lie on the grid of 2 rows and 3 columns, got Pull(row=2, column=0, tag=0)
    """  # noqa: E501
    if not math.isfinite(reward):
        raise InputError(f"reward must be a finite number, got {reward}")
    row, column, tag = pull
    if (limits := getattr(state, "limits", None)) is not None:
        K, L, low, high = limits
        if not (0 <= row < K and 0 <= column < L):
            raise InputError(
                f"pull must lie on the grid of {K:.0f} rows and {L:.0f} columns, got {pull}"
            )
        if not low <= reward <= high:
            raise InputError(f"reward must be a number in [{low:g}, {high:g}], got {reward}")
    if hasattr(state, "expects") and not state.expects(row, column, tag):
        raise InputError(f"pull must be one that was asked for and isn't reported yet, got {pull}")
    kernel(_update, state)(state, row, column, tag, float(reward))


def require_unit_rewards(policy: str, known: Known) -> None:
    """Refuse a problem whose rewards may lie outside [0, 1].

    >>> require_unit_rewards("uts", Known(K=2, L=2, n=10, low=0.0, high=5.0))
    Traceback (most recent call last):
    ...
    rank1.InputError: uts needs rewards in [0, 1], but here they lie in [0, 5]; scale them to [0, 1] or take a policy for any noise, like rank1elim
    """  # noqa: E501
    if known.low < 0 or known.high > 1:
        raise InputError(
            f"{policy} needs rewards in [0, 1], but here they lie in "
            f"[{known.low:g}, {known.high:g}]; scale them to [0, 1] or take a policy for any "
            "noise, like rank1elim"
        )
