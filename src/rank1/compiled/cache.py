"""Kernels: functions compiled for a state and a law, from the disk where possible.

Numba's own cache looks at the file of the outermost function only. Here a kernel lies under a
digest of all the code and values that it can reach, so machine code is never older than the source
it was made of:

    <cache directory>/kernels/<function>-<State>-<Law>/<digest>/
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from rank1.compiled.digest import digest
from rank1.compiled.dispatch import OPTIONS
from rank1.errors import FileError, NoDigest
from rank1.paths import cache_directory

__all__ = ["kernel"]

#: Folders that nobody has used for so many seconds make room when the next version is compiled.
WEEK = 7 * 24 * 3600

_kernels: dict[Any, Any] = {}
_config: Any = numba.config
_SIMPLE = frozenset({np.ndarray, int, float})


def kernel(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function`, compiled for states and laws like those given, from the disk where possible.

    Classes of `__main__`, of a notebook and those defined inside a function are not the same in
    another process even if nothing has changed: over one of them a kernel is compiled anew in each
    process. So it is, with a warning, where there is no telling what the code depends on.
    """
    key = function, tuple(map(_kind, arguments))
    if key not in _kernels:
        # Of several threads, one wins; what the others made was never called, nor compiled.
        _kernels.setdefault(key, _new_kernel(function, arguments))
    return _kernels[key]


# What it makes of a function is in the function's own digest.
kernel.__dict__["__digest__"] = lambda: "kernel"


def _kind(argument: Any) -> Any:
    """What code is compiled for: a class, and those of tuples within and functions."""
    if not isinstance(argument, tuple):
        return argument if callable(argument) else type(argument)
    if _SIMPLE.issuperset(map(type, argument)):  # nearly always, and `ask` shouldn't take long
        return type(argument)
    inner = [_kind(part) for part in argument if isinstance(part, tuple) or callable(part)]
    return (type(argument), *inner) if inner else type(argument)


def _flat(kind: Any) -> Iterator[Any]:
    if isinstance(kind, tuple):
        for part in kind:
            yield from _flat(part)
    else:
        yield kind


def _new_kernel(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    dispatcher: Any = numba.njit(**OPTIONS)(function)
    kinds = [part for argument in arguments for part in _flat(_kind(argument))]
    if _config.DISABLE_JIT or any(map(_is_of_this_process, kinds)):
        return dispatcher
    try:
        names: list[Any] = [function, *map(type, arguments)]
        name = re.sub(r"[^\w-]", "_", "-".join(one.__name__ for one in names))[:100]
        folder = _folder(name, digest(*_setting(), function, *kinds))
    except NoDigest as reason:
        _warn(str(reason))
    except FileError:  # no home: compile in each process
        pass
    else:
        dispatcher._cache = _Cache(function, folder)
    return dispatcher


def _is_of_this_process(kind: Any) -> bool:
    return isinstance(kind, type) and (
        kind.__module__ == "__main__" or "<locals>" in kind.__qualname__
    )


def _setting() -> tuple[Any, ...]:
    """What machine code depends on beside the source."""
    versions = platform.python_version(), numba.__version__, np.__version__
    return (*versions, sorted(OPTIONS.items()), _config.BOUNDSCHECK, str(_config.OPT))


@functools.cache
def _warn(reason: str) -> None:
    warnings.warn(
        f"compiled code can't be kept for the next process: {reason}", RuntimeWarning, stacklevel=4
    )


# The folders


def _folder(name: str, digest: str) -> Path:
    """A kernel's folder; a new one takes the place of others that aren't used any more."""
    cache = cache_directory()
    folder = cache / "kernels" / name / digest[:24]
    with contextlib.suppress(OSError):  # nowhere to write: reading may go on
        if not folder.is_dir():
            folder.mkdir(parents=True)
            _prune(folder.parent)
            _prune(cache)  # where kernels used to lie
        os.utime(folder)
    return folder


def _prune(parent: Path) -> None:
    """Remove folders of kernels that were last used a week ago or earlier."""
    for folder in parent.iterdir():
        if re.fullmatch("[0-9a-f]{24}", folder.name):
            with contextlib.suppress(OSError):  # somebody else was faster
                if time.time() - folder.stat().st_mtime > WEEK:
                    shutil.rmtree(folder, ignore_errors=True)


# Numba's cache in a folder of ours


class _Locator(_CacheLocator):
    """Where a kernel lies. The folder's name says what source it belongs to."""

    def __init__(self, folder: Path, file: str) -> None:
        self._folder, self._py_file = folder, file

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""


class _Implementation(CompileResultCacheImpl):
    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        code = function.__code__
        self._locator = _Locator(folder, code.co_filename)
        self._lineno = code.co_firstlineno
        self._filename_base = "kernel"


class _Cache(FunctionCache):
    """A file that is damaged, or a disk that is full, means compiling anew and nothing else."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._impl_class: Any = functools.partial(_Implementation, folder)
        super().__init__(function)  # type: ignore[no-untyped-call]

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return super().load_overload(*arguments)  # type: ignore[no-untyped-call]
        except Exception:
            return None

    def save_overload(self, *arguments: Any) -> None:
        with contextlib.suppress(Exception):
            super().save_overload(*arguments)  # type: ignore[no-untyped-call]
