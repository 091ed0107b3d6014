"""The base of every problem: a grid of means, the best arms, and a law of rewards."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1 import notebook
from rank1.compiled import method
from rank1.errors import InputTypeError
from rank1.grid import Grid, two_sides

__all__ = ["AxisPerSide", "Floats", "Problem", "draw", "gap", "split", "tally", "twins"]

draw = method("draw")
gap = method("gap")
tally = method("tally", inline=False)
split = method("split", inline=False)

Floats = NDArray[np.float64]
#: A setting with an axis for each side. A grid file gives one, however deep its lists are.
AxisPerSide: TypeAlias = ArrayLike

#: Fields of laws that can be derived from the others.
_DERIVED = ("best", "best_row", "best_column", "row_twin", "column_twin", "magic", "joint", "table")


class Problem:
    """A grid of reward laws, with any number of sides.

    A subclass provides `means`, `description` and `law`; if its means are products of factors, it
    is a `RankOne`. If rewards may lie outside [0, 1], it also sets `low`, `high` and `sigma`.

    The law is the compiled form: a NamedTuple of arrays and numbers with the methods

    - `draw(arm, rng)`: one reward and its realised regret,
    - `gap(arm)`: the expected regret of one pull.

    A few more methods allow many pulls to be simulated at a time, for policies that support it. The
    pulls of an arm are then drawn at once; if a checkpoint lies among them, they are split in two:

    - `tally(arm, count, rng, tally)`: the sum of the rewards of `count` pulls, and of their
      realised regret. Writes what `split` needs into the array `tally`.
    - `split(arm, count, part, rng, tally)`: given the tally of `count` pulls, draw the realised
      regret of the first `part` pulls. Leaves the tally of the others in `tally`.
    - `tally_size`: the length of a tally. An attribute or a property, not a field.
    - `row_twin`, `column_twin`: fields, see `twins`; empty unless there are two sides.

    The pulls of an arm are exchangeable, so counts among the first ones are hypergeometric, and
    Gaussian sums form a Brownian bridge. A law without these methods is played step by step.
    """

    #: {"name": …, "settings": …}: plain values that suffice to rebuild the problem.
    description: dict[str, Any]
    #: Standard deviation of unbounded noise.
    sigma: float = 0.0
    #: The smallest and the largest reward.
    low: float = 0.0
    high: float = 1.0
    #: Whether every reward is 0 or 1.
    binary: bool = False
    #: Names of the levels, a list for each side.
    labels: list[list[str]] | None = None
    #: The number of steps that one `refill` of the law lasts; None if it needs none.
    block: int | None = None

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, with one axis per side."""
        raise InputTypeError("problem", type(self).__name__, "a problem with means")

    @property
    def law(self) -> Any:
        """The compiled form of the problem."""
        raise InputTypeError("problem", type(self).__name__, "a problem with a law")

    @property
    def has_tallies(self) -> bool:
        """Whether the law can draw many pulls at once."""
        return hasattr(self.law, "tally")

    def refill(self, law: Any, rng: np.random.Generator) -> None:
        """Draw what the law needs for the next `block` steps."""

    # The grid

    @property
    def grid(self) -> Grid:
        """The sides."""
        return Grid(self.means.shape)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.grid.arms

    @property
    def K(self) -> int:
        """Number of rows, for a grid with two sides."""
        return two_sides(self.grid.sizes)[0]

    @property
    def L(self) -> int:
        """Number of columns, for a grid with two sides."""
        return two_sides(self.grid.sizes)[1]

    # The best arms

    @cached_property
    def best_arm(self) -> int:
        """The best arm; the lowest, if tied."""
        return int(self.means.argmax())

    @property
    def best_arms(self) -> list[int]:
        """All arms with the largest mean, in order."""
        found: list[int] = np.nonzero(self.means.ravel() == self.best_mean)[0].tolist()
        return found

    @property
    def best_pair(self) -> tuple[int, int]:
        """Row and column of the best arm, for a grid with two sides."""
        row, column = divmod(self.best_arm, self.L)
        return row, column

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """Row and column of all arms with the largest mean, for a grid with two sides."""
        return [divmod(arm, self.L) for arm in self.best_arms]

    def is_best(self, arm: int) -> bool:
        """Whether an arm is one of the best."""
        return bool(self.mean(arm) == self.best_mean)

    def mean(self, arm: int) -> float:
        """Mean reward of an arm."""
        return float(self.means[self.grid.levels(arm)])

    @property
    def best_mean(self) -> float:
        """Mean reward of the best arm."""
        return float(self.means.max())

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst arm."""
        return float(self.means.min())

    def row_means(self, columns: NDArray[np.int64]) -> Floats:
        """Mean reward of each row if the column is drawn uniformly from `columns`."""
        return self.means[:, columns].mean(axis=1)

    def column_means(self, rows: NDArray[np.int64]) -> Floats:
        """Mean reward of each column if the row is drawn uniformly from `rows`."""
        return self.means[rows].mean(axis=0)

    # Identity

    @property
    def given(self) -> tuple[Any, ...]:
        """What distinguishes this problem from others when seeds are derived.

        Strings, numbers and arrays: by default the law's name and fields, except for the best arm
        and others that can be derived. A law with work space, or with computed fields (whose last
        bit may differ between machines), must override this.
        """
        if self.block is not None:
            raise InputTypeError(
                "problem",
                type(self).__name__,
                "one with a property `given` that distinguishes it from other problems",
                "its law is refilled for each block, so its fields don't",
            )
        law = self.law
        fields = [value for name, value in law._asdict().items() if name not in _DERIVED]
        return type(law).__name__, self.grid.sizes, *fields

    @cached_property
    def digest(self) -> int:
        """A number computed from `given`, from which seeds are derived."""
        digest = hashlib.sha256()
        for part in self.given:
            _add(digest, part)
        return int.from_bytes(digest.digest()[:16], "little")

    def name_of(self, arm: int) -> str:
        """An arm by the names of its levels, or by their numbers if they have none."""
        levels = self.grid.levels(arm)
        if self.labels is None:
            return str(levels)
        return ", ".join(names[level] for names, level in zip(self.labels, levels, strict=True))

    def draw(self, arm: int, rng: np.random.Generator) -> tuple[float, float]:
        """One reward of an arm, and the realised regret of that pull.

        >>> import numpy as np, rank1
        >>> rank1.Bernoulli([1.0, 0.0], [1.0]).draw(1, np.random.default_rng(0))
        (0.0, 1.0)
        """
        self.grid.check(arm)
        law = self.law
        self.refill(law, rng)
        reward, regret = law.draw(arm, rng)
        return float(reward), float(regret)

    def __repr__(self) -> str:
        name, best = self.description["name"], self.grid.levels(self.best_arm)
        return f"<{name} {self.grid}, best arm {best}, mean {self.best_mean:.4g}>"

    def means_of(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
        """Mean rewards of all pairs of some rows and some columns."""
        return self.means[np.ix_(rows, columns)]

    @notebook.never_fails
    def _repr_html_(self) -> str:
        told = [
            ("sides", str(self.grid)),
            ("best arm", self.name_of(self.best_arm)),
            ("its mean reward", self.best_mean),
            ("lowest mean reward", self.lowest_mean),
        ]
        facts = notebook.facts(told, str(self.description["name"]))
        names: Sequence[Sequence[object]] = self.labels or list(map(range, self.grid.sizes))
        if len(names) != 2:
            levels, label = self.grid.levels(self.best_arm), "mean rewards by side and level"
            return notebook.beside(facts, notebook.level_map(self.means, names, levels, label))
        rows, columns = names
        picture = notebook.heat_map(self.means_of, rows, columns, self.best_pair, "mean rewards")
        return notebook.beside(facts, picture)


def _add(digest: Any, part: Any) -> None:
    """Add a value to a digest."""
    if isinstance(part, str):
        digest.update(part.encode() + b"\0")
    elif isinstance(part, tuple):
        digest.update(f"tuple {len(part)}".encode())
        for one in part:
            _add(digest, one)
    else:
        array = np.ascontiguousarray(part)
        if array.dtype.hasobject:
            raise InputTypeError("given", part, "of strings, numbers and arrays")
        kind = "" if array.dtype == np.float64 else array.dtype.str
        digest.update(f"{kind}{array.shape}".encode())
        digest.update(array.data)


def twins(values: Floats, best: int) -> NDArray[np.int64]:
    """For each line, the first line with the same mean; the best line has no twin.

    Pulls of twins have the same law, so their counts can be added before drawing.

    >>> twins(np.array([0.5, 0.9, 0.5, 0.9]), best=1)
    array([0, 1, 0, 3])
    """
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    twin: NDArray[np.int64] = first[inverse].astype(np.int64)
    tied = np.nonzero(inverse == inverse[best])[0]
    others = tied[tied != best]
    twin[others] = others[:1]
    twin[best] = best
    return twin
