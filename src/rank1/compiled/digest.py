"""What something depends on: a digest of all the code and all the values it can reach.

All is taken from memory, since a file may have been edited after it was imported; `parts` says
what a thing is made of. What came with a version is not looked into (see `pins`).

What can't be seen: names that are put together when the code runs (`getattr(module, text)`,
`eval`), and what somebody registered somewhere (Numba's `overload`).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from rank1.compiled.parts import Named, Parts, Refused, parts_of, title
from rank1.errors import NoDigest

__all__ = ["digest", "walked"]


def digest(*things: Any) -> str:
    """A number, in hexadecimal, that changes with anything that the things depend on.

    It is the same in every process of one version of Python. Line numbers, comments, docstrings
    and the order of dicts and sets don't count.

    Raises
    ------
    NoDigest
        Where there is no telling what something is: a lock, an open file, a generator.

    Examples
    --------
    >>> def area(radius):
    ...     return PI * radius**2
    >>> PI = 3
    >>> before = digest(area)
    >>> PI = 3.14
    >>> digest(area) == before
    False
    """
    token, _ = _Walk().run(_roots(things))
    return token.hex()


def walked(*things: Any) -> list[str]:
    """The functions and classes whose code is in a digest, to see what it depends on.

    >>> import rank1
    >>> [name for name in walked(rank1.spike) if name.endswith("integer")]
    ['rank1.checks.integer']
    """
    walk = _Walk()
    walk.run(_roots(things))
    names = set()
    for thing in walk.seen:
        if isinstance(thing, FunctionType):
            names.add(f"{thing.__globals__.get('__name__')}.{thing.__code__.co_qualname}")
        elif isinstance(thing, type):
            names.add(f"{thing.__module__}.{thing.__qualname__}")
        elif isinstance(thing, Named):
            names.add(thing.module.__name__)
    return sorted(names)


def _roots(things: tuple[Any, ...]) -> Parts:
    return Parts("digest 1", [(title(thing), thing) for thing in things])


class _Frame:
    """A thing that is being digested."""

    def __init__(self, key: Any, label: str, parts: Parts, depth: int, number: int) -> None:
        self.key, self.label, self.depth, self.number = key, label, depth, number
        self.hash = hashlib.sha256(parts.header.encode())
        self.children: Iterator[tuple[str, Any]] = iter(parts.children)
        #: The least depth of all that is referred to.
        self.low = depth

    def add(self, label: str, token: bytes) -> None:
        """Take in the token of a child."""
        self.hash.update(f"{len(label)} {len(token)} {label} ".encode() + token)


class _Walk:
    """Depth first, with a stack of its own: code is nested more deeply than Python may recurse.

    A thing may be part of itself; inside, it is then known by its distance. What refers to nothing
    around it has one token wherever it is met again: a copy of a list is as good as the list.
    """

    def __init__(self, around: dict[Any, int] | None = None, trail: tuple[str, ...] = ()) -> None:
        #: The depths of things that are being digested, by their keys.
        self.open = dict(around or {})
        #: Things that were digested: a token, or their number if that depends on what is around.
        self.closed: dict[Any, tuple[bytes | int, float]] = {}
        #: They are kept, so that no id is given to another thing.
        self.seen: list[Any] = []
        self.trail = trail
        self.stack: list[_Frame] = []

    def run(self, root: Parts) -> tuple[bytes, int]:
        """The digest, and the least depth of all that it refers to."""
        depth = len(self.open)
        self.stack = [_Frame(None, "", root, depth, 0)]
        while True:
            frame = self.stack[-1]
            for label, child in frame.children:
                token = self._token(frame, label, child)
                if token is None:  # first the child, which lies on the stack now
                    break
                frame.add(label, token)
            else:
                self.stack.pop()
                token = frame.hash.digest()
                if not self.stack:
                    return token, frame.low
                self._close(frame.key, token, frame.low, frame.depth, frame.number)
                self.stack[-1].low = min(self.stack[-1].low, frame.low)
                self.stack[-1].add(frame.label, token)

    def _token(self, frame: _Frame, label: str, child: Any) -> bytes | None:
        """A child's token, if it can be had at once."""
        key = (id(child.module), child.names) if isinstance(child, Named) else id(child)
        if key in self.open:
            frame.low = min(frame.low, self.open[key])
            return b"up %d" % (frame.depth - self.open[key])
        if key in self.closed:
            token, low = self.closed[key]
            frame.low = int(min(frame.low, low))
            return token if isinstance(token, bytes) else b"again %d" % (frame.number - token)
        try:
            parts = parts_of(child)
        except Exception as error:  # somebody's object may do anything when it is looked at
            trail = [*self.trail, *(one.label for one in self.stack), label, title(child)]
            why = "" if isinstance(error, Refused) else f" ({type(error).__name__}: {error})"
            raise NoDigest(_refusal(trail) + why) from error
        if isinstance(parts, str):
            return parts.encode()
        self.seen.append(child)
        self.open[key] = depth = frame.depth + 1
        if parts.ordered:
            self.stack.append(_Frame(key, label, parts, depth, len(self.seen)))
            return None
        token, low = self._unordered(parts, label)
        frame.low = min(frame.low, low)
        self._close(key, token, low, depth, len(self.seen))
        return token

    def _unordered(self, parts: Parts, label: str) -> tuple[bytes, int]:
        """Each child is digested as if it were the only one, so that none comes first."""
        tokens, low = [], len(self.open)
        trail = (*self.trail, *(one.label for one in self.stack), label)
        for child in parts.children:
            walk = _Walk(self.open, trail)
            token, least = walk.run(Parts(parts.header, [child]))
            self.seen += walk.seen
            tokens.append(token)
            low = min(low, least)
        return hashlib.sha256(b"".join(sorted(tokens))).digest(), low

    def _close(self, key: Any, token: bytes, low: int, depth: int, number: int) -> None:
        del self.open[key]
        self.closed[key] = (token, math.inf) if low >= depth else (number, low)


def _refusal(trail: list[str]) -> str:
    """What was met, and how it was reached."""
    *before, what = [step for step in trail if step]
    path = [
        step
        for step, following in itertools.pairwise([*before, what])
        if not following.startswith(step + ".")  # "Mine" before "Mine.start" says nothing
    ]
    return f"no digest can be taken of {what}, reached by {' → '.join([*path, what])}"
