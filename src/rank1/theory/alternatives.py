"""Models with another best arm, and those that an exploration distinguishes least.

B(ū, v̄) of the paper holds the models (ū', v̄') with ū'(i*) = ū(i*) and v̄'(j*) = v̄(j*) in which some
pair is better than (i*, j*) was. A product above ū(i*)·v̄(j*) needs a row above ū(i*) or a column
above v̄(j*), and either suffices, paired with the best line of the other side. So the closure of B
is the union of K + L − 2 boxes, one for each line that may overtake; with more sides there is one
box for each level except the best ones.

If ū(i*) = 1, a row's box is its boundary ū'(i) = 1, a limit of models to be distinguished: see
docs/theory.md.
"""

from __future__ import annotations

import numpy as np

from rank1 import checks
from rank1.errors import InputError, shown
from rank1.problems import Problem, RankOne
from rank1.problems.base import Floats
from rank1.theory.bounds import cross
from rank1.theory.kl import divergence

__all__ = ["Model", "weakest_models"]

#: The factors of each side: (ū', v̄')
Model = tuple[Floats, ...]

#: The search keeps moving lines this far from 0 and 1, where divergences become infinite.
EDGE = 1e-9
#: The largest number of passes of a local search over all sides.
MAX_PASSES = 200
#: Halvings of an interval in [0, 1] until it is as short as rounding allows.
HALVINGS = 52


def weakest_models(
    problem: Problem, c: Floats, *, starts: int = 3, seed: int = 0
) -> list[tuple[float, Model]]:
    """For each level that may overtake, the model that exploration c distinguishes least.

    `graves_lai` adds these as constraints. If each arm is played c·log n times, a model is
    distinguished if Σ d(mean, mean')·c ≥ 1.

    Minimising that sum over a box of B is not a convex problem, but it is convex in the factors of
    each side separately, and given the others each level has its own problem in one variable. So
    the search goes from side to side, solving each exactly by bisection of the slope, from `starts`
    points: the paper's model, in which only that level moves, and random ones. The result is a
    local minimum. It is the global one if c is positive only at neighbours of the best arm,
    because then all but one factor of each played arm are fixed.

    Parameters
    ----------
    problem
        As for `unimodal_bound`.
    c
        Nonnegative numbers by arm, with one axis per side.
    starts
        The number of local searches for each level.
    seed
        The seed of the random starts.

    Returns
    -------
    list
        (Σ d·c, (ū', v̄')) for each row except the best, then for each column except the best; and so
        on for more sides.

    Examples
    --------
    Playing only pairs outside the best row and column can satisfy every constraint of the paper's
    relaxation, where one line changes at a time, and yet miss a model in which two lines change:
    here row 1 rises, column 1 falls, and the mean of the only pair played stays the same.

    >>> import numpy as np, rank1
    >>> from rank1 import theory
    >>> problem = rank1.Bernoulli([0.8, 0.4], [0.5, 0.25])
    >>> c = np.array([[0.0, 0.0], [0.0, 50.0]])
    >>> told, (u, v) = theory.weakest_models(problem, c)[0]
    >>> round(told, 6), u.round(3), v.round(3)
    (0.0, array([0.8, 0.8]), array([0.5  , 0.125]))
    """
    cross(problem)  # raises if the theorems don't apply
    assert isinstance(problem, RankOne)
    c = np.asarray(c, dtype=np.float64)
    if c.shape != problem.means.shape or not ((c >= 0) & (c < np.inf)).all():
        asked = f"a {problem.grid} array of finite numbers of at least 0"
        raise InputError("c", c, asked, got=f"shape {c.shape}, {shown(c)}")
    starts = checks.integer("starts", starts, 1)
    return search(problem, c, starts, np.random.default_rng(checks.integer("seed", seed, 0)))


def search(
    problem: RankOne, c: Floats, starts: int, rng: np.random.Generator
) -> list[tuple[float, Model]]:
    """`weakest_models` without its checks. A model is one vector here, all sides joined."""
    sizes = problem.grid.sizes
    offsets = np.cumsum([0, *sizes[:-1]])
    now = np.concatenate(problem.factors)
    side_of = np.repeat(np.arange(len(sizes)), sizes)
    fixed = offsets + np.array(problem.grid.levels(problem.best_arm))
    lines = np.delete(np.arange(len(now)), fixed)
    low, high = _boxes(now, fixed, fixed[side_of[lines]], lines)

    d = divergence(problem)
    assert d is not None
    at = np.nonzero(c)
    #: The positions of the factors of each played arm in the vector, for each side.
    own = [levels + offset for levels, offset in zip(at, offsets, strict=True)]
    p, weights = np.prod([now[place] for place in own], axis=0), c[at]
    # A level that is never played stays where it is: nothing would notice its move, which would
    # only weaken the new constraint.
    played = np.isin(np.arange(len(now)), np.concatenate(own))
    box = np.arange(len(lines))[:, None] * len(now)

    def improve(x: Floats, side: int) -> Floats:
        given = np.prod([x[:, place] for d, place in enumerate(own) if d != side], axis=0)
        levels_of_arms = (box + own[side]).ravel()
        least, most = low, high
        for _ in range(HALVINGS):
            middle = (least + most) / 2
            slopes = weights * given * d.slope(p, middle[:, own[side]] * given)
            sums = np.bincount(levels_of_arms, slopes.ravel(), low.size).reshape(low.shape)
            falling = sums < 0
            least, most = np.where(falling, middle, least), np.where(falling, most, middle)
        return np.where(played & (side_of == side), least, x)

    told = np.full(len(lines), np.inf)
    found = np.empty_like(low)
    for start in range(starts):
        begin = now if start == 0 else np.where(played, rng.uniform(low, high), now)
        x = np.clip(begin, low, high)
        value = np.full(len(lines), np.inf)
        for _ in range(MAX_PASSES):
            for side in range(len(sizes)):
                x = improve(x, side)
            means = np.prod([x[:, place] for place in own], axis=0)
            before, value = value, d.of(p, means) @ weights
            if not (before - value > 1e-9).any():
                break
        better = value < told
        told, found = np.where(better, value, told), np.where(better[:, None], x, found)
    ends = np.cumsum(sizes)[:-1]
    return [(float(sum_), tuple(np.split(x, ends))) for sum_, x in zip(told, found, strict=True)]


def _boxes(
    now: Floats, fixed: np.ndarray, overtaken: np.ndarray, lines: np.ndarray
) -> tuple[Floats, Floats]:
    """Lower and upper ends of the boxes of B: each of `lines` overtakes the best of its side."""
    each = np.arange(len(lines))
    low = np.tile(np.minimum(now, EDGE), (len(lines), 1))
    high = np.tile(np.maximum(now, 1 - EDGE), (len(lines), 1))
    low[:, fixed] = high[:, fixed] = now[fixed]
    low[each, lines] = now[overtaken]
    high[each, lines] = np.maximum(low[each, lines], 1 - EDGE)
    return low, high
