"""Plain values as text that tells each from every other."""

from __future__ import annotations

from typing import Any

__all__ = ["plain"]

_SCALARS = frozenset(
    {type(None), bool, float, complex, str, bytes, range, type(...), type(NotImplemented)}
)
_LARGE = 2**1000  # there is a limit to the number of digits that Python writes


def plain(value: Any) -> str | None:
    """A text for numbers, strings and the like, and for tuples of them; None for all else.

    >>> plain((1, True, 1.0, -0.0, "1", b"1", None))
    "(1,True,1.0,-0.0,'1',b'1',None,)"
    >>> plain([1]) is None
    True
    """
    kind = type(value)
    if kind is int:
        return repr(value) if -_LARGE < value < _LARGE else hex(value)
    if kind in _SCALARS:
        return repr(value)
    if kind is tuple:
        texts = [plain(item) for item in value]
        return None if None in texts else f"({''.join(f'{text},' for text in texts)})"
    if kind is frozenset:
        members = [plain(item) for item in value]
        return None if None in members else f"frozenset({sorted(map(str, members))})"
    return None
