"""Means with their errors, and numbers that JSON can represent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["finite", "mean_and_error", "with_error"]


def mean_and_error(values: NDArray[Any]) -> dict[str, float | None]:
    """Mean, standard deviation and standard error; the last two need more than one value.

    >>> mean_and_error(np.array([1.0, 3.0]))
    {'mean': 2.0, 'std': 1.4142135623730951, 'se': 1.0}
    """
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    se = None if std is None else std / math.sqrt(len(values))
    return {"mean": float(values.mean()), "std": std, "se": se}


def with_error(mean: float, se: float | None) -> str:
    """A mean with its standard error, if there is one.

    >>> with_error(1234.56, 7.89), with_error(2.0, None)
    ('1,234.6 ± 7.9', '2.0')
    """
    return f"{mean:,.1f}" if se is None else f"{mean:,.1f} ± {se:,.1f}"


def finite(value: Any) -> Any:
    """A value with arrays as lists, and None for NaN and infinity, which JSON doesn't have.

    >>> finite({"means": np.array([0.5, np.nan]), "pair": (1, 2), "bound": math.inf})
    {'means': [0.5, None], 'pair': [1, 2], 'bound': None}
    """
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
