"""The paper's theory of a problem: its hardness, bounds, and the optimisation behind them."""

from __future__ import annotations

from rank1.divergences import kl_bernoulli, kl_gaussian
from rank1.theory.alternatives import Model, weakest_models
from rank1.theory.bounds import (
    LowerBound,
    UpperBound,
    lower_bound,
    lower_bound_terms,
    unimodal_bound,
    upper_bound,
    upper_bound_terms,
)
from rank1.theory.characteristic import CharacteristicTime, characteristic_time
from rank1.theory.gaps import Hardness, hardness, has_unique_best_arm
from rank1.theory.graves_lai import Allocation, graves_lai, relaxed
from rank1.theory.kl import Divergence, divergence
from rank1.theory.tables import table

__all__ = [
    "Allocation",
    "CharacteristicTime",
    "Divergence",
    "Hardness",
    "LowerBound",
    "Model",
    "UpperBound",
    "characteristic_time",
    "divergence",
    "graves_lai",
    "hardness",
    "has_unique_best_arm",
    "kl_bernoulli",
    "kl_gaussian",
    "lower_bound",
    "lower_bound_terms",
    "relaxed",
    "table",
    "unimodal_bound",
    "upper_bound",
    "upper_bound_terms",
    "weakest_models",
]
