"""Checks of arguments: each error names the argument, its value and what was expected."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rank1.errors import InputError, InputTypeError, shown

if TYPE_CHECKING:  # a client checks its arguments, too, without NumPy
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["boolean", "in_order", "integer", "jobs", "number", "one_of", "shown", "vector"]

#: The largest step count: counters are 64-bit, and a double counts exactly up to 2**53.
MAX_STEPS = 2**53
#: More threads or processes than any machine can use.
MAX_JOBS = 1024

#: The arguments of a study's `record`, `reward` and `tell`.
RECORD = "unit", "version", "levels", "reward", "guardrails"
REWARD = "unit", "reward", "guardrails"
REPORT = "id", "reward", "guardrails"


def _is_real(value: Any) -> bool:
    if isinstance(value, int | float):
        return not isinstance(value, bool)
    numpy: Any = sys.modules.get("numpy")  # if it isn't loaded, no value has one of its types
    return numpy is not None and isinstance(value, numpy.integer | numpy.floating)


def integer(name: str, value: Any, low: int, high: int | None = MAX_STEPS) -> int:
    """`value` as an int in [low, high]; 2e6 is accepted, 2.5 and True are not.

    >>> integer("n", 2e6, 1)
    2000000
    >>> integer("runs", 0, 1)
    Traceback (most recent call last):
    ...
    rank1.InputError: runs must be a whole number of at least 1, got 0
    """
    asked = f"a whole number of at least {low}"
    if not _is_real(value):
        raise InputTypeError(name, value, asked)
    if high is not None and (high < MAX_STEPS or high < value < math.inf):
        asked += f" and at most {high}"
    whole = isinstance(value, int) or (math.isfinite(value) and int(value) == value)
    if not whole or value < low or (high is not None and value > high):
        raise InputError(name, value, asked)
    return int(value)


def boolean(name: str, value: Any) -> bool:
    """`value`, which must be true or false.

    >>> boolean("first_round", "no")
    Traceback (most recent call last):
    ...
    rank1.InputTypeError: first_round must be true or false, got 'no'
    """
    if not isinstance(value, bool):
        raise InputTypeError(name, value, "true or false")
    return value


def jobs(name: str, value: Any) -> int:
    """The number of parallel jobs: at least 1, or -1 for one per core."""
    import joblib

    if value == -1:
        return int(joblib.cpu_count())
    try:
        return integer(name, value, 1, MAX_JOBS)
    except (InputError, InputTypeError) as error:
        error.hint = "-1 means one per core"
        raise


def number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: bool = False,
    below: bool = False,
) -> float:
    """`value` as a finite float in [low, high], without low if `above`, without high if `below`.

    >>> number("sigma", -1, 0, above=True)
    Traceback (most recent call last):
    ...
    rank1.InputError: sigma must be a number above 0, got -1
    """
    parts = []
    if low > -math.inf:
        parts.append(f"above {low:g}" if above else f"of at least {low:g}")
    if high < math.inf:
        parts.append(f"below {high:g}" if below else f"at most {high:g}")
    asked = " ".join(["a number", " and ".join(parts)]).rstrip()
    if not _is_real(value):
        raise InputTypeError(name, value, asked)
    if isinstance(value, int) and abs(value) > 2**1000:  # too large for a float
        raise InputError(name, value, asked)
    edge = (above and value == low) or (below and value == high)
    if not math.isfinite(value) or not low <= value <= high or edge:
        raise InputError(name, value, asked)
    return float(value)


def vector(
    name: str, values: ArrayLike, low: float = 0.0, high: float = 1.0
) -> NDArray[np.float64]:
    """`values` as a read-only, non-empty vector of finite numbers in [low, high].

    >>> vector("u", [0.5, 1.5])
    Traceback (most recent call last):
    ...
    rank1.InputError: u[1] must be a number in [0, 1], got 1.5
    """
    import numpy as np

    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(name, values, "a list of numbers") from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(name, values, "a list of at least one number")
    bad = ~((array >= low) & (array <= high))  # catches NaN too
    if bad.any():
        at = int(bad.argmax())
        asked = f"a number in [{low:g}, {high:g}]"
        raise InputError(f"{name}[{at}]", float(array[at]), asked)
    array.setflags(write=False)
    return array


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """`value`, which must be one of `choices`; the error suggests a correction for a typo.

    >>> one_of("policy", "rank1elm", ["rank1elim", "uts"])
    Traceback (most recent call last):
    ...
    rank1.InputError: policy must be one of rank1elim, uts, got 'rank1elm': did you mean rank1elim?
    """
    import difflib

    known = list(choices)
    if isinstance(value, str) and value in known:  # `in` fails for an array
        return value
    close = difflib.get_close_matches(str(value), known, n=1)
    hint = f"did you mean {close[0]}?" if close else None
    raise InputError(name, value, f"one of {', '.join(known)}", hint)


def in_order(
    argument: str, given: Iterable[Any], names: Sequence[str], required: int
) -> list[Sequence[Any]]:
    """Return the arguments of each call in the method's order, from sequences or dicts."""
    found: list[Sequence[Any]] = []
    for place, each in enumerate(given):
        if isinstance(each, Mapping) and each.keys() <= set(names):
            each = [each.get(name) for name in names]
        if not isinstance(each, tuple | list) or not required <= len(each) <= len(names):
            raise InputTypeError(f"{argument}[{place}]", each, ", ".join(names))
        found.append(each)
    return found
