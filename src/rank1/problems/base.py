"""What every problem has: a grid of means, the best arms, and a law of rewards."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import notebook
from rank1.compiled import method
from rank1.errors import InputError, InputTypeError
from rank1.grid import Grid

__all__ = ["Floats", "Problem", "draw", "gap", "split", "tally", "twins"]

draw = method("draw")
gap = method("gap")
tally = method("tally", inline=False)
split = method("split", inline=False)

Floats = NDArray[np.float64]

#: Fields of laws that follow from the others.
_DERIVED = ("best", "best_row", "best_column", "row_twin", "column_twin", "magic", "joint", "table")


class Problem:
    """A grid of reward laws, with any number of sides.

    A subclass gives `means`, `description` and `law`; one whose means are products of factors is a
    `RankOne`. Rewards may lie outside [0, 1]: then it also says `low`, `high` and `sigma`.

    The law is the compiled side: a NamedTuple of arrays and numbers with the methods

    - `draw(arm, rng)`: one reward and its realised regret,
    - `gap(arm)`: the expected regret of one pull.

    With a few more, policies that can are simulated many pulls at a time. An arm's many pulls are
    then drawn at once; where a checkpoint lies among them, what was drawn is split in two:

    - `tally(arm, count, rng, tally)`: the sum of the rewards of `count` pulls, and that of their
      realised regret. Writes into the array `tally` what `split` has to know of them.
    - `split(arm, count, part, rng, tally)`: given the tally of `count` pulls, draw the realised
      regret of the first `part` of them. Leaves in `tally` the tally of the others.
    - `tally_size`: how many numbers a tally has. An attribute or a property, not a field.
    - `row_twin`, `column_twin`: fields, see `twins`; empty unless there are two sides.

    The pulls of an arm are exchangeable, so that counts of the first ones are hypergeometric and
    Gaussian sums a Brownian bridge. A law without these methods is played step by step.
    """

    #: {"name": …, "settings": …}: what it takes to build the problem again, as plain values.
    description: dict[str, Any]
    #: Standard deviation of noise that isn't bounded.
    sigma: float = 0.0
    #: The least and the largest reward.
    low: float = 0.0
    high: float = 1.0
    #: Whether every reward is 0 or 1.
    binary: bool = False
    #: Names of the levels, a list for each side.
    labels: list[list[str]] | None = None
    #: Steps for which one filling of the law lasts, where Python has to draw for it.
    block: int | None = None

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, with an axis for each side."""
        raise InputTypeError("problem", type(self).__name__, "a problem with means")

    @property
    def law(self) -> Any:
        """The compiled side of the problem."""
        raise InputTypeError("problem", type(self).__name__, "a problem with a law")

    @property
    def has_tallies(self) -> bool:
        """Whether the law draws many pulls at once."""
        return hasattr(self.law, "tally")

    def refill(self, law: Any, rng: np.random.Generator) -> None:
        """Draw what the law needs for the next `block` steps."""

    # The grid

    @property
    def grid(self) -> Grid:
        """Its sides."""
        return Grid(self.means.shape)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.grid.arms

    @property
    def K(self) -> int:
        """Number of rows, of a grid of two sides."""
        return self._two_sides[0]

    @property
    def L(self) -> int:
        """Number of columns, of a grid of two sides."""
        return self._two_sides[1]

    @property
    def _two_sides(self) -> tuple[int, ...]:
        sizes = self.grid.sizes
        if len(sizes) != 2:
            hint = "rows, columns and pairs are words for two sides"
            raise InputError("sides", sizes, "2", hint, got=f"{len(sizes)} ({self.grid})")
        return sizes

    # The best

    @cached_property
    def best_arm(self) -> int:
        """The best arm; of several, the lowest."""
        return int(self.means.argmax())

    @property
    def best_arms(self) -> list[int]:
        """All arms of the largest mean, in order."""
        found: list[int] = np.nonzero(self.means.ravel() == self.best_mean)[0].tolist()
        return found

    @property
    def best_pair(self) -> tuple[int, int]:
        """Row and column of the best arm, of a grid of two sides."""
        row, column = divmod(self.best_arm, self.L)
        return row, column

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """Row and column of all arms of the largest mean, of a grid of two sides."""
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
        """Mean reward of each row when the column is drawn evenly from `columns`."""
        return self.means[:, columns].mean(axis=1)

    def column_means(self, rows: NDArray[np.int64]) -> Floats:
        """Mean reward of each column when the row is drawn evenly from `rows`."""
        return self.means[rows].mean(axis=0)

    # What it is

    @property
    def given(self) -> tuple[Any, ...]:
        """What tells this problem from others when seeds are derived: strings, numbers, arrays.

        These are the law's name and fields, but for the best arm and all else that follows from
        the others. A law with room to work in, or fields that are computed (their last bit may
        differ from one machine to another), needs a list of its own here.
        """
        if self.block is not None:
            raise InputTypeError(
                "problem",
                type(self).__name__,
                "one that says by a property `given` what tells it from other problems",
                "its law is filled anew for each block, so that its fields don't",
            )
        law = self.law
        fields = [value for name, value in law._asdict().items() if name not in _DERIVED]
        return type(law).__name__, self.grid.sizes, *fields

    @cached_property
    def digest(self) -> int:
        """A number made of `given`, from which seeds are derived."""
        digest = hashlib.sha256()
        for part in self.given:
            _add(digest, part)
        return int.from_bytes(digest.digest()[:16], "little")

    def name_of(self, arm: int) -> str:
        """An arm by the names of its levels, or by their numbers where they have none."""
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
        """Mean rewards of the pairs of some rows and some columns."""
        return self.means[np.ix_(rows, columns)]

    @notebook.never_fails
    def _repr_html_(self) -> str:
        told = [
            ("sides", str(self.grid)),
            ("best arm", self.name_of(self.best_arm)),
            ("its mean reward", self.best_mean),
            ("least mean reward", self.lowest_mean),
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
    """For each line the first one of the same mean; the best line stands alone.

    Pulls of twins have the same law, so that their counts can be added before drawing.

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
