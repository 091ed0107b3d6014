"""The rank of a partly known matrix: leading singular values, and a guess of the rank."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.errors import InputError, InputTypeError

__all__ = ["guess_rank"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: The authors' program guesses from this many singular values. The guess depends on it.
VALUES = 100
#: … and uses the mean of this many last gaps as the size of an insignificant gap.
LAST_GAPS = 11
#: Its initial weight of a gap against one more rank, and the increment until a gap is found.
WEIGHT = 0.05
#: A dense decomposition takes minutes for a matrix whose smaller side is longer than this.
DENSE_SIDE = 1000


def observed(name: str, matrix: ArrayLike) -> tuple[Floats, Bools]:
    """`matrix` with zeros for missing entries, and the mask of its entries."""
    try:
        if np.iscomplexobj(matrix):
            raise TypeError
        given = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        expected = "a matrix of numbers, with NaN for missing ones"
        raise InputTypeError(name, matrix, expected) from None
    if given.ndim != 2:
        raise InputError(name, matrix, "of two dimensions", got=f"shape {given.shape}")
    mask = ~np.isnan(given)
    if not mask.any():
        expected = "a matrix with at least one entry that isn't NaN"
        raise InputError(name, matrix, expected, got=f"none in shape {given.shape}")
    given[~mask] = 0.0
    if not np.isfinite(given).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(given))[0])
        value = float(given[row, column])
        raise InputError(
            f"{name}[{row}, {column}]", value, "finite", "write a missing entry as NaN"
        )
    return given, mask


def leading(matrix: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """The first `count` singular values with their vectors: U, s, V, matrix ≈ U·diag(s)·Vᵀ."""
    if matrix.shape[0] > matrix.shape[1]:
        V, s, U = leading(matrix.T, count)
        return U, s, V
    if matrix.shape[0] <= DENSE_SIDE:
        # M = RᵀQᵀ: U and s come from the small factor alone, without forming Q.
        R: Floats = np.asarray(np.linalg.qr(matrix.T, mode="r"))
        U, s, _ = np.linalg.svd(R.T)
        U, s = U[:, :count], s[:count]
        # Its columns have lengths s; if s is 0, QR completes the basis.
        V, R = np.linalg.qr(matrix.T @ U)
        return U, s, V * np.where(np.diag(R) < 0, -1.0, 1.0)
    if not matrix.any():  # no start for the iteration below
        return np.eye(matrix.shape[0], count), np.zeros(count), np.eye(matrix.shape[1], count)
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    U, s, Vt = svds(csr_array(matrix), k=count, rng=0)
    return U[:, ::-1], s[::-1], Vt[::-1].T


def guess_rank(matrix: ArrayLike) -> int:
    """Guess the rank of a partly known matrix, as the authors of OptSpace do in their program.

    Two rules look at the first 100 singular values σ₁ ≥ σ₂ ≥ … of the matrix with zeros for missing
    entries; the larger answer counts.

    - The gap rule: with gaps σᵢ − σᵢ₊₁ in units of the mean of the last eleven, the i that
      minimises λ·max(gapᵢ, gapᵢ₊₁, …) + i comes right after the last gap that matters. λ starts
      at 0.05 and grows by as much until there is such a gap.
    - The R(i) rule of the paper: the i that minimises (σᵢ₊₁ + σ₁·√(i/ε))/σᵢ, where ε is the
      number of entries seen over the geometric mean of the sides.

    Parameters
    ----------
    matrix
        K×L numbers, NaN for missing ones.

    Notes
    -----
    Nothing is trimmed or centred; lines without any entry are left out. The guess is made for
    matrices with at least a few hundred lines on each side; on small ones the bulk of the singular
    values is short and uneven, and a gap in it may be mistaken for the end of the signal.

    Examples
    --------
    >>> import numpy as np
    >>> from rank1.paper.completion import guess_rank
    >>> rng = np.random.default_rng(0)
    >>> matrix = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 300))
    >>> matrix[rng.random(matrix.shape) < 0.5] = np.nan
    >>> guess_rank(matrix)
    3

    References
    ----------
    Keshavan, Montanari, Oh: Matrix completion from a few entries. IEEE Transactions on Information
    Theory 56, 2010. https://arxiv.org/abs/0901.3150

    Keshavan, Oh: A gradient descent algorithm on the Grassman manifold for matrix completion.
    Section 2. https://arxiv.org/abs/0910.5260
    """
    zero_filled, mask = observed("matrix", matrix)
    # A line without entries can't be completed, and must not dilute the averages.
    zero_filled = zero_filled[np.ix_(mask.any(axis=1), mask.any(axis=0))]
    return from_values(leading(zero_filled, VALUES)[1], zero_filled.shape, int(mask.sum()))


def from_values(s: Floats, shape: tuple[int, int], entries: int) -> int:
    """The guess from the leading singular values of the zero-filled matrix."""
    if len(s) < 2 or s[0] == 0.0:
        return 1
    position = np.arange(1, len(s))
    # If the last values are rounding errors, gaps between them must not count as large.
    rounding = np.finfo(np.float64).eps * max(shape) * s[0]
    gaps = s[:-1] - s[1:]
    # The program fails with fewer gaps than it averages; use the later half instead.
    last = LAST_GAPS if len(gaps) > LAST_GAPS else max(1, len(gaps) // 2)
    gaps = gaps / max(gaps[-last:].mean(), rounding)
    largest_from = np.maximum.accumulate(gaps[::-1])[::-1]
    drop = largest_from[0] - largest_from[1:]
    by_gap = 0
    if drop.any():  # otherwise the last gap is the largest, and no weight finds an end before it
        # Position i beats position 1 once λ > (i − 1)/drop; take the first step of λ where one
        # does, found without stepping: a small drop would take forever.
        needed = (position[:-1][drop > 0] / drop[drop > 0]).min()
        weight = WEIGHT * max(1.0, math.floor(needed / WEIGHT) + 1.0)
        by_gap = int(np.argmin(weight * largest_from + position))
    density = entries / math.sqrt(shape[0] * shape[1])
    with np.errstate(divide="ignore"):
        R = (s[1:] + s[0] * np.sqrt(position / density)) / s[:-1]
    return max(by_gap, int(np.argmin(R)) + 1)
