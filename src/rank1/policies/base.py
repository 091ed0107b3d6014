"""What every policy has: settings as an immutable value, and a state of plain arrays.

A policy is one file with two classes. The policy itself is a frozen dataclass whose fields are its
settings; `start` returns its state, a NamedTuple of NumPy arrays with the methods of `State`.
`choose` and `update` are compiled: the simulation's loop has them inlined, and a live study calls
the same code through `rank1.ask` and `rank1.tell`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import method, record
from rank1.errors import InputError, InputTypeError

__all__ = [
    "Known",
    "Policy",
    "Pull",
    "Records",
    "State",
    "Truth",
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

#: An array of one record, whose entries have names; see `rank1.compiled.record`.
Records = NDArray[Any]


class Truth(NamedTuple):
    """What only a simulation knows of its problem; for policies with `needs_truth`."""

    best_pair: tuple[int, int]
    #: Mean reward of the worst pair.
    lowest_mean: float


_LIMITS = record("K", "L", "n", low=float, high=float, sigma=float)


@dataclasses.dataclass(frozen=True)
class Known:
    """What a policy is told before the first step.

    Parameters
    ----------
    K, L
        Numbers of rows and columns.
    n
        The horizon: how many steps are planned.
    low, high
        The least and the largest reward; infinite where there is none.
    sigma
        Standard deviation of noise that isn't bounded.
    truth
        What only a simulation knows: for policies that declare `needs_truth`, else None.

    Examples
    --------
    >>> Known(K=0, L=3, n=1000)
    Traceback (most recent call last):
    ...
    rank1.InputError: K must be a whole number of at least 1, got 0
    """

    K: int
    L: int
    n: int
    low: float = 0.0
    high: float = 1.0
    sigma: float = 0.0
    truth: Truth | None = None

    def __post_init__(self) -> None:
        """Checked here, because compiled code doesn't check anything."""
        for name in ("K", "L", "n"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), 1))
        if not self.low <= self.high:  # catches NaN too
            raise InputError(f"low must be at most high, got {self.low} and {self.high}")
        checks.number("sigma", self.sigma, 0)

    @property
    def limits(self) -> Records:
        """All of it but the truth as a record, for the field `limits` that every state has."""
        values = self.K, self.L, self.n, self.low, self.high, self.sigma
        return np.array([values], _LIMITS)


class Pull(NamedTuple):
    """One choice: a pair, and the tag by which the policy knows it again."""

    row: int
    column: int
    tag: int


class State(Protocol):
    """What a policy has learned so far: a NamedTuple of NumPy arrays with these methods.

    `choose`, `issued`, `update` and `expects` are compiled by Numba and must not allocate; `forget`
    and `best` are plain Python. Where the policy says `counts`, there is a `load` beside these, and
    both `load` and `forget` are compiled.
    """

    @property
    def limits(self) -> Records:
        """`Known.limits` of the start; `tell` refuses pulls and rewards outside them."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int, int]:
        """The next pull, as row, column and tag.

        May be called any number of times before rewards come in. The tag is a whole number by
        which the policy knows the pull again.
        """

    def issued(self, row: int, column: int, tag: int) -> None:
        """This pull was handed out: what `choose` does beside choosing, without random numbers.

        A state that is told of the pulls that another one's `choose` gave, and of the rewards,
        is the same but for the arrays that `Policy.caches` names. Any pull on the grid is taken,
        also one that this policy would not have chosen.
        """

    def update(self, row: int, column: int, tag: int, reward: float) -> None:
        """A pull's reward has come in. Rewards may come in any order."""

    def expects(self, row: int, column: int, tag: int) -> bool:
        """Whether this pull's reward may be reported now, as far as the state can tell."""

    def forget(self, row: int, column: int, tag: int) -> Self:
        """This pull's reward will never come. Returns the state to go on with."""

    def best(self) -> tuple[int, int]:
        """The pair to recommend now."""

    def _asdict(self) -> dict[str, Any]:
        """The arrays by name, as every NamedTuple has it."""


@dataclasses.dataclass(frozen=True)
class Policy:
    """An algorithm with its settings."""

    #: The name on the command line and in results.
    name: ClassVar[str]
    #: Whether its state is an `EliminationState`, which can be simulated by whole stages.
    eliminates: ClassVar[bool] = False
    #: Whether all that its state learns is how many rewards each pair had and their sum. Such a
    #: state has a method `load(row, column, count, total)`: so many rewards are known of the pair,
    #: which needs no first pull any more. In any order, and again for the same pair.
    counts: ClassVar[bool] = False
    #: Whether it tries every pair once before it chooses.
    every_pair_first: ClassVar[bool] = False
    #: Whether its state keeps something for each row and column, and nothing for each pair.
    lines_only: ClassVar[bool] = False
    #: Whether its choice follows from what was reported: the propensity of each pull is 1.
    deterministic: ClassVar[bool] = False
    #: Arrays of its state that only save time: whatever is in them, choices have the same law.
    caches: ClassVar[tuple[str, ...]] = ()
    #: Whether its state is a `PairElimState`, which can be simulated by many rounds at once.
    has_rounds: ClassVar[bool] = False
    #: To be raised when an array of its state changes its meaning: older snapshots are refused.
    layout: ClassVar[int] = 1
    #: Settings that it didn't have at first: at their default, its runs are those of before.
    later: ClassVar[tuple[str, ...]] = ()

    @property
    def needs_truth(self) -> bool:
        """Whether `start` reads `Known.truth`, so that only simulations can play it."""
        return False

    def start(self, known: Known) -> State:
        """The state before the first step."""
        raise InputTypeError(f"{type(self).__name__} has no start")

    def propensity(self, K: int, L: int) -> float:
        """The probability with which `choose` picked the pull that it gave; NaN if not known."""
        return 1.0 if self.deterministic else math.nan

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain values: 1 and 1.0 are the same setting and give the same runs.

        What is infinite is a text, since JSON has no number for it.
        """
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                raise InputTypeError(
                    f"{name} of {self.name} must be a plain value, got {checks.shown(value)}"
                )
        return {name: _plain(value) for name, value in values.items()}

    @property
    def label(self) -> str:
        """The name with every setting that isn't the default, as the command line takes it."""
        return label_of(self.name, self.settings, type(self))


def label_of(name: str, settings: Mapping[str, Any], cls: type[Policy] | None = None) -> str:
    """The one name of a policy with these settings: those at their default are left out.

    Without a class, as for a policy of somebody else's that a file speaks of, all are shown.

    >>> import rank1
    >>> label_of("linucb", {"confidence_scale": 1 / 3, "ridge": 1.0}, rank1.LinUCB)
    'linucb:confidence_scale=1/3'
    >>> label_of("mine", {"a": 2.0, "b": "wide"})
    'mine:a=2,b=wide'
    """
    fields = dataclasses.fields(cls) if cls else ()
    defaults = {field.name: _plain(field.default) for field in fields}
    shown = [
        f"{key}={setting_text(value)}"
        for key, value in settings.items()
        if key not in defaults or value != defaults[key]
    ]
    return name + (":" + ",".join(shown) if shown else "")


def _plain(value: Any) -> Any:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if is_number:
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def setting_text(value: Any) -> str:
    """The shortest text that the command line reads as this value.

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
    """The truth, or an error that says who can't do without.

    >>> require_truth("oracle", Known(K=2, L=2, n=10))
    Traceback (most recent call last):
    ...
    rank1.InputError: oracle needs the truth about the problem, which only a simulation knows; got truth=None
    """  # noqa: E501
    if known.truth is None:
        raise InputError(
            f"{policy} needs the truth about the problem, which only a simulation knows; "
            "got truth=None"
        )
    return known.truth


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
