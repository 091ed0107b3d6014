"""Models with another best pair: which of them does an exploration fail to tell apart?

B(ū, v̄) of the paper holds the models (ū', v̄') with ū'(i*) = ū(i*) and v̄'(j*) = v̄(j*) in which some
pair is better than (i*, j*) was. A product above ū(i*)·v̄(j*) needs a row above ū(i*) or a column
above v̄(j*), and either suffices, paired with the best line of the other side. So the closure of B
is the union of K + L − 2 boxes, one for each line that may overtake.

Where ū(i*) = 1, no row can lie above it, and a row's box is its boundary ū'(i) = 1. Such a model is
still a limit of ones to be told apart: only products are seen, and (s·ū, v̄/s) with s just below 1
has the same means as (ū, v̄), and room above its best row.
"""

from __future__ import annotations

import numpy as np

from rank1 import checks
from rank1.errors import InputError
from rank1.problems import Problem, RankOne
from rank1.problems.base import Floats
from rank1.theory.bounds import cross
from rank1.theory.kl import divergence

__all__ = ["Model", "weakest_models"]

#: (ū', v̄')
Model = tuple[Floats, Floats]

#: Lines that the search may move stay this far from 0 and 1, where divergences become infinite.
EDGE = 1e-9
#: A local search passes this often over both factors at most, however far it has come.
MAX_PASSES = 200
#: Halvings of an interval in [0, 1] until it is as short as rounding allows.
HALVINGS = 52


def weakest_models(
    problem: Problem, c: Floats, *, starts: int = 3, seed: int = 0
) -> list[tuple[float, Model]]:
    """For each line that may overtake, the model that exploration c tells apart least.

    If each pair is played c·log n times, a model is told apart when Σ d(ūᵢv̄ⱼ, ū'ᵢv̄'ⱼ)·c ≥ 1.

    Minimising that sum over a box of B is not a convex problem, but it is one in ū' and in v̄'
    separately, and given the other factor each line has a problem of its own in one variable. So
    the search goes back and forth between the two, solving each exactly by bisection of the
    slope, from `starts` points: the paper's model, in which only that line moves, and random ones.
    The result is a local minimum. It is the global one if c is positive only in the best row and
    the best column, because then one factor of each played pair is fixed.

    Parameters
    ----------
    problem
        As for `lower_bound`.
    c
        K×L numbers of at least 0.
    starts
        Local searches for each line.
    seed
        Of the random starts.

    Returns
    -------
    list
        (Σ d·c, (ū', v̄')) for each row but the best one, then for each column but the best one.

    Examples
    --------
    Playing only pairs off the best row and column can satisfy every constraint of the paper's
    relaxation, where one line changes at a time, and yet miss a model in which two change: here
    row 1 rises, column 1 falls, and the mean of the only pair played stays as it was.

    >>> import numpy as np, rank1
    >>> from rank1 import theory
    >>> problem = rank1.Bernoulli([0.8, 0.4], [0.5, 0.25])
    >>> c = np.array([[0.0, 0.0], [0.0, 50.0]])
    >>> told, (u, v) = theory.weakest_models(problem, c)[0]
    >>> round(told, 6), u.round(3), v.round(3)
    (0.0, array([0.8, 0.8]), array([0.5  , 0.125]))

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, appendix B.
    https://arxiv.org/abs/1608.03023
    """
    cross(problem)  # raises what the theorems require and the problem lacks
    assert isinstance(problem, RankOne)
    c = np.asarray(c, dtype=np.float64)
    if c.shape != problem.means.shape or not ((c >= 0) & (c < np.inf)).all():
        raise InputError(
            f"c must be a {problem.K}×{problem.L} array of finite numbers of at least 0, "
            f"got {checks.shown(c)}"
        )
    starts = checks.integer("starts", starts, 1)
    return search(problem, c, starts, np.random.default_rng(checks.integer("seed", seed, 0)))


def search(
    problem: RankOne, c: Floats, starts: int, rng: np.random.Generator
) -> list[tuple[float, Model]]:
    """`weakest_models` without its checks. A model is one vector here: ū', then v̄'."""
    K, L = problem.K, problem.L
    now = np.concatenate([problem.u, problem.v])
    is_row = np.arange(K + L) < K
    fixed = [problem.best_pair[0], K + problem.best_pair[1]]
    lines = np.delete(np.arange(K + L), fixed)
    low, high = _boxes(now, is_row, fixed, lines)

    d = divergence(problem)
    assert d is not None
    row, column = np.nonzero(c)
    column += K
    p, weights = now[row] * now[column], c[row, column - K]
    # A line that is never played stays where it is: to move it would not be noticed now, and would
    # only make the new constraint weaker.
    played = np.isin(np.arange(K + L), [*row, *column])
    box = np.arange(len(lines))[:, None] * (K + L)

    def improve(x: Floats, own: np.ndarray, other: np.ndarray, moves: np.ndarray) -> Floats:
        given, lines_of_pairs = x[:, other], (box + own).ravel()
        least, most = low, high
        for _ in range(HALVINGS):
            middle = (least + most) / 2
            slopes = weights * given * d.slope(p, middle[:, own] * given)
            sums = np.bincount(lines_of_pairs, slopes.ravel(), low.size).reshape(low.shape)
            falling = sums < 0
            least, most = np.where(falling, middle, least), np.where(falling, most, middle)
        return np.where(moves, least, x)

    told = np.full(len(lines), np.inf)
    found = np.empty_like(low)
    for start in range(starts):
        begin = now if start == 0 else np.where(played, rng.uniform(low, high), now)
        x = np.clip(begin, low, high)
        value = np.full(len(lines), np.inf)
        for _ in range(MAX_PASSES):
            x = improve(x, row, column, played & is_row)
            x = improve(x, column, row, played & ~is_row)
            before, value = value, d.of(p, x[:, row] * x[:, column]) @ weights
            if not (before - value > 1e-9).any():
                break
        better = value < told
        told, found = np.where(better, value, told), np.where(better[:, None], x, found)
    return [(float(sum_), (x[:K], x[K:])) for sum_, x in zip(told, found, strict=True)]


def _boxes(
    now: Floats, is_row: np.ndarray, fixed: list[int], lines: np.ndarray
) -> tuple[Floats, Floats]:
    """Lower and upper ends of the boxes of B, one box for each of `lines`."""
    each = np.arange(len(lines))
    low = np.tile(np.minimum(now, EDGE), (len(lines), 1))
    high = np.tile(np.maximum(now, 1 - EDGE), (len(lines), 1))
    low[:, fixed] = high[:, fixed] = now[fixed]
    low[each, lines] = np.where(is_row[lines], *now[fixed])
    high[each, lines] = np.maximum(low[each, lines], 1 - EDGE)
    return low, high
