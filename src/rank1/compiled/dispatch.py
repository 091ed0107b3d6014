"""Functions that Numba may compile, and methods chosen by type.

A policy's state and a problem's law are NamedTuples of plain arrays. Their methods are ordinary
Python functions; `method` makes a function that, inside compiled code, *is* the method of whatever
NamedTuple it is called with. So a loop written once is specialised for each pair of state and law.

Every decorator here returns a plain Python function and only notes what Numba has to know about it.
Numba is imported, and gets the notes, when the first kernel is compiled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["HELPER", "OPTIONS", "apart", "inlined", "jit", "method", "noted", "overload_of"]

F = TypeVar("F", bound=Callable[..., Any])

# Without Numba's reference counts (which would take 20 times as long as the step itself) compiled
# code can't allocate: a policy that did so in every step would not compile.
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False}

# What Numba itself calls is compiled with the options of our functions: the fewer sets the better.
HELPER: Any = {**OPTIONS, "no_cfunc_wrapper": True}
INLINED: Any = {**HELPER, "forceinline": True}
APART: Any = {**HELPER, "forceinline": False}

#: What Numba doesn't know yet: a function, the chooser of its implementation, and the options.
#: Adding and taking are atomic, so a module may be imported while another thread compiles.
noted: deque[tuple[Callable[..., Any], Callable[..., Any], Any]] = deque()


def jit(function: F) -> F:
    """Let compiled code call a function, which is cached as part of its caller."""
    noted.append((function, lambda *args, **kwargs: function, HELPER))
    return function


def apart(function: F) -> F:
    """Let compiled code call a function that it needs rarely, and never inline it.

    Numba would also inline all that inlined functions call.
    """
    noted.append((function, lambda *args, **kwargs: function, APART))
    return function


def inlined(function: F) -> F:
    """Let compiled code inline a function that is called in every step.

    Passing a state of many arrays to a function that isn't inlined costs more than the step itself.
    """
    noted.append((function, lambda *args, **kwargs: function, INLINED))
    return function


def overload_of(function: Callable[..., Any], *, inline: bool = False) -> Callable[[F], F]:
    """Choose what compiled code runs instead of `function`, like Numba's `overload`.

    The decorated function gets the types of the arguments and returns an implementation, or None
    if there is none for these types.
    """

    def note(chooser: F) -> F:
        noted.append((function, chooser, INLINED if inline else HELPER))
        return chooser

    return note


def method(name: str, *, inline: bool = True) -> Callable[..., Any]:
    """A function that calls method `name` of its first argument, also in compiled code."""

    def call(self: Any, *arguments: Any) -> Any:
        return getattr(self, name)(*arguments)

    @overload_of(call, inline=inline)
    def implementation(self: Any, *arguments: Any) -> Any:
        # Returning None tells Numba that there is no such method for this type.
        return getattr(getattr(self, "instance_class", None), name, None)

    call.__name__ = call.__qualname__ = name
    return call
