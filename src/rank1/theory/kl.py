"""The divergence in a problem's lower bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rank1.divergences import kl_bernoulli, kl_gaussian
from rank1.problems import Gaussian, Problem, Product

__all__ = ["Divergence", "divergence"]


class Divergence(NamedTuple):
    """The divergence of a problem's rewards, and its derivative in the second mean."""

    of: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]


def divergence(problem: Problem) -> Divergence | None:
    """The divergence in a problem's lower bound; None if no theorem applies.

    Parameters
    ----------
    problem
        `Product` (and its subclasses, such as `Bernoulli`: Theorem 2) or `Gaussian` (Theorem 3);
        anything else gives None.

    Examples
    --------
    >>> import rank1
    >>> from rank1 import theory
    >>> theory.divergence(rank1.Gaussian([0.9, 0.5], [0.8], sigma=0.5)).of(0.25, 0.75)
    0.5
    """
    if isinstance(problem, Product):
        return Divergence(kl_bernoulli, _slope_bernoulli)
    if isinstance(problem, Gaussian):
        sigma = problem.sigma
        return Divergence(
            lambda p, q: kl_gaussian(p, q, sigma),
            lambda p, q: (q - p) / sigma**2,
        )
    return None


def _slope_bernoulli(p: Any, q: Any) -> Any:
    # (q − p)/(q·(1 − q)); in this form its sign is exact, and p = q = 0 is a limit.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, (q - p) / (q * (1 - q)), 1 / (1 - q))
