"""The optimisation problem in the proof of the lower bound, solved numerically.

How little exploration can distinguish a problem (ū, v̄) from every model (ū', v̄') with another best
pair? Playing each pair c[i, j]·log n times costs Σ gap·c·log n, and must achieve
Σ d(ūᵢv̄ⱼ, ū'ᵢv̄'ⱼ)·c ≥ 1 for each model in B(ū, v̄). The smallest cost is f. The paper relaxes B
to the models in which a single row or column changes; that gives f′, whose solution is Theorem 2
(and 3). All of this carries over to more sides, where the solution is `unimodal_bound`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from rank1 import checks
from rank1.problems import Problem, RankOne
from rank1.problems.base import Floats
from rank1.theory.alternatives import Model, search
from rank1.theory.bounds import cross
from rank1.theory.kl import divergence

__all__ = ["Allocation", "graves_lai", "relaxed"]


@dataclass(frozen=True)
class Allocation:
    """An optimal exploration and facts about it, from `relaxed` and `graves_lai`."""

    #: The cost of exploration: the factor of log n in the regret.
    value: float
    #: How often each arm is played, as a factor of log n, with one axis per side.
    c: Floats
    #: Number of constraints in the last linear programme.
    constraints: int
    #: 1 − Σ d·c at the worst model found: if above 0, the solution misses this much.
    violation: float
    #: Linear programmes solved.
    rounds: int


def relaxed(problem: Problem) -> Allocation:
    """f′, the linear programme over c ∈ [0, ∞)^{K×L} that Theorems 2 and 3 solve.

    Its value is `unimodal_bound(problem)`, and c is positive exactly on the neighbours of the best
    arm: for two sides, the K + L − 2 other pairs of its row and column. (The paper counts K + L − 1
    with the best pair, which costs nothing and gives no information: its c is arbitrary, 0 here.)

    Parameters
    ----------
    problem
        As for `unimodal_bound`.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> problem = rank1.Bernoulli([0.75, 0.5, 0.25], [0.5, 0.25])
    >>> solved = theory.relaxed(problem)
    >>> round(solved.value, 6), round(theory.lower_bound(problem), 6)
    (7.378505, 7.378505)
    >>> solved.c.round(2)
    array([[ 0.  , 12.02],
           [28.27,  0.  ],
           [ 6.37,  0.  ]])

    References
    ----------
    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, appendix B.
    https://arxiv.org/abs/1608.03023
    """
    programme = _Programme(problem)
    programme.add_paper()
    value, c = programme.solve()
    return Allocation(value, c, programme.constraints, 0.0, 1)


def graves_lai(
    problem: Problem, *, starts: int = 3, tolerance: float = 1e-6, rounds: int = 50, seed: int = 0
) -> Allocation:
    """f, the programme with all models of B as constraints, by constraint generation.

    Starting from the constraints of f′, solve; look for models that the solution fails to
    distinguish (Σ d·c below 1 − `tolerance`, see `weakest_models`); add them; repeat until there
    are none.

    The search is local and can miss a violated model, but fewer constraints can only lower the
    value: up to the solver's tolerance, f′ ≤ `value` ≤ f. These are equal, because the solution of
    f′ satisfies every constraint of f: the paper's relaxation loses nothing.

    Parameters
    ----------
    problem
        As for `unimodal_bound`.
    starts
        Local searches in each box and round.
    tolerance
        How far below 1 a constraint must lie to count as violated.
    rounds
        The largest number of linear programmes to solve.
    seed
        The seed of the random starts.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> problem = rank1.Bernoulli([0.75, 0.5, 0.25], [0.5, 0.25])
    >>> solved = theory.graves_lai(problem)
    >>> round(solved.value, 6), solved.constraints, solved.violation < 1e-6
    (7.378505, 3, True)

    References
    ----------
    Graves, Lai: Asymptotically efficient adaptive choice of control laws in controlled Markov
    chains. SIAM Journal on Control and Optimization 35, 1997.
    https://doi.org/10.1137/S0363012994275440

    Katariya et al.: Stochastic Rank-1 Bandits. AISTATS 2017, section 4.2 and appendix B.
    https://arxiv.org/abs/1608.03023
    """
    starts = checks.integer("starts", starts, 1)
    tolerance = checks.number("tolerance", tolerance, 0, above=True)
    rounds = checks.integer("rounds", rounds, 1)
    rng = np.random.default_rng(checks.integer("seed", seed, 0))
    programme = _Programme(problem)
    programme.add_paper()
    return _generate(programme, starts, tolerance, rounds, rng)


class _Programme:
    """A linear programme over c in which every constraint is a model to be distinguished.

    The solver's tolerances are absolute, and gaps and divergences may be of any size. So c is
    measured in units in which the closed form is 1 and no coefficient of f′ is above 1, and the
    cost in units of the largest of the closed form's terms.
    """

    def __init__(self, problem: Problem) -> None:
        sides = [gaps / d for gaps, d in cross(problem)]
        d = divergence(problem)
        assert d is not None
        assert isinstance(problem, RankOne)
        self.problem, self.d, self.means = problem, d, problem.means
        self.levels = problem.grid.levels(problem.best_arm)
        gaps = self.means[self.levels] - self.means
        # For each arm, the smallest of the closed form's regrets of its levels.
        prices = (np.insert(side, at, np.inf) for side, at in zip(sides, self.levels, strict=True))
        regret = np.array(functools.reduce(np.minimum.outer, prices))
        # The best arm costs nothing and gives no information.
        regret[self.levels], gaps[self.levels] = 0.0, 1.0
        self.unit = regret / gaps
        self.cost_unit = max(np.concatenate(sides), default=1.0)
        self.costs = regret / self.cost_unit
        self.blocks: list[Any] = []

    @property
    def constraints(self) -> int:
        """The number of constraints."""
        return sum(block.shape[0] for block in self.blocks)

    def add_paper(self) -> None:
        """Add B_U ∪ B_V, the models of f′: one level is raised to the best, the rest is fixed."""
        from scipy import sparse

        arms = np.arange(self.means.size).reshape(self.means.shape)
        for side, level in enumerate(self.levels):
            # Means with the best level of this side, all else being equal.
            raised = self.means.take([level], axis=side)
            lines = np.delete(np.moveaxis(arms, side, 0), level, axis=0).ravel()
            data = (self.d.of(self.means, raised) * self.unit).ravel()[lines]
            count = arms.shape[side] - 1
            pointers = np.arange(count + 1) * (arms.size // (count + 1))
            self.blocks.append(sparse.csr_array((data, lines, pointers), (count, arms.size)))

    def add(self, model: Model) -> None:
        """Add any model."""
        from scipy import sparse

        coefficients = self.d.of(self.means, functools.reduce(np.multiply.outer, model)) * self.unit
        self.blocks.append(sparse.csr_array(coefficients.reshape(1, -1)))

    def solve(self) -> tuple[float, Floats]:
        """The smallest cost, and an allocation with that cost."""
        from scipy import sparse
        from scipy.optimize import linprog

        if self.constraints == 0:
            return 0.0, np.zeros_like(self.means)
        found = linprog(
            self.costs.ravel(),
            A_ub=-sparse.vstack(self.blocks, format="csr"),
            b_ub=-np.ones(self.constraints),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if not found.success:
            raise RuntimeError(f"the linear programme was not solved: {found.message}")
        return float(found.fun * self.cost_unit), found.x.reshape(self.means.shape) * self.unit


def _generate(
    programme: _Programme, starts: int, tolerance: float, rounds: int, rng: np.random.Generator
) -> Allocation:
    solved = 0
    while solved < rounds:
        solved += 1
        constraints = programme.constraints
        value, c = programme.solve()
        least = np.inf
        for told, model in search(programme.problem, c, starts, rng):
            least = min(least, told)
            if told < 1 - tolerance:
                programme.add(model)
        if programme.constraints == constraints:
            break
    violation = 1 - least if np.isfinite(least) else 0.0
    return Allocation(value, c, constraints, float(violation), solved)
