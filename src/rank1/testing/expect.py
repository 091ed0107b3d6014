"""Run checks one after another, and say which one failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rank1.errors import PolicyError

__all__ = ["expect", "run_checks"]


def expect(condition: Any, message: str) -> None:
    """Raise an AssertionError with this message unless the condition holds, even with `-O`."""
    if not condition:
        raise AssertionError(message)


def run_checks(name: str, checks: Iterable[Callable[..., None]], *arguments: Any) -> None:
    """Run all checks; anything that one raises becomes an AssertionError that names it."""
    for check in checks:
        try:
            check(*arguments)
        except Exception as error:
            promise = (check.__doc__ or check.__name__).splitlines()[0]
            plain = isinstance(error, AssertionError | PolicyError)
            what = str(error) if plain else repr(error)
            raise AssertionError(f"{name}: {promise} {what}") from error
