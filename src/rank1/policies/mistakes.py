"""Find beginners' mistakes in a policy before a run, and report each in one line."""

from __future__ import annotations

import ast
import functools
import inspect
import random
from pathlib import Path
from typing import Any

import numpy as np

from rank1.compiled.explain import STATE, arguments_of, own_place, source_tree
from rank1.errors import PolicyError, Rank1Error
from rank1.policies.base import Known, Policy

__all__ = ["best_arm", "call", "check_state", "mistake", "start"]

METHODS = {
    **{name: STATE[name] for name in ("choose", "issued", "update", "expects")},
    "forget": ("arm", "tag"), "best": (),
}  # fmt: skip
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
    """Reject a state that lacks a member, or that isn't made of arrays.

    Its methods must take their arguments, and draw random numbers from nothing but `rng`.

    >>> import rank1
    >>> check_state(rank1.UCB1(), rank1.UCB1().start(rank1.Known(K=2, L=2, n=100)))
    """
    cls = type(state)
    for member in ("_asdict", "limits", *METHODS):
        if not hasattr(state, member):
            cause = f"the state {cls.__name__} has no {member}"
            raise mistake(policy, member, _where(cls), cause, HINTS.get(member))
    for name, array in state._asdict().items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufbV":
            kind = getattr(array, "dtype", type(array).__name__)
            cause = f"the state's {name} must be an array of numbers or records, got {kind}"
            raise mistake(policy, "start", _where(type(policy).start), cause)
    for name, arguments in METHODS.items():
        if wanted := arguments_of(getattr(cls, name), arguments):
            raise mistake(policy, name, _where(getattr(cls, name)), f"it {wanted}")
    for name in (*METHODS, "load"):
        line = _draws_elsewhere(getattr(cls, name, None))
        if line is not None:
            where = _where(getattr(cls, name), line)
            raise mistake(policy, name, where, "it draws from its own generator", OWN_RNG)


def start(policy: Policy, known: Known) -> Any:
    """The policy's state before the first step, checked; any exception becomes one line."""
    try:
        state = policy.start(known)
    except Rank1Error:
        raise
    except Exception as error:
        raise _raised(policy, "start", policy.start, error) from error
    check_state(policy, state)
    return state


def best_arm(policy: Policy, state: Any) -> int:
    """The arm that a state recommends; any exception becomes one line."""
    method = type(state).best
    try:
        result = method(state)
    except Exception as error:
        raise _raised(policy, "best", method, error) from error
    if not _is_whole(result):
        cause = f"it must return an arm, a whole number, got {result!r}"
        raise mistake(policy, "best", _where(method), cause)
    return int(result)


def call(policy: Policy, state: Any, method: str, *arguments: Any) -> Any:
    """Call a method as written, and turn any exception into one line.

    Drawing from the global generators of `np.random` and `random` is an error, too: they aren't
    seeded.
    """
    before = _global_generators()
    try:
        result = getattr(state, method)(*arguments)
    except Exception as error:
        raise _raised(policy, method, getattr(type(state), method), error) from error
    where = _where(getattr(type(state), method))
    if _global_generators() != before:
        raise mistake(policy, method, where, "it draws from its own generator", OWN_RNG)
    if method == "choose" and not (
        isinstance(result, tuple) and len(result) == 2 and all(map(_is_whole, result))
    ):
        cause = f"it must return an arm and a tag, both whole numbers, got {result!r}"
        raise mistake(policy, method, where, cause)
    return result


def _raised(policy: Policy, method: str, function: Any, error: Exception) -> PolicyError:
    place = own_place(error)
    where = f"{Path(place[0].co_filename).name}:{place[1]}" if place else _where(function)
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
