"""What every problem has: a grid of means, the best pairs, and the gaps of the paper."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.errors import InputTypeError

Floats = NDArray[np.float64]


class Problem:
    """A K×L grid of reward laws.

    A subclass sets `u`, `v`, `description` and, where it isn't a product, overrides `means`;
    its `law` returns the compiled side: a NamedTuple of arrays with the methods

    - `draw(row, column, rng)`: one reward and its realised regret,
    - `gap(row, column)`: the expected regret of one pull,
    - `draw_many(row, column, count, rng)`: the sums of `count` draws. Optional: with it, and with
      `row_twin` and `column_twin`, elimination policies are simulated a stage at a time.
    """

    #: Mean factors: the mean reward of (i, j) is u[i]·v[j].
    u: Floats
    v: Floats
    #: {"name": …, "settings": …}: what it takes to build the problem again, as plain values.
    description: dict[str, Any]
    #: Standard deviation of noise that isn't bounded.
    sigma: float = 0.0
    #: The least and the largest reward.
    low: float = 0.0
    high: float = 1.0
    #: Whether `given` says all, so that finished runs can be found again.
    storable: bool = True
    row_labels: list[str] | None = None
    column_labels: list[str] | None = None
    #: Steps for which one filling of the law lasts, where Python has to draw for it.
    block: int | None = None

    @property
    def K(self) -> int:
        """Number of rows."""
        return len(self.u)

    @property
    def L(self) -> int:
        """Number of columns."""
        return len(self.v)

    def name_of(self, row: int, column: int) -> str:
        """A pair by its labels, or by its numbers where it has none."""
        if self.row_labels is None or self.column_labels is None:
            return str((row, column))
        return f"{self.row_labels[row]}, {self.column_labels[column]}"

    @cached_property
    def means(self) -> Floats:
        """Mean rewards, K×L."""
        return np.outer(self.u, self.v)

    @cached_property
    def best_pair(self) -> tuple[int, int]:
        """The best pair; of several, the first in row-major order."""
        if self.best_mean == 0:  # then all pairs are equally good
            return 0, 0
        return int(self.u.argmax()), int(self.v.argmax())

    @property
    def best_mean(self) -> float:
        """Mean reward of the best pair."""
        return float(self.u.max() * self.v.max())

    @property
    def lowest_mean(self) -> float:
        """Mean reward of the worst pair."""
        return float(self.u.min() * self.v.min())

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """All pairs of the largest mean, in row-major order."""
        if self.best_mean == 0:
            return [(i, j) for i in range(self.K) for j in range(self.L)]
        rows, columns = (np.nonzero(side == side.max())[0].tolist() for side in (self.u, self.v))
        return [(i, j) for i in rows for j in columns]

    def is_best(self, row: int, column: int) -> bool:
        """Whether a pair is one of the best."""
        tops = self.u[row] == self.u.max() and self.v[column] == self.v.max()
        return bool(self.best_mean == 0 or tops)

    @property
    def given(self) -> tuple[str | Floats, ...]:
        """What tells this problem from others. Only what was given: a derived number's last bit
        may differ from one machine to another.
        """
        return type(self.law).__name__, self.u, self.v

    @cached_property
    def digest(self) -> int:
        """A number made of `given`, from which seeds are derived."""
        digest = hashlib.sha256()
        for part in self.given:
            if isinstance(part, str):
                digest.update(part.encode() + b"\0")
            else:
                digest.update(repr(part.shape).encode())
                digest.update(np.ascontiguousarray(part).data)
        return int.from_bytes(digest.digest()[:16], "little")

    @property
    def row_gaps(self) -> Floats:
        """Δᵁᵢ = ū(i*) − ū(i)."""
        return self.u.max() - self.u

    @property
    def column_gaps(self) -> Floats:
        """Δⱽⱼ = v̄(j*) − v̄(j)."""
        return self.v.max() - self.v

    @property
    def min_row_gap(self) -> float:
        """The smallest positive row gap; infinite if there is none."""
        return _smallest_positive(self.row_gaps)

    @property
    def min_column_gap(self) -> float:
        """The smallest positive column gap; infinite if there is none."""
        return _smallest_positive(self.column_gaps)

    @property
    def mu(self) -> float:
        """μ, the smaller of the averages of ū and v̄."""
        return float(min(self.u.mean(), self.v.mean()))

    def row_means(self, columns: NDArray[np.int64]) -> Floats:
        """Mean reward of each row when the column is drawn evenly from `columns`."""
        return self.u * self.v[columns].mean()

    def column_means(self, rows: NDArray[np.int64]) -> Floats:
        """Mean reward of each column when the row is drawn evenly from `rows`."""
        return self.v * self.u[rows].mean()

    @property
    def law(self) -> Any:
        """The compiled side of the problem."""
        raise InputTypeError(f"{type(self).__name__} has no law")

    def refill(self, law: Any, rng: np.random.Generator) -> None:
        """Draw what the law needs for the next `block` steps."""

    def draw(self, row: int, column: int, rng: np.random.Generator) -> tuple[float, float]:
        """One reward of a pair, and the realised regret of that pull.

        >>> import numpy as np, rank1
        >>> rank1.Bernoulli([1.0, 0.0], [1.0]).draw(1, 0, np.random.default_rng(0))
        (0.0, 1.0)
        """
        for name, index, size in (("row", row, self.K), ("column", column, self.L)):
            if not 0 <= index < size:
                raise IndexError(f"{name} must lie in 0 … {size - 1}, got {index}")
        law = self.law
        self.refill(law, rng)
        reward, regret = law.draw(row, column, rng)
        return float(reward), float(regret)

    def __repr__(self) -> str:
        name = self.description["name"]
        return f"<{name} {self.K}×{self.L}, best pair {self.best_pair}, mean {self.best_mean:.4g}>"


def _smallest_positive(gaps: Floats) -> float:
    positive = gaps[gaps > 0]
    return float(positive.min()) if positive.size else math.inf


def twins(values: Floats, best: int) -> NDArray[np.int64]:
    """For each line the first one of the same mean; the best line stands alone.

    Pulls of twins have the same law, so that their counts can be added before drawing.

    >>> twins(np.array([0.5, 0.9, 0.5, 0.9]), best=1)
    array([0, 1, 0, 3])
    """
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    twin: NDArray[np.int64] = first[inverse].astype(np.int64)
    if others := [i for i in np.nonzero(twin == best)[0].tolist() if i != best]:
        twin[others] = others[0]
    return twin
