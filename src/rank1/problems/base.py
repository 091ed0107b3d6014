"""What every problem has: a grid of means, the best pairs, and a law of rewards."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import notebook
from rank1.errors import InputError, InputTypeError

__all__ = ["Floats", "Problem", "twins"]

Floats = NDArray[np.float64]

#: Fields of laws that follow from the others.
_DERIVED = ("best_row", "best_column", "row_twin", "column_twin")


class Problem:
    """A K×L grid of reward laws.

    A subclass gives `means`, `description` and `law`; one whose means are products of factors is a
    `RankOne`. Rewards may lie outside [0, 1]: then it also says `low`, `high` and `sigma`.

    The law is the compiled side: a NamedTuple of arrays and numbers with the methods

    - `draw(row, column, rng)`: one reward and its realised regret,
    - `gap(row, column)`: the expected regret of one pull.

    With a few more, elimination policies are simulated a stage at a time. A pair's many pulls are
    then drawn at once; where a checkpoint lies among them, what was drawn is split in two:

    - `tally(row, column, count, rng, tally)`: the sum of the rewards of `count` pulls, and that of
      their realised regret. Writes into the array `tally` what `split` has to know of them.
    - `split(row, column, count, part, rng, tally)`: given the tally of `count` pulls, draw the
      realised regret of the first `part` of them. Leaves in `tally` the tally of the others.
    - `tally_size`: how many numbers a tally has. An attribute or a property, not a field.
    - `row_twin`, `column_twin`: fields, see `twins`.

    The pulls of a pair are exchangeable, so that counts of the first ones are hypergeometric and
    Gaussian sums a Brownian bridge. A law without these methods is played step by step.
    """

    #: {"name": …, "settings": …}: what it takes to build the problem again, as plain values.
    description: dict[str, Any]
    #: Standard deviation of noise that isn't bounded.
    sigma: float = 0.0
    #: The least and the largest reward.
    low: float = 0.0
    high: float = 1.0
    row_labels: list[str] | None = None
    column_labels: list[str] | None = None
    #: Steps for which one filling of the law lasts, where Python has to draw for it.
    block: int | None = None

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, K×L."""
        raise InputTypeError(f"{type(self).__name__} has no means")

    @property
    def law(self) -> Any:
        """The compiled side of the problem."""
        raise InputTypeError(f"{type(self).__name__} has no law")

    @property
    def has_tallies(self) -> bool:
        """Whether the law draws many pulls at once."""
        return hasattr(self.law, "tally")

    def refill(self, law: Any, rng: np.random.Generator) -> None:
        """Draw what the law needs for the next `block` steps."""

    @property
    def K(self) -> int:
        """Number of rows."""
        return self.means.shape[0]

    @property
    def L(self) -> int:
        """Number of columns."""
        return self.means.shape[1]

    @cached_property
    def best_pair(self) -> tuple[int, int]:
        """The best pair; of several, the first in row-major order."""
        row, column = np.unravel_index(int(self.means.argmax()), self.means.shape)
        return int(row), int(column)

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """All pairs of the largest mean, in row-major order."""
        rows, columns = np.nonzero(self.means == self.best_mean)
        return list(zip(rows.tolist(), columns.tolist(), strict=True))

    def is_best(self, row: int, column: int) -> bool:
        """Whether a pair is one of the best."""
        return bool(self.means[row, column] == self.best_mean)

    @property
    def best_mean(self) -> float:
        """Mean reward of the best pair."""
        return float(self.means.max())

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst pair."""
        return float(self.means.min())

    def row_means(self, columns: NDArray[np.int64]) -> Floats:
        """Mean reward of each row when the column is drawn evenly from `columns`."""
        return self.means[:, columns].mean(axis=1)

    def column_means(self, rows: NDArray[np.int64]) -> Floats:
        """Mean reward of each column when the row is drawn evenly from `rows`."""
        return self.means[rows].mean(axis=0)

    @property
    def given(self) -> tuple[Any, ...]:
        """What tells this problem from others when seeds are derived: strings, numbers, arrays.

        These are the law's name and fields, but for the best pair and the twins, which follow from
        the others. A law with room to work in, or fields that are computed (their last bit may
        differ from one machine to another), needs a list of its own here.
        """
        if self.block is not None:
            raise InputTypeError(
                f"{type(self).__name__} must say by a property `given` what tells it from other "
                "problems: its law is filled anew for each block, so that its fields don't"
            )
        law = self.law
        fields = [value for name, value in law._asdict().items() if name not in _DERIVED]
        return type(law).__name__, *fields

    @cached_property
    def digest(self) -> int:
        """A number made of `given`, from which seeds are derived."""
        digest = hashlib.sha256()
        for part in self.given:
            _add(digest, part)
        return int.from_bytes(digest.digest()[:16], "little")

    def name_of(self, row: int, column: int) -> str:
        """A pair by its labels, or by its numbers where it has none."""
        if self.row_labels is None or self.column_labels is None:
            return str((row, column))
        return f"{self.row_labels[row]}, {self.column_labels[column]}"

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        """One reward of a pair, and the realised regret of that pull.

        >>> import numpy as np, rank1
        >>> rank1.Bernoulli([1.0, 0.0], [1.0]).draw(1, 0, np.random.default_rng(0))
        (0.0, 1.0)
        """
        for name, index, size in (("row", row, self.K), ("column", column, self.L)):
            if not 0 <= index < size:
                raise InputError(f"{name} must lie in 0 … {size - 1}, got {index}")
        law = self.law
        self.refill(law, rng)
        reward, regret = law.draw(row, column, rng)
        return float(reward), float(regret)

    def __repr__(self) -> str:
        name = self.description["name"]
        return f"<{name} {self.K}×{self.L}, best pair {self.best_pair}, mean {self.best_mean:.4g}>"

    def means_of(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
        """Mean rewards of the pairs of some rows and some columns."""
        return self.means[np.ix_(rows, columns)]

    @notebook.never_fails
    def _repr_html_(self) -> str:
        told = [
            ("rows × columns", f"{self.K:,} × {self.L:,}"),
            ("best pair", self.name_of(*self.best_pair)),
            ("its mean reward", self.best_mean),
            ("least mean reward", self.lowest_mean),
        ]
        rows, columns = self.row_labels or range(self.K), self.column_labels or range(self.L)
        picture = notebook.heat_map(self.means_of, rows, columns, self.best_pair, "mean rewards")
        return notebook.beside(notebook.facts(told, str(self.description["name"])), picture)


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
            raise InputTypeError(f"given must hold strings, numbers and arrays, got {part!r}")
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
