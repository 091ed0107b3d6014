"""Means with their errors."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

__all__ = ["mean_and_error", "with_error"]


def mean_and_error(values: NDArray[Any]) -> dict[str, float | None]:
    """Mean, standard deviation and standard error; the last two need more than one value.

    >>> import numpy as np
    >>> mean_and_error(np.array([1.0, 3.0]))
    {'mean': 2.0, 'std': 1.4142135623730951, 'se': 1.0}
    """
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    se = None if std is None else std / math.sqrt(len(values))
    return {"mean": float(values.mean()), "std": std, "se": se}


def with_error(mean: float, se: float | None, digits: int = 1) -> str:
    """A mean with its standard error, if there is one.

    >>> with_error(1234.56, 7.89), with_error(2.0, None), with_error(1234.56, 7.89, 0)
    ('1,234.6 ± 7.9', '2.0', '1,235 ± 8')
    """
    return " ± ".join(f"{each:,.{digits}f}" for each in (mean, se) if each is not None)
