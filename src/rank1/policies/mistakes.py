"""Find beginners' mistakes in a policy before a run, and report each in one line."""

from __future__ import annotations

import ast
import functools
import inspect
import random
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from rank1.compiled.explain import source_tree
from rank1.errors import PolicyError, Rank1Error
from rank1.policies.base import Known, Policy

__all__ = ["call", "check_state", "mistake", "start"]

METHODS = ("choose", "issued", "update", "expects", "forget", "best")
INHERIT = "also derive the state from `rank1.policies.base.Simple`, or write the method"
#: How to fix a missing member.
HINTS = {
    "limits": "give it this field, which `start` fills with known.limits",
    "issued": INHERIT,
    "expects": INHERIT,
    "forget": INHERIT,
    "_asdict": "make it a NamedTuple of arrays",
}
OWN_RNG = "draw from `rng`; otherwise the same seed gives different runs"


def mistake(
    policy: Policy, method: str, where: str, cause: str, hint: str | None = None
) -> PolicyError:
    """The error, with policy, method, file and line, and cause."""
    sentence = f"{policy.name}: {method} ({where}): {cause}"
    return PolicyError(sentence, hint, policy=policy.name, method=method, where=where)


def check_state(policy: Policy, state: Any) -> None:
    """Reject a state that lacks a member, or that draws random numbers from anything but `rng`.

    >>> import rank1
    >>> check_state(rank1.UCB1(), rank1.UCB1().start(rank1.Known(K=2, L=2, n=100)))
    """
    cls = type(state)
    for member in ("_asdict", "limits", *METHODS):
        if not hasattr(state, member):
            cause = f"the state {cls.__name__} has no {member}"
            raise mistake(policy, member, _where(cls), cause, HINTS.get(member))
    for name in (*METHODS, "load"):
        line = _draws_elsewhere(getattr(cls, name, None))
        if line is not None:
            where = _where(getattr(cls, name), line)
            raise mistake(policy, name, where, "it draws from its own generator", OWN_RNG)


def start(policy: Policy, known: Known) -> Any:
    """The policy's state before the first step; any exception of `start` becomes one line."""
    try:
        return policy.start(known)
    except Rank1Error:
        raise
    except Exception as error:
        raise _raised(policy, "start", error) from error


def call(policy: Policy, state: Any, method: str, *arguments: Any) -> Any:
    """Call a method as written, and turn any exception into one line.

    Drawing from the global generators of `np.random` and `random` is an error, too: they aren't
    seeded.
    """
    before = _global_generators()
    try:
        result = getattr(state, method)(*arguments)
    except Exception as error:
        raise _raised(policy, method, error) from error
    where = _where(getattr(type(state), method))
    if _global_generators() != before:
        raise mistake(policy, method, where, "it draws from its own generator", OWN_RNG)
    if method == "choose" and not (
        isinstance(result, tuple) and len(result) == 2 and all(map(_is_whole, result))
    ):
        cause = f"it must return an arm and a tag, both whole numbers, got {result!r}"
        raise mistake(policy, method, where, cause)
    if method == "best" and not _is_whole(result):
        raise mistake(policy, method, where, f"it must return an arm, got {result!r}")
    return result


def _raised(policy: Policy, method: str, error: Exception) -> PolicyError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__] or frames
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    return mistake(policy, method, where, f"{type(error).__name__}: {error}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _global_generators() -> Any:
    keys = np.random.get_state()  # noqa: NPY002
    return keys[1].tobytes(), keys[2], random.getstate()  # type: ignore[index]


def _where(thing: Any, line: int | None = None) -> str:
    """File and line of a class or a function."""
    try:
        file = Path(inspect.getsourcefile(thing) or "?").name
        return f"{file}:{inspect.getsourcelines(thing)[1] if line is None else line}"
    except (OSError, TypeError):
        return f"in {thing.__module__}"


@functools.cache
def _draws_elsewhere(function: Any) -> int | None:
    """The line where a function uses `np.random` or `random`; None if it doesn't."""
    tree: Any = source_tree(function)
    for node in (node for part in tree.body for each in part.body for node in ast.walk(each)):
        if isinstance(node, ast.Attribute):
            owner = node.value
            of_numpy = (
                isinstance(owner, ast.Attribute)
                and owner.attr == "random"
                and isinstance(owner.value, ast.Name)
                and function.__globals__.get(owner.value.id) is np
            )
            known = isinstance(owner, ast.Name) and function.__globals__.get(owner.id)
            if of_numpy or known in (random, np.random):
                return node.lineno
    return None
