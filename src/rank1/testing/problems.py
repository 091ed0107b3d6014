"""What every problem must do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rank1.compiled import kernel
from rank1.problems import PROBLEMS, Problem
from rank1.problems.base import Floats, draw, split, tally
from rank1.testing.expect import expect, run_checks

__all__ = ["PROBLEM_CHECKS", "check_problem", "draws"]

#: The number of draws per arm, and the largest error of an average in standard errors.
DRAWS, ERRORS = 40_000, 4.5
#: The number of arms to check in a large grid: the best, the last, and others at random.
ARMS = 12


def check_problem(problem: Problem, seed: int = 0) -> None:
    """Test whether a problem's draws have the law that it claims, and everything else it promises.

    Parameters
    ----------
    problem
        Any problem; in a large grid only some arms are checked.
    seed
        The seed of the random numbers. The checks are statistical: one in a thousand seeds may
        reject a correct problem.

    Raises
    ------
    AssertionError
        Says what the problem should have done, and what it did.

    Examples
    --------
    >>> import rank1
    >>> from rank1.testing import check_problem
    >>> check_problem(rank1.spike(K=3, L=4, p_u=0.3, p_v=0.5, delta_u=0.4, delta_v=0.2))
    """
    run_checks(repr(problem), PROBLEM_CHECKS, problem, seed)


def _draws(law: Any, arm: int, rng: Any, out: Any) -> None:
    for k in range(len(out)):
        reward, regret = draw(law, arm, rng)
        out[k, 0] = reward
        out[k, 1] = regret


def _sums(law: Any, arm: int, count: int, part: int, rng: Any, room: Any, out: Any) -> None:
    for k in range(len(out)):
        reward, regret = tally(law, arm, count, rng, room)
        out[k, 0] = reward
        out[k, 1] = regret
        out[k, 2] = split(law, arm, count, part, rng, room)


def draws(problem: Problem, arm: int, size: int, seed: int) -> Floats:
    """Rewards and realised regrets of one arm from compiled code, as an array of size×2."""
    rng, law = np.random.default_rng(seed), problem.law
    out = np.zeros((size, 2))
    block = problem.block or size
    for first in range(0, size, block):
        problem.refill(law, rng)
        kernel(_draws, law)(law, arm, rng, out[first : first + block])
    return out


def _arms(problem: Problem, seed: int) -> list[int]:
    arms = problem.arms
    if arms <= ARMS:
        return list(range(arms))
    rng = np.random.default_rng(seed)
    return [problem.best_arm, arms - 1, *rng.choice(arms, ARMS - 2, replace=False).tolist()]


def has_a_geometry_that_fits_its_means(problem: Problem, seed: int = 0) -> None:
    """Best arms, gaps and averages agree with the grid of means."""
    means, best, sizes = problem.means, problem.means.max(), problem.grid.sizes
    expect(means.shape == sizes, f"means must have shape {sizes}, got {means.shape}")
    for name, value, right in (
        ("best_mean", problem.best_mean, best),
        ("lowest_mean", problem.lowest_mean, means.min()),
        ("the mean of best_arm", means.ravel()[problem.best_arm], best),
    ):
        expect(np.isclose(value, right), f"{name} must be {right}, got {value}")
    arms = problem.best_arms
    expect(problem.best_arm == arms[0], f"best_arm must be the first of {arms}")
    for arm in _arms(problem, seed):
        told, true, mean = problem.is_best(arm), arm in arms, means.ravel()[arm]
        expect(told == true, f"is_best({arm}) must be {true}, got {told}")
        expect(np.isclose(problem.mean(arm), mean), f"mean({arm}) must be {mean}")
        expect(np.isclose(mean, best) or not true, f"arm {arm} is not best with {mean}")
    if len(sizes) == 2:
        columns, rows = np.array([0, sizes[1] - 1]), np.array([0, 0])
        expect(
            np.allclose(problem.row_means(columns), means[:, columns].mean(axis=1)),
            "row_means must be averages over columns",
        )
        expect(
            np.allclose(problem.column_means(rows), means[rows].mean(axis=0)),
            "column_means must be averages over rows",
        )
        if hasattr(problem, "row_gaps"):
            _check_gaps(problem)


def _check_gaps(problem: Any) -> None:
    for side, gaps, least, factor in (
        ("row", problem.row_gaps, problem.min_row_gap, problem.u),
        ("column", problem.column_gaps, problem.min_column_gap, problem.v),
    ):
        expect(np.allclose(gaps, factor.max() - factor), f"{side}_gaps must be {side} gaps")
        right = min((gap for gap in gaps if gap > 0), default=math.inf)
        expect(least == right, f"min_{side}_gap must be {right}, got {least}")
    mu = min(problem.u.mean(), problem.v.mean())
    expect(np.isclose(problem.mu, mu), f"mu must be {mu}, got {problem.mu}")


def can_be_built_again(problem: Problem, seed: int = 0) -> None:
    """`description` is JSON, and rebuilds the same problem."""
    about = json.loads(json.dumps(problem.description, allow_nan=False))
    again = PROBLEMS.get(about["name"], type(problem))(**about["settings"])
    expect(np.array_equal(again.means, problem.means), f"built again it is {again!r}")


def draws_from_python(problem: Problem, seed: int = 0) -> None:
    """`draw` returns two numbers, and rejects arms outside the grid."""
    drawn = problem.draw(0, np.random.default_rng(seed))
    floats = all(isinstance(number, float) for number in drawn)
    expect(floats and len(drawn) == 2, f"got {drawn!r}")
    for arm in (-1, problem.arms):
        try:
            problem.draw(arm, np.random.default_rng(seed))
        except (IndexError, ValueError):
            continue
        raise AssertionError(f"draw({arm}) must raise an IndexError or a ValueError")


def draws_alike_compiled_and_interpreted(problem: Problem, seed: int = 0) -> None:
    """`law.draw` gives the same numbers in plain Python and in compiled code."""
    arm = problem.arms - 1
    compiled = draws(problem, arm, 200, seed)
    rng, law = np.random.default_rng(seed), problem.law
    problem.refill(law, rng)
    plain = np.array([law.draw(arm, rng) for _ in range(200)])
    expect(np.array_equal(plain, compiled), f"of arm {arm}, drawn 200 times")


def has_the_means_that_it_claims(problem: Problem, seed: int = 0) -> None:
    """Averages of draws agree with the means and gaps, and rewards lie between low and high."""
    for arm in _arms(problem, seed):
        out = draws(problem, arm, DRAWS, seed + arm)
        low, high = out[:, 0].min(), out[:, 0].max()
        inside = problem.low <= low and high <= problem.high
        limits = f"[{problem.low:g}, {problem.high:g}]"
        expect(inside, f"arm {arm} gave rewards from {low} to {high}, outside {limits}")
        mean = problem.means.ravel()[arm]
        gap = problem.best_mean - mean
        for what, some, right in (("reward", out[:, 0], mean), ("regret", out[:, 1], gap)):
            error = some.std() / math.sqrt(DRAWS)
            expect(
                abs(some.mean() - right) <= ERRORS * error + 1e-12,
                f"arm {arm} has mean {what} {right}, but {some.mean()} ± {error} over "
                f"{DRAWS:,} draws",
            )
        told = type(problem.law).gap(problem.law, arm)
        expect(np.isclose(told, gap, atol=1e-12), f"gap({arm}) is {gap}, got {told}")


def regrets_nothing_at_the_best_arm(problem: Problem, seed: int = 0) -> None:
    """The realised regret of the best arm is exactly 0."""
    regrets = draws(problem, problem.best_arm, 1000, seed)[:, 1]
    expect(np.all(regrets == 0), f"got up to {np.abs(regrets).max()}")


def draws_sums_with_the_law_of_sums(problem: Problem, seed: int = 0) -> None:
    """`law.tally` and `law.split`, if there are any, have the law of the same number of draws."""
    if not problem.has_tallies:
        return
    for count in (1, 7, 500):
        for arm in _arms(problem, seed):
            _check_sums(problem, arm, count, seed)


def _check_sums(problem: Problem, arm: int, count: int, seed: int) -> None:
    from scipy import stats

    size, part, where = 3000, (count + 1) // 2, f"arm {arm}, sums of {count}"
    single = draws(problem, arm, size * count, seed + count).reshape(size, count, 2)
    added, begun = single.sum(axis=1), single[:, :part, 1].sum(axis=1)
    sums = np.zeros((size, 3))
    law, rng = problem.law, np.random.default_rng(seed + count + 1)
    room = np.zeros(law.tally_size)
    kernel(_sums, law)(law, arm, count, part, rng, room, sums)
    begins, sums = sums[:, 2], sums[:, :2]
    for what, a, b in (
        ("reward", added[:, 0], sums[:, 0]),
        ("regret", added[:, 1], sums[:, 1]),
        ("reward plus regret", added.sum(axis=1), sums.sum(axis=1)),
        (f"regret of the first {part}", begun, begins),
        (f"regret after the first {part}", added[:, 1] - begun, sums[:, 1] - begins),
    ):
        p = stats.ks_2samp(np.round(a, 9), np.round(b, 9), method="asymp").pvalue
        expect(p > 1e-5, f"{where}: {what} has another law (Kolmogorov–Smirnov, p = {p:.1g})")
        spread = math.sqrt((a.var() + b.var()) / size)
        same = abs(a.mean() - b.mean()) <= ERRORS * spread + 1e-9
        expect(same, f"{where}: mean {what} is {b.mean()} instead of {a.mean()}")
    if count > 1 and sums[:, 0].std() > 0 and sums[:, 1].std() > 0:
        ours, theirs = (np.asarray(np.corrcoef(x.T))[0, 1] for x in (sums, added))
        same = abs(ours - theirs) < ERRORS * math.sqrt(2 / size)
        expect(same, f"{where}: reward and regret correlate by {ours} instead of {theirs}")


#: All checks, ordered so that the first failure is the most informative.
PROBLEM_CHECKS: tuple[Callable[..., None], ...] = (
    has_a_geometry_that_fits_its_means,
    can_be_built_again,
    draws_from_python,
    draws_alike_compiled_and_interpreted,
    has_the_means_that_it_claims,
    regrets_nothing_at_the_best_arm,
    draws_sums_with_the_law_of_sums,
)
