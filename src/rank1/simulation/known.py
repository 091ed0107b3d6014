"""What a simulation tells a policy about its problem."""

from __future__ import annotations

from rank1.policies.base import Known, Policy, Truth
from rank1.problems.base import Problem

__all__ = ["known_of"]


def known_of(policy: Policy, problem: Problem, n: int) -> Known:
    """What the policy may see: the truth only if it declares `needs_truth`.

    >>> import rank1
    >>> problem = rank1.Bernoulli([0.2, 0.8], [0.5])
    >>> known_of(rank1.UCB1(), problem, n=100).truth is None
    True
    >>> known_of(rank1.Oracle(), problem, n=100).truth
    Truth(best_pair=(1, 0), lowest_mean=0.1)
    """
    truth = Truth(problem.best_pair, problem.lowest_mean) if policy.needs_truth else None
    return Known(problem.K, problem.L, n, problem.low, problem.high, problem.sigma, truth)
