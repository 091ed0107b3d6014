"""How functions are compiled, and methods chosen by type.

A policy's state and a problem's law are NamedTuples of plain arrays. Their methods are ordinary
Python functions; `method` makes a function that, inside compiled code, *is* the method of whatever
NamedTuple it is called with. A loop written once is so specialised for each pair of state and law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import overload, register_jitable

__all__ = ["HELPER", "OPTIONS", "entry", "inlined", "jit", "method"]

# Without Numba's reference counts (which would take 20 times as long as the step itself) compiled
# code can't allocate: a policy that did so in every step would not compile.
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False}

# Functions are compiled again for each set of options of their callers: the fewer sets the better.
HELPER: Any = {**OPTIONS, "no_cfunc_wrapper": True}

#: For helper functions that compiled code calls; they are cached as part of their caller. Called
#: from Python they are plain Python: the wrappers it takes to be more are a third of compiling.
jit = register_jitable(**HELPER)
#: The same for what happens in every step: handing a state of many arrays to a function that isn't
#: inlined costs more than the step itself.
inlined = register_jitable(**HELPER, forceinline=True)
#: For functions that Python calls, too, and that are compiled there as well.
entry = numba.njit(forceinline=True, **OPTIONS)


def method(name: str, *, inline: bool = True) -> Callable[..., Any]:
    """A function that calls method `name` of its first argument, also in compiled code."""

    def call(self: Any, *arguments: Any) -> Any:
        return getattr(self, name)(*arguments)

    options: Any = {**HELPER, "forceinline": True} if inline else HELPER

    @overload(call, strict=False, jit_options=options)
    def implementation(self: Any, *arguments: Any) -> Any:
        # Returning None tells Numba that there is no such method for this type.
        return getattr(getattr(self, "instance_class", None), name, None)

    call.__name__ = call.__qualname__ = name
    # Which code runs is decided by the argument's class: that is where a digest finds it.
    call.__dict__["__digest__"] = lambda: ("method", name, inline)
    return call
