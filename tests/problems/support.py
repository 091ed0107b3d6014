"""Draws from laws through compiled code, and the moments that they should have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rank1
from rank1.compiled import kernel, method

Floats = NDArray[np.float64]

draw = method("draw")
tally = method("tally", inline=False)
split = method("split", inline=False)


def _draws(law: Any, arm: int, rng: Any, out: Any) -> None:
    for k in range(len(out)):
        reward, regret = draw(law, arm, rng)
        out[k, 0] = reward
        out[k, 1] = regret


def _tallies(
    law: Any, arm: int, count: int, parts: Any, rng: Any, other: Any, room: Any,
    out: Any,
) -> None:  # fmt: skip
    for k in range(len(out)):
        reward, regret = tally(law, arm, count, rng, room)
        out[k, 0] = reward
        out[k, 1] = regret
        left = count
        for p in range(len(parts)):
            out[k, 2 + p] = split(law, arm, left, parts[p], other, room)
            left -= parts[p]


def draws(problem: rank1.Problem, arm: int, size: int, seed: int) -> Floats:
    """Reward and realised regret of single pulls: (size, 2)."""
    rng, law = np.random.default_rng(seed), problem.law
    out = np.zeros((size, 2))
    block = problem.block or size
    for first in range(0, size, block):
        problem.refill(law, rng)
        kernel(_draws, law)(law, arm, rng, out[first : first + block])
    return out


def tallies(
    problem: rank1.Problem,
    arm: int,
    count: int,
    parts: list[int],
    size: int,
    seed: int,
) -> Floats:
    """Sums over `count` pulls of reward and of regret, and the regret of its first parts."""
    law = problem.law
    out = np.zeros((size, 2 + len(parts)))
    kernel(_tallies, law)(
        law, arm, count, np.array(parts, np.int64), np.random.default_rng(seed),
        np.random.default_rng(seed + 10**6), np.zeros(law.tally_size), out,
    )  # fmt: skip
    return out


def assert_moments(out: Floats, mean: Floats, covariance: Floats) -> None:
    """Means and covariances of the columns are those of theory, within 4.5 standard errors."""
    off = out - mean
    size = len(out)
    for a in range(len(mean)):
        error = math.sqrt(covariance[a, a] / size)
        assert abs(off[:, a].mean()) <= 4.5 * error + 1e-9 * (1 + abs(mean[a]))
        for b in range(a + 1):
            product = off[:, a] * off[:, b]
            error = product.std() / math.sqrt(size)
            scale = math.sqrt(covariance[a, a] * covariance[b, b])
            assert abs(product.mean() - covariance[a, b]) <= 4.5 * error + 1e-9 * scale + 1e-12


def moments(problem: rank1.Problem, arm: int) -> tuple[Floats, Floats]:
    """Mean and covariance of (reward, realised regret) of one pull, from the model's definition.

    Reward R and best reward B: in a model of factors R = U·V and B = U*·V*, where a factor that is
    shared is the same; Gaussian noise and categorical values are independent.
    """
    best_arm, is_best = problem.best_arm, arm == problem.best_arm
    r, b = problem.means.ravel()[arm], problem.best_mean
    if isinstance(problem, rank1.Categorical):
        flat = problem.probabilities.reshape(-1, len(problem.values))
        rr, bb = flat[arm] @ problem.values**2, flat[best_arm] @ problem.values**2
        rb = rr if is_best else r * b
    elif isinstance(problem, rank1.Means):
        rr, bb, rb = r, b, r if is_best else r * b
    elif isinstance(problem, rank1.Gaussian):
        rr, bb = r**2 + problem.sigma**2, b**2 + problem.sigma**2
        rb = rr if is_best else r * b
    else:
        assert isinstance(problem, rank1.RankOne)
        rr = bb = rb = 1.0
        levels, best_levels = problem.grid.levels(arm), problem.grid.levels(best_arm)
        sides = zip(problem.factors, second_moments(problem), levels, best_levels, strict=True)
        for factor, square, level, best in sides:
            rr, bb = rr * square[level], bb * square[best]
            rb *= square[level] if level == best else factor[level] * factor[best]
    mean = np.array([r, b - r])
    cross = rb - rr - r * (b - r)
    regret = bb - 2 * rb + rr - (b - r) ** 2
    return mean, np.array([[rr - r * r, cross], [cross, regret]])


def second_moments(problem: Any) -> list[Floats]:
    """E X² of the factors of each side."""
    if isinstance(problem, rank1.Product):
        return problem.factors  # zeros and ones are their own squares
    sides = problem.u_law, problem.v_law
    return [np.array([_square(law) for law in side]) for side in sides]


def _square(law: Any) -> float:
    if isinstance(law, rank1.Beta):
        a, b = law.a, law.b
        return a * (a + 1) / ((a + b) * (a + b + 1))
    if isinstance(law, rank1.Interval):
        return (law.low**2 + law.low * law.high + law.high**2) / 3
    if isinstance(law, rank1.Discrete):
        return float(np.dot(np.square(law.values), law.probabilities))
    return float(law.distribution.moment(2))
