"""What a simulation tells a policy about its problem, and documents about problems and arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rank1.errors import InputError
from rank1.grid import Grid
from rank1.policies.base import Known, Policy, Truth
from rank1.policies.mistakes import start
from rank1.problems.base import Problem

__all__ = ["NamesArms", "best_document", "known_of", "problem_document", "smallest_start"]


def known_of(policy: Policy, problem: Problem, n: int, grid: Grid | None = None) -> Known:
    """What the policy may see: the truth only if it declares `needs_truth`.

    `grid` replaces the problem's grid.

    >>> import rank1
    >>> problem = rank1.Bernoulli([0.2, 0.8], [0.5])
    >>> known_of(rank1.UCB1(), problem, n=100).truth is None
    True
    >>> known_of(rank1.Oracle(), problem, n=100).truth
    Truth(best_arm=1, lowest_mean=0.1)
    """
    truth = Truth(problem.best_arm, problem.lowest_mean) if policy.needs_truth else None
    limits = problem.low, problem.high, problem.sigma
    return Known(None, None, n, *limits, truth, sides=grid or problem.grid)


def smallest_start(policy: Policy, problem: Problem, n: int) -> Any:
    """The policy's state on a grid with one level per side, to check what the policy can do."""
    return start(policy, known_of(policy, problem, n, Grid([1] * len(problem.grid.sizes))))


def problem_document(problem: Problem) -> dict[str, Any]:
    """A problem as plain values: its name, sides and settings, and K and L if it has two sides.

    >>> import rank1
    >>> problem_document(rank1.Bernoulli([0.2, 0.8], [0.5]))
    {'name': 'bernoulli', 'K': 2, 'L': 1, 'sides': [2, 1], 'settings': {'u': [0.2, 0.8], 'v': [0.5]}}
    """  # noqa: E501
    told, sides = problem.description, list(problem.grid.sizes)
    two = dict(zip("KL", sides, strict=True)) if len(sides) == 2 else {}
    return {"name": told["name"], **two, "sides": sides, "settings": told["settings"]}


def best_document(arms: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    """The best arm of each run by its levels, and as pairs if there are two sides.

    >>> best_document([(0, 2, 1)]), best_document([(0, 2)])
    ({'best_arm': [[0, 2, 1]]}, {'best_arm': [[0, 2]], 'best_pair': [[0, 2]]})
    """
    levels = [list(arm) for arm in arms]
    two = {"best_pair": levels} if len(levels[0]) == 2 else {}
    return {"best_arm": levels, **two}


class NamesArms:
    """All runs of one policy, each of which names an arm at its end."""

    grid: Grid
    arms: list[int]

    @property
    def best_arms(self) -> list[tuple[int, ...]]:
        """The levels of the arm that each run names at its end."""
        return [self.grid.levels(arm) for arm in self.arms]

    @property
    def best_pairs(self) -> list[tuple[int, int]]:
        """The same as rows and columns, for a grid with two sides."""
        sizes = self.grid.sizes
        if len(sizes) != 2:
            got = f"{len(sizes)} ({self.grid})"
            raise InputError("sides", sizes, "2 for pairs", "use best_arms", got=got)
        return [(row, column) for row, column in self.best_arms]
