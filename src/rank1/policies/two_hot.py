"""Shared by LinUCB and GLM-UCB: widths of pairs, and the pair with the largest index.

Both give the pair (i, j) the feature x with ones at i and K + j, d = K + L. With V = λI + Σ x xᵀ
they play the pair with the largest mean + c·w, where w² = xᵀV⁻¹x. A plain step costs K·L square
roots and an update of the d×d inverse; this one costs half of that update, plus an addition and a
comparison per pair:

- Every x is orthogonal to e = (1, …, 1, -1, …, -1)/√d, and V e = λe. So V⁻¹ = A + e eᵀ/λ, and only
  A is ever needed. Its entries shrink with the widths, whereas those of V⁻¹ would stay near 1/d and
  cancel each other in w².
- A new x turns A into A - z zᵀ, with z = A x / √(1 + w²). The z are collected and subtracted eight
  at a time, in the lower triangle only; until then, code that reads A takes them into account.
  Each update damps the errors that earlier ones left in the direction of x, so errors don't
  accumulate.
- Widths only shrink, so an old width is an upper bound. Bounds are lowered in the row and the
  column just played, and recomputed everywhere from time to time. With them one pass gives an
  upper bound of the best index in each row, and an index is computed only if its bound reaches
  the largest index found so far: hardly more than once per step.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import jit, record
from rank1.policies.base import Known, Records, Simple

__all__ = ["TwoHotState", "absorb", "bound_products", "bound_sums", "pick", "start_two_hot"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

AT = record(
    "reports",  # rewards received
    "row",  # of the pair with the largest index
    "column",
    "computed",  # indices computed for nothing since all bounds were last recomputed
)

_BATCH = 8  # pending vectors: `solve` and `flush` are unrolled for this number
_INDEX_COST = 64  # computing one index takes about as long as recomputing this many bounds
_TIE = 1e-11  # indices with a smaller relative difference are equal except for rounding errors


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    seen: Ints  # reports of each row, then of each column: (d,)
    settings: Records  # of the policy
    estimate: Floats  # LinUCB: θ. GLM-UCB: û, then v̂
    A: Floats  # (d, d), without the pending vectors; row r is only valid up to entry r | 7
    pending: Floats  # (_BATCH, d); 0 if there is none yet
    z: Floats  # the latest of them
    bound: Floats  # [j, i] is at least w of (i, j); padded with -∞ to a multiple of 4 columns
    value: Floats  # (i, j) has mean/c = value[i]·slope[j] + offset[j]
    slope: Floats
    offset: Floats
    top: Floats  # at least the largest index/c in each row


class TwoHotState(_Arrays, Simple):
    """The estimates, and the next pair, which is known in advance since nothing is random."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """The pair with the largest index, given the rewards so far."""
        return self.at[0].row * self.limits[1].levels + self.at[0].column, 0

    def best(self) -> int:
        """The row and the column with the largest estimates, among those with reports."""
        K = len(self.value)
        known = np.where(self.seen > 0, self.estimate, -np.inf)
        return int(known[:K].argmax()) * int(self.limits[1].levels) + int(known[K:].argmax())


S = TypeVar("S", bound=TwoHotState)


def start_two_hot(
    kind: type[S], known: Known, ridge: float, settings: Records, estimate: float
) -> S:
    """The state before the first step, with V = ridge·I and all estimates equal."""
    K, L = known.K, known.L
    d, columns = K + L, -(-L // 4) * 4
    e = np.repeat([1.0, -1.0], [K, L])
    A, bound = aligned((d, d)), aligned((columns, K))
    A[:] = (np.eye(d) - np.outer(e, e) / d) / ridge
    bound[:L], bound[L:] = math.sqrt(2 / ridge), -math.inf
    return kind(
        limits=known.limits,
        at=np.zeros(1, AT),
        seen=np.zeros(d, np.int64),
        settings=settings,
        estimate=np.full(d, estimate),
        A=A,
        pending=aligned((_BATCH, d)),
        z=aligned((d,)),
        bound=bound,
        value=aligned((K,)),
        slope=np.ones(columns),
        offset=np.zeros(columns),
        top=aligned((K,)),
    )


def aligned(shape: tuple[int, ...]) -> Floats:
    """Zeros that start at a multiple of 64 bytes, which makes a step up to a third faster."""
    size = math.prod(shape)
    room = np.zeros(size + 8)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + size].reshape(shape)


@jit
def absorb(
    at: Records,
    seen: Ints,
    A: Floats,
    pending: Floats,
    z: Floats,
    bound: Floats,
    top: Floats,
    row: int,
    column: int,
) -> float:
    """Add x xᵀ to V. Returns the old w² and leaves the old A x / √(1 + w²) in z.

    Overwrites `top`.
    """
    d, K = len(z), bound.shape[1]
    solve(A, pending, row, K + column, z)
    w2 = z[row] + z[K + column]
    shrink = 1 / math.sqrt(1 + w2)
    place = at[0].reports % _BATCH
    for k in range(d):
        z[k] *= shrink
        pending[place, k] = z[k]
    seen[row] += 1
    seen[K + column] += 1
    at[0].reports += 1
    if at[0].reports % _BATCH == 0:
        flush(A, pending)
        for place in range(_BATCH):
            for k in range(d):
                pending[place, k] = 0.0
    if at[0].reports % _BATCH == 0 and at[0].computed * _INDEX_COST >= K * (d - K):
        at[0].computed = 0
        for i in range(K):
            top[i] = A[i, i]
        for j in range(d - K):
            for i in range(K):
                bound[j, i] = math.sqrt(max(top[i] + 2 * A[K + j, i] + A[K + j, K + j], 0.0))
    else:
        # x'ᵀz = s takes s² from the w² of x', and √(w² - s²) ≤ w - s²/2w.
        for i in range(K):
            s = z[i] + z[K + column]
            bound[column, i] -= 0.5 * s * s / bound[column, i]
        played, at_row = bound[column, row], z[row]
        for j in range(d - K):
            s = at_row + z[K + j]
            bound[j, row] -= 0.5 * s * s / bound[j, row]
        bound[column, row] = played
    return w2


@jit
def solve(A: Floats, Z: Floats, a: int, b: int, z: Floats) -> None:
    """Store A x in z, for x with ones at a and b."""
    d = len(z)
    kept = min(d, (a | 7) + 1)
    for k in range(kept):
        z[k] = A[a, k]
    for k in range(kept, d):
        z[k] = A[k, a]
    kept = min(d, (b | 7) + 1)
    for k in range(kept):
        z[k] += A[b, k]
    for k in range(kept, d):
        z[k] += A[k, b]
    s0, s1, s2, s3 = Z[0, a] + Z[0, b], Z[1, a] + Z[1, b], Z[2, a] + Z[2, b], Z[3, a] + Z[3, b]
    s4, s5, s6, s7 = Z[4, a] + Z[4, b], Z[5, a] + Z[5, b], Z[6, a] + Z[6, b], Z[7, a] + Z[7, b]
    for k in range(d):
        z[k] -= ((s0 * Z[0, k] + s1 * Z[1, k]) + (s2 * Z[2, k] + s3 * Z[3, k])) + (
            (s4 * Z[4, k] + s5 * Z[5, k]) + (s6 * Z[6, k] + s7 * Z[7, k])
        )


@jit
def flush(A: Floats, Z: Floats) -> None:
    """Subtract Σ z zᵀ from A, with all terms at once for each entry."""
    for r in range(len(A)):
        s0, s1, s2, s3 = Z[0, r], Z[1, r], Z[2, r], Z[3, r]
        s4, s5, s6, s7 = Z[4, r], Z[5, r], Z[6, r], Z[7, r]
        for k in range(min(len(A), (r | 7) + 1)):
            A[r, k] -= ((s0 * Z[0, k] + s1 * Z[1, k]) + (s2 * Z[2, k] + s3 * Z[3, k])) + (
                (s4 * Z[4, k] + s5 * Z[5, k]) + (s6 * Z[6, k] + s7 * Z[7, k])
            )


@jit
def width(A: Floats, Z: Floats, a: int, b: int) -> float:
    """The w of x with ones at a and b > a."""
    w2 = A[a, a] + 2 * A[b, a] + A[b, b]
    for place in range(_BATCH):
        s = Z[place, a] + Z[place, b]
        w2 -= s * s
    return math.sqrt(max(w2, 0.0))


@jit
def pick(
    at: Records,
    A: Floats,
    pending: Floats,
    bound: Floats,
    value: Floats,
    slope: Floats,
    offset: Floats,
    top: Floats,
) -> None:
    """Find the pair with the largest mean/c + w; ties go to the first pair in row-major order.

    `top` is up to date: see `bound_sums` and `bound_products`.
    """
    K, L = len(value), len(A) - len(value)
    # Start with the pair with the largest bound, up to rounding.
    most = second = top[0]
    for i in range(0, K - 1, 2):
        most = top[i] if top[i] > most else most
        second = top[i + 1] if top[i + 1] > second else second
    most = max(most, second, top[K - 1])
    near = most - _TIE * abs(most)
    row = column = 0
    while top[row] < near:
        row += 1
    # The last column, too: the sum behind `top` was rounded differently, which shows near 0.
    while column < L - 1 and (
        bound[column, row] + (value[row] * slope[column] + offset[column]) < near
    ):
        column += 1
    w = bound[column, row] = width(A, pending, row, K + column)
    best = value[row] * slope[column] + offset[column] + w
    tie = _TIE * (abs(best) + w)
    for i in range(K):
        if top[i] >= best - tie and (i <= row or top[i] > best + tie):
            for j in range(L):
                mean = value[i] * slope[j] + offset[j]
                # The first of equals wins, so a later one needn't be computed.
                least = best - tie if i * L + j < row * L + column else best + tie
                if bound[j, i] + mean >= least:
                    w = bound[j, i] = width(A, pending, i, K + j)
                    at[0].computed += 1
                    if mean + w >= least:
                        row, column = i, j
                    best = max(best, mean + w)
    at[0].row, at[0].column = row, column


@jit
def bound_sums(bound: Floats, value: Floats, offset: Floats, top: Floats) -> None:
    """Upper bounds of the largest index in each row, for slopes of 1; four columns at a time."""
    K = len(value)
    for i in range(K):
        top[i] = -math.inf
    for j in range(0, len(bound), 4):
        o0, o1, o2, o3 = offset[j], offset[j + 1], offset[j + 2], offset[j + 3]
        for i in range(K):
            a, b, c, d = (
                bound[j, i] + o0,
                bound[j + 1, i] + o1,
                bound[j + 2, i] + o2,
                bound[j + 3, i] + o3,
            )
            a = a if a > b else b
            c = c if c > d else d
            a = a if a > c else c
            top[i] = a if a > top[i] else top[i]
    for i in range(K):
        top[i] += value[i]


@jit
def bound_products(bound: Floats, value: Floats, slope: Floats, top: Floats) -> None:
    """The same for offsets of 0."""
    K = len(value)
    for i in range(K):
        top[i] = -math.inf
    for j in range(0, len(bound), 4):
        s0, s1, s2, s3 = slope[j], slope[j + 1], slope[j + 2], slope[j + 3]
        for i in range(K):
            v = value[i]
            a, b = bound[j, i] + v * s0, bound[j + 1, i] + v * s1
            c, d = bound[j + 2, i] + v * s2, bound[j + 3, i] + v * s3
            a = a if a > b else b
            c = c if c > d else d
            a = a if a > c else c
            top[i] = a if a > top[i] else top[i]
