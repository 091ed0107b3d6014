"""What the paper proves of a problem: its hardness, bounds, and the programme behind them."""

from __future__ import annotations

from rank1.theory.bounds import (
    LowerBound,
    UpperBound,
    lower_bound,
    lower_bound_terms,
    upper_bound,
    upper_bound_terms,
)
from rank1.theory.gaps import Hardness, hardness, has_unique_best_pair
from rank1.theory.kl import Divergence, divergence, kl_bernoulli, kl_gaussian

__all__ = [
    "Divergence",
    "Hardness",
    "LowerBound",
    "UpperBound",
    "divergence",
    "hardness",
    "has_unique_best_pair",
    "kl_bernoulli",
    "kl_gaussian",
    "lower_bound",
    "lower_bound_terms",
    "upper_bound",
    "upper_bound_terms",
]
