"""Draw a unit's levels by hash: a client that has the shares needs no request.

The same shares and the same unit give the same levels everywhere, in Python and in any other
language; docs/assignment.md defines how, with test vectors. This needs only the standard library.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from rank1.errors import InputError, InputTypeError, listed

__all__ = ["assign", "held_out", "murmur3"]

#: How far the sum of a side's shares may be from 1.
ROUNDING = 1e-6
_WORD = 0xFFFFFFFF


def assign(
    shares: Mapping[str, Any], unit: str, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the levels of a unit, by side.

    Parameters
    ----------
    shares
        A version as returned by `Study.shares`: `salt`, and `sides` with the share of each level by
        side. `given` maps given sides to lists of their levels, or lists the names of given sides
        that accept any level. `holdout` is the fraction of units that stay on the `control`, which
        has a level for each side that isn't given.
    unit
        The unit to assign, such as a visitor's id.
    given
        The levels that come with the unit, by side.

    Returns
    -------
    dict
        A level for each given side, then for each of the others.

    Examples
    --------
    >>> shares = {"version": 3, "salt": "s", "sides": {"headline": {"A": 0.3, "B": 0.7}}}
    >>> assign(shares, "visitor-1"), assign(shares, "visitor-2")
    ({'headline': 'A'}, {'headline': 'B'})
    >>> assign({**shares, "given": ["segment"]}, "visitor-1")
    Traceback (most recent call last):
    ...
    rank1.InputError: given must be a level for each of segment, got {}
    """
    if not isinstance(shares, Mapping):
        raise InputTypeError("shares", shares, "a mapping with a salt and sides")
    salt, sides = _text("salt", shares.get("salt")), _sides(shares)
    levels = _given(shares, given or {})
    held = held_out(shares, unit)
    control = _control(shares, sides) if held else {}
    for side, own in sides.items():
        levels[side] = control[side] if held else _drawn(own, _place(salt, side, unit))
    return levels


def held_out(shares: Mapping[str, Any], unit: str) -> bool:
    """Tell whether a unit is held out and stays on the control for the whole study.

    >>> held_out({"salt": "s", "holdout": 0.5}, "visitor-1")
    False
    """
    part = shares.get("holdout") or 0.0
    if not _is_number(part) or not 0 <= part < 1:
        raise InputError("holdout", part, "a number of at least 0 and below 1")
    salt, unit = _text("salt", shares.get("salt")), _text("unit", unit)
    return part > 0 and _place(salt, "", unit) < part


def murmur3(data: bytes, seed: int) -> int:
    """Compute MurmurHash3_x86_32, a 32-bit whole number.

    >>> hex(murmur3(b"Hello, world!", 0x9747B28C))
    '0x24884cba'
    """
    h, words = seed & _WORD, len(data) // 4
    for k in struct.unpack_from(f"<{words}I", data):
        k = k * 0xCC9E2D51 & _WORD  # as in `_mixed`: a call would take longer
        h ^= ((k << 15 | k >> 17) & _WORD) * 0x1B873593 & _WORD
        h = (h << 13 | h >> 19) & _WORD
        h = (h * 5 + 0xE6546B64) & _WORD
    h ^= _mixed(int.from_bytes(data[4 * words :], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & _WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & _WORD
    return h ^ h >> 16


def _mixed(k: int) -> int:
    k = k * 0xCC9E2D51 & _WORD
    k = (k << 15 | k >> 17) & _WORD
    return k * 0x1B873593 & _WORD


@functools.lru_cache(maxsize=4096)
def _seed(salt: str, side: str) -> int:
    return murmur3(f"{salt}\n{side}".encode(), 0)


def _place(salt: str, side: str, unit: str) -> float:
    """Place a unit in [0, 1) for a side; the side "" is for the holdout."""
    return murmur3(_text("unit", unit).encode(), _seed(salt, side)) / 2**32


def _drawn(shares: Mapping[str, float], x: float) -> str:
    """Return the first level at which the sum of the shares exceeds x."""
    total, last = 0.0, ""
    for level, share in _in_order(shares):
        if share > 0:
            last = level
            total += share
            if total > x:
                break
    return last


def _in_order(levels: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield levels in the order of the document, as JavaScript would read it.

    In JavaScript, names that are array indices (0, 17) come first, in ascending order.
    """
    indices = [name for name in levels if name.isascii() and name.isdecimal() and _is_index(name)]
    if indices:
        rest = [name for name in levels if name not in indices]
        levels = {name: levels[name] for name in (*sorted(indices, key=int), *rest)}
    yield from levels.items()


def _is_index(name: str) -> bool:
    return len(name) <= 10 and str(int(name)) == name and int(name) < _WORD


def _sides(shares: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
    sides = shares.get("sides")
    if not isinstance(sides, Mapping) or not sides:
        raise InputTypeError("sides", sides, "the shares of each level, by side")
    for side, own in sides.items():
        if not isinstance(own, Mapping) or not own:
            raise InputTypeError(f"shares of {side}", own, "a share for each level")
        for level, share in own.items():
            if not _is_number(share) or not 0 <= share <= 1:
                raise InputError(f"share of {level} in {side}", share, "a number in [0, 1]")
        total = sum(own.values())
        if abs(total - 1) > ROUNDING:
            expected = "numbers that add up to 1"
            raise InputError(f"shares of {side}", dict(own), expected, got=f"{total:g}")
    return sides


def _given(shares: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    named = shares.get("given") or ()
    wanted = list(named)
    if set(wanted) != set(given):
        names = f"a level for each of {', '.join(wanted)}" if wanted else "empty: no side is given"
        raise InputError("given", dict(given), names)
    for side, known in named.items() if isinstance(named, Mapping) else ():
        if given[side] not in known:
            raise InputError(f"given.{side}", given[side], f"one of {listed(known)}")
    return {side: _text(f"given.{side}", given[side]) for side in wanted}


def _control(shares: Mapping[str, Any], sides: Mapping[str, Any]) -> Mapping[str, str]:
    control = shares.get("control")
    if not isinstance(control, Mapping) or any(
        control.get(side) not in own for side, own in sides.items()
    ):
        expected = f"a level of each of {', '.join(sides)}"
        raise InputError("control", control, expected, "units that are held out need it")
    return control


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputTypeError(name, value, "text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(name, value, "text that UTF-8 can encode") from None
    return value


def _is_number(value: Any) -> bool:
    if type(value) is float:  # nearly always
        return math.isfinite(value)
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
