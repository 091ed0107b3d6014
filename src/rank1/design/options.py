"""Checks of options that studies and `rank1 judge` share: reward range, floor and control."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rank1 import checks
from rank1.errors import InputError, InputTypeError

__all__ = ["check_floor", "control_of", "range_of"]

#: The largest allowed reward.
LARGEST = 1e100


def range_of(reward_range: Any) -> tuple[float, float]:
    """Check a reward range and return its ends.

    >>> range_of((5, 0))
    Traceback (most recent call last):
    ...
    rank1.InputError: reward_range must be (low, high) with low < high, got (5.0, 0.0)
    """
    try:
        low, high = reward_range
    except (TypeError, ValueError):
        raise InputTypeError("reward_range", reward_range, "a pair of numbers") from None
    low, high = checks.number("reward_range[0]", low), checks.number("reward_range[1]", high)
    if not low < high or not math.isfinite(high - low):
        raise InputError("reward_range", (low, high), "(low, high) with low < high")
    if max(-low, high) > LARGEST:
        expected = f"within ±{LARGEST:g}"
        raise InputError("reward_range", (low, high), expected, "sums would overflow")
    return low, high


def check_floor(floor: float, sizes: Mapping[str, int]) -> None:
    """Raise an error if a side has no share left to choose; `sizes` are the numbers of levels."""
    for side, size in sizes.items():
        if size > 1 and floor * size >= 1:
            expected = f"below 1/{size}, for the {size} levels of {side}"
            raise InputError("floor", floor, expected, "nothing is left to choose")


def control_of(
    sides: Mapping[str, Sequence[str]], given: Collection[str], control: Any
) -> dict[str, str] | None:
    """Check a control: it needs one level for each side that isn't given.

    >>> control_of({"image": ("x", "y"), "age": ("old", "new")}, ("age",), {"age": "old"})
    Traceback (most recent call last):
    ...
    rank1.InputError: control must be a level of each of image, and none of age, which is given, got {'age': 'old'}
    """  # noqa: E501
    if control is None:
        return None
    chosen = [side for side in sides if side not in given]
    expected = f"a level of each of {', '.join(chosen)}"
    if given:
        expected += f", and none of {', '.join(given)}, which {_be(given)} given"
    if not isinstance(control, Mapping):
        raise InputTypeError("control", control, expected)
    if set(control) != set(chosen):
        raise InputError("control", dict(control), expected)
    for side in chosen:
        if control[side] not in sides[side]:
            raise InputError(f"control.{side}", control[side], f"one of {', '.join(sides[side])}")
    return {side: control[side] for side in chosen}


def _be(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"
