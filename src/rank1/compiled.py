"""Compiling with Numba: methods chosen by type, and a disk cache that is never stale.

A policy's state and a problem's law are NamedTuples of plain arrays. Their methods are ordinary
Python functions; `method` makes a function that, inside compiled code, *is* the method of whatever
NamedTuple it is called with. A loop written once is so specialised for each pair of state and law.

Numba's cache looks only at the file of the outermost function. `kernel` therefore keys the cache
directory by a digest of all the sources that can be reached: this package's, and those of the
modules in which foreign states and laws are defined.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
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
    """A digest of this package's sources as they were when they were imported."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


package_digest()  # now, not when something compiles: the sources may have changed by then


def _is_watched(module: str) -> bool:
    """Whether a module is in the package's digest, or never changes while it is installed."""
    return module.split(".")[0] in ("rank1", "numpy", "numba", "math", "builtins")


def _foreign_modules(cls: type) -> set[str]:
    """The modules of a class and of what its methods call by name."""
    modules = {cls.__module__}
    for function in vars(cls).values():
        if inspect.isfunction(function):
            used = (function.__globals__.get(name) for name in function.__code__.co_names)
            modules |= {getattr(value, "__module__", None) or "builtins" for value in used}
    return {module for module in modules if not _is_watched(module)}


@functools.cache
def _digest_of(cls: type) -> bytes | None:
    """A digest of the sources of a class, taken once; None if they can't be watched."""
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return None
    digest = hashlib.sha256(f"{cls.__module__}.{cls.__qualname__}".encode())
    # The code in memory, too: the file may have been edited since it was imported.
    for function in vars(cls).values():
        if inspect.isfunction(function):
            code = function.__code__
            plain = [c for c in code.co_consts if isinstance(c, int | float | str | tuple | None)]
            digest.update(code.co_code + repr((code.co_names, plain)).encode())
    for module in sorted(_foreign_modules(cls)):
        try:
            digest.update(Path(inspect.getfile(sys.modules[module])).read_bytes())
        except (TypeError, OSError, KeyError):
            return None
    return digest.digest()


class _Cache(FunctionCache):
    """A file that is damaged, or a disk that is full, means compiling anew and nothing else."""

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return super().load_overload(*arguments)  # type: ignore[no-untyped-call]
        except Exception:
            return None

    def save_overload(self, *arguments: Any) -> None:
        with contextlib.suppress(Exception):
            super().save_overload(*arguments)  # type: ignore[no-untyped-call]


_kernels: dict[Any, Any] = {}


def kernel(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function`, compiled for states and laws like those given, from the disk where possible.

    A class defined in a notebook or inside a function has no source that could be watched; a
    kernel over one is compiled anew in each process.
    """
    key = function, tuple(_classes(arguments))
    if key not in _kernels:
        with _LOCK:  # where the cache lies is a global setting of Numba's
            if key not in _kernels:
                _kernels[key] = _new_kernel(*key)
    return _kernels[key]


def _classes(values: Iterable[Any]) -> Iterator[type]:
    """The classes of states and laws, also of those that others are made of."""
    for value in values:
        yield type(value)
        if isinstance(value, tuple):
            yield from _classes(one for one in value if isinstance(one, tuple))


def _new_kernel(function: Callable[..., Any], classes: tuple[type, ...]) -> Any:
    dispatcher: Any = numba.njit(**_OPTIONS)(function)
    digest = hashlib.sha256(package_digest())
    for cls in classes:
        part = _digest_of(cls)
        if part is None:
            return dispatcher
        digest.update(part)
    previous = _CONFIG.CACHE_DIR
    try:
        folder = cache_directory() / digest.hexdigest()[:24]
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):  # Numba would take a place that isn't keyed by digest
            return dispatcher
        _CONFIG.CACHE_DIR = str(folder)
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):  # no home, no place to write to: compile in each process
        pass
    finally:
        _CONFIG.CACHE_DIR = previous
    return dispatcher
