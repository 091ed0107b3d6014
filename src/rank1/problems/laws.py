"""Laws of factors on [0, 1]: one entry at a time, or whole vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rank1 import checks
from rank1.errors import InputError, InputTypeError
from rank1.problems.base import Floats

__all__ = ["Beta", "Discrete", "FactorLaw", "Interval", "Laws", "Sampler"]


class FactorLaw(Protocol):
    """The law of one factor: a mean, and draws in [0, 1]."""

    @property
    def mean(self) -> float:
        """The expected value."""

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent draws."""

    def spec(self) -> Any:
        """The entry as plain values."""


@dataclass(frozen=True)
class Beta:
    """The Beta(a, b) distribution."""

    a: float
    b: float

    def __post_init__(self) -> None:
        checks.number("a", self.a, 0, above=True)
        checks.number("b", self.b, 0, above=True)

    @property
    def mean(self) -> float:
        """The expected value."""
        return self.a / (self.a + self.b)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent draws."""
        return rng.beta(self.a, self.b, size)

    def spec(self) -> list[Any]:
        """The entry as plain values."""
        return ["beta", float(self.a), float(self.b)]


@dataclass(frozen=True)
class Interval:
    """The uniform distribution on [low, high]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        checks.number("low", self.low, 0, 1)
        checks.number("high", self.high, self.low, 1)

    @property
    def mean(self) -> float:
        """The expected value."""
        return (self.low + self.high) / 2

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent draws."""
        return rng.uniform(self.low, self.high, size)

    def spec(self) -> list[Any]:
        """The entry as plain values."""
        return ["interval", float(self.low), float(self.high)]


@dataclass(frozen=True)
class Discrete:
    """A few values, each with a probability."""

    values: Sequence[float]
    probabilities: Sequence[float]

    def __post_init__(self) -> None:
        values = checks.vector("values", self.values)
        probabilities = checks.vector("probabilities", self.probabilities)
        if len(values) != len(probabilities):
            expected = f"{len(values)} numbers, one for each value"
            raise InputError(
                "probabilities", self.probabilities, expected, got=f"{len(probabilities)}"
            )
        if abs(probabilities.sum() - 1) > 1e-6:
            raise InputError(
                "probabilities", float(probabilities.sum()), "numbers that add up to 1"
            )

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(np.dot(self.values, self.probabilities) / np.sum(self.probabilities))

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent draws."""
        p = np.asarray(self.probabilities, dtype=np.float64)
        return rng.choice(np.asarray(self.values, dtype=np.float64), size, p=p / p.sum())

    def spec(self) -> list[Any]:
        """The entry as plain values."""
        return [
            "discrete",
            *([float(x) for x in part] for part in (self.values, self.probabilities)),
        ]


@dataclass(frozen=True)
class Frozen:
    """A frozen SciPy distribution."""

    distribution: Any

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(self.distribution.mean())

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent draws."""
        return np.asarray(self.distribution.rvs(size=size, random_state=rng), dtype=np.float64)

    def spec(self) -> str:
        """A description; the distribution can't be rebuilt from it."""
        made = self.distribution
        return f"scipy:{made.dist.name}{made.args}{sorted(made.kwds.items())}"

    def __digest__(self) -> tuple[Any, ...]:
        """What draws depend on, without what SciPy derives from it in each process."""
        made = self.distribution
        derived = np.vectorize | MethodType
        kept = {
            name: value for name, value in vars(made.dist).items() if not isinstance(value, derived)
        }
        for name in ("_random_state", "__doc__"):
            kept.pop(name, None)
        return type(made.dist), kept, made.args, made.kwds


@dataclass(frozen=True)
class Sampler:
    """Draws whole vectors, so that the entries may depend on each other.

    Parameters
    ----------
    draw_vectors
        `draw_vectors(size, rng)` returns `size` vectors as an array of shape (size, entries).
    mean
        The mean of each entry: regret can't be computed without it.
    name
        Distinguishes this sampler from others when seeds are derived.

    Examples
    --------
    One random number moves all rows at once:

    >>> import numpy as np, rank1
    >>> def rows(size, rng):
    ...     return (rng.random((size, 1)) < 0.5) * np.array([[0.9, 0.6]])
    >>> problem = rank1.Factors(rank1.Sampler(rows, mean=[0.45, 0.3], name="mood"), [0.5, 0.8])
    >>> problem.best_pair
    (0, 1)
    """

    draw_vectors: Callable[[int, np.random.Generator], ArrayLike]
    mean: ArrayLike
    name: str = "sampler"

    def spec(self) -> str:
        """A description; the sampler can't be rebuilt from it."""
        return f"sampler:{self.name}"


Laws = Sampler | Sequence[Any]

_FROM_PLAIN: dict[str, Callable[..., FactorLaw]] = {
    "beta": Beta,
    "interval": Interval,
    "discrete": Discrete,
}


def _entry(name: str, given: Any) -> FactorLaw:
    if isinstance(given, Beta | Interval | Discrete | Frozen):
        return given
    if hasattr(given, "rvs") and hasattr(given, "mean") and hasattr(given, "support"):
        low, high = given.support()
        if low < 0 or high > 1:
            got = f"one on [{low}, {high}]"
            raise InputError(name, given, "a law on [0, 1]", got=got)
        return Frozen(given)
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        p = checks.number(name, given, 0, 1)
        return Discrete([0.0, 1.0], [1 - p, p])
    if isinstance(given, Sequence) and not isinstance(given, str) and given:
        kind = checks.one_of(f"{name}[0]", given[0], _FROM_PLAIN)
        try:
            return _FROM_PLAIN[kind](*given[1:])
        except (InputError, InputTypeError) as error:
            raise error.within(name) from None
        except TypeError as error:  # too many or too few numbers
            raise InputTypeError(name, given, f"a valid {kind} law", str(error)) from None
    raise InputTypeError(
        name,
        given,
        "a Beta, Interval or Discrete law, a frozen SciPy distribution, a number, or a list such "
        "as ['beta', 2, 1]",
    )


def checked(name: str, given: Laws) -> Sampler | list[FactorLaw]:
    if isinstance(given, Sampler):
        return given
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) == 0:
        raise InputTypeError(name, given, "a Sampler or a list of at least one law")
    return [_entry(f"{name}[{k}]", entry) for k, entry in enumerate(given)]


def means_of(name: str, law: Sampler | list[FactorLaw]) -> Floats:
    if isinstance(law, Sampler):
        return checks.vector(f"{name}.mean", law.mean)
    return checks.vector(f"mean of {name}", [entry.mean for entry in law])


def spec_of(law: Sampler | list[FactorLaw]) -> Any:
    return law.spec() if isinstance(law, Sampler) else [entry.spec() for entry in law]


def fill(
    name: str, block: Floats, law: Sampler | list[FactorLaw], rng: np.random.Generator
) -> None:
    if isinstance(law, Sampler):
        drawn = np.asarray(law.draw_vectors(len(block), rng), dtype=np.float64)
        if drawn.shape != block.shape:
            expected = f"an array of shape {block.shape}"
            raise InputError(
                f"the array from the sampler of {name}", drawn, expected, got=f"{drawn.shape}"
            )
        block[:] = drawn
    else:
        for k, entry in enumerate(law):
            block[:, k] = entry.draw(len(block), rng)
    if not ((block >= 0) & (block <= 1)).all():
        worst = block[~((block >= 0) & (block <= 1))][0]
        raise InputError(f"a draw of {name}", float(worst), "a number in [0, 1]")
