"""Compiling with Numba: methods chosen by type, and a disk cache that is never stale.

A policy's state and a problem's law are NamedTuples of plain arrays. Their methods are ordinary
Python functions; `method` makes a function that, inside compiled code, *is* the method of whatever
NamedTuple it is called with. A loop written once is so specialised for each pair of state and law.

Numba's cache looks only at the file of the outermost function. `kernel` therefore keys the cache
directory by a digest of all the sources that can be reached: this package's, and those of the
modules in which foreign states and laws are defined.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.extending import overload

__all__ = ["cache_directory", "inlined", "jit", "kernel", "method", "package_digest"]

# Without Numba's reference counts (which would take 20 times as long as the step itself) compiled
# code can't allocate: a policy that did so in every step would not compile.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False}
_CONFIG: Any = numba.config
#: Numba reads the cache's place from one global: threads must not set it under each other.
_LOCK = threading.Lock()

#: For helper functions that compiled code calls; they are cached as part of their caller.
jit = numba.njit(**_OPTIONS)
#: The same for what happens in every step: handing a state of many arrays to a function that isn't
#: inlined costs more than the step itself.
inlined = numba.njit(forceinline=True, **_OPTIONS)


def method(name: str, *, inline: bool = True) -> Callable[..., Any]:
    """A function that calls method `name` of its first argument, also in compiled code."""

    def call(self: Any, *arguments: Any) -> Any:
        return getattr(self, name)(*arguments)

    @overload(call, strict=False, jit_options={"forceinline": inline})
    def implementation(self: Any, *arguments: Any) -> Any:
        # Returning None tells Numba that there is no such method for this type.
        return getattr(getattr(self, "instance_class", None), name, None)

    call.__name__ = call.__qualname__ = name
    return call


def cache_directory() -> Path:
    """Where compiled code is kept: RANK1_CACHE_DIR, or the user's cache directory."""
    if chosen := os.environ.get("RANK1_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rank1"


@functools.cache
def package_digest() -> bytes:
    """A digest of this package's sources."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _digest_with(classes: tuple[type, ...]) -> str | None:
    """A digest of every source a kernel over these classes can contain; None if one has no file."""
    digest = hashlib.sha256(package_digest())
    for cls in classes:
        if cls.__module__.split(".")[0] != "rank1":
            try:
                digest.update(Path(inspect.getfile(cls)).read_bytes())
            except (TypeError, OSError):
                return None
            if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
                return None
    return digest.hexdigest()[:24]


@functools.cache
def _kernel(function: Callable[..., Any], digest: str | None) -> Any:
    if digest is None:
        return numba.njit(**_OPTIONS)(function)
    with _LOCK:
        previous = _CONFIG.CACHE_DIR
        _CONFIG.CACHE_DIR = str(cache_directory() / digest)
        try:
            return numba.njit(cache=True, **_OPTIONS)(function)
        except RuntimeError:  # no place to write to: compile anew in each process
            return numba.njit(**_OPTIONS)(function)
        finally:
            _CONFIG.CACHE_DIR = previous


def kernel(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function`, compiled for states and laws like those given, from the disk where possible.

    A class defined in a notebook or inside a function has no source that could be watched; a
    kernel over one is compiled anew in each process.
    """
    return _kernel(function, _digest_with(tuple(type(argument) for argument in arguments)))
