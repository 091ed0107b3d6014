"""Kernels: functions compiled for a state and a law, when it pays, and cached on disk.

Numba's own cache only checks the file of the outermost function. Here a kernel is stored under a
digest of all source files that it depends on, so machine code is never older than its source:

    <cache directory>/kernels/<function>-<State>-<Law>/<digest>/

Simulations call `kernel` and wait for it. A single ask, tell or look at a study calls `ready`,
which returns the Python function until compiled code is available. Numba is imported by `kernel`,
and by the thread that `in_background` starts.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import queue
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rank1.compiled.digest import digest
from rank1.compiled.dispatch import OPTIONS
from rank1.compiled.explain import explain_raised
from rank1.errors import FileError, NoDigest, Rank1Error
from rank1.paths import cache_directory

__all__ = ["in_background", "kernel", "kernel_for", "missing", "ready"]

#: Compiling a fold takes about as long as this many events in Python, ...
LONG = 10_000
#: ... and loading it from disk, including Numba, as long as this many.
LONG_FROM_DISK = 1_500
#: A folder that wasn't used for this many seconds is removed when a new version is compiled.
WEEK = 7 * 24 * 3600

_kernels: dict[Any, Any] = {}
#: The amount of work done in Python, by kernel.
_spent: dict[Any, int] = {}
_SIMPLE = frozenset({np.ndarray, int, float})
_log = logging.getLogger(__name__)


def kernel(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function`, compiled for states and laws like these, from the disk cache if possible.

    A kernel for a class of `__main__` or of a notebook, or for one defined inside a function, is
    recompiled in each process, because such a class is different each time.

    With NUMBA_DISABLE_JIT=1 in the environment this returns the function itself.
    """
    key = function, tuple(map(_kind, arguments))
    if key not in _kernels:
        # If several threads get here, one wins; the other kernels were never called nor compiled.
        _kernels.setdefault(key, _new_kernel(function, arguments))
    return _kernels[key]


@functools.cache
def as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` in Python, without warnings for division by 0 and overflow, as when compiled.

    What a policy's own code raises becomes a PolicyError.
    """
    quiet = np.errstate(all="ignore")(function)  # faster than a block in each call

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return quiet(*arguments, **named)
        except Rank1Error:
            raise
        except Exception as error:
            if (told := explain_raised(error)) is None:
                raise
            raise told from error

    return call


def ready(function: Callable[..., Any], *arguments: Any, work: int = 1) -> Any:
    """The compiled kernel if this process already has it, otherwise the Python function.

    Neither imports Numba nor waits for a compiler. After `in_background`, the first call of the
    returned function also requests the kernel, and a later `ready` returns it. When the `work` of
    a function has added up to enough, this starts the background thread itself.
    """
    key = function, tuple(map(_kind, arguments))
    found = _kernels.get(key)
    if found is not None and getattr(found, "overloads", True):
        return found
    if _Background.current is None:
        spent = _spent[key] = _spent.get(key, 0) + work
        if spent >= LONG:
            in_background()
    background = _Background.current
    plain = as_written(function)
    if background is None or key in background.asked:
        return plain

    def first(*given: Any, **named: Any) -> Any:
        if not named:
            background.ask(key, function, arguments, given)
        return plain(*given, **named)

    return first


def kernel_for(function: Callable[..., Any], *arguments: Any, work: int) -> Any:
    """The kernel if the work is long enough to pay for it, otherwise what is `ready`.

    Parameters
    ----------
    function, arguments
        As for `kernel`.
    work
        The number of steps or events in the call. In Python an event takes about a millisecond;
        compiling takes seconds, and loading from disk about one.
    """
    if work >= LONG or (work >= LONG_FROM_DISK and _is_on_disk(function, arguments)):
        return kernel(function, *arguments)
    return ready(function, *arguments, work=work)


def missing(function: Callable[..., Any], *arguments: Any) -> Path | None:
    """The folder in which another process could store this kernel, if it isn't there yet."""
    key = function, tuple(map(_kind, arguments))
    folder = None if _disabled() or key in _kernels else _folder(function, arguments)
    return folder if folder is not None and not _is_stored(folder) else None


def _kind(argument: Any) -> Any:
    """What code is specialised for: a class, and those of nested tuples and functions."""
    if not isinstance(argument, tuple):
        return argument if callable(argument) else type(argument)
    if _SIMPLE.issuperset(map(type, argument)):  # nearly always, and `ask` must be fast
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
    if _disabled():
        return as_written(function)
    from rank1.compiled.machine import dispatcher

    folder = _folder(function, arguments)
    if folder is not None:
        _make(folder)
    return dispatcher(function, folder, arguments)


def _disabled() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


# In the background


def in_background() -> None:
    """Start a thread that compiles what `ready` is asked for, in long-lived processes.

    The process doesn't wait for the thread when it ends. Code that can't be compiled runs as
    Python, and the log says why.
    """
    if _Background.current is None:
        _Background.current = _Background()


class _Background:
    current: _Background | None = None

    def __init__(self) -> None:
        self.asked: set[Any] = set()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="rank1-compiler", daemon=True)
        self._thread.start()

    def ask(self, key: Any, *what: Any) -> None:
        """Compile a function for the arguments of a call, unless that was requested before."""
        if key not in self.asked:
            self.asked.add(key)
            self._queue.put((key, *what))

    def end(self) -> None:
        """Compile everything requested so far, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            self._compile(*job)

    def _compile(self, key: Any, function: Any, arguments: Any, given: Any) -> None:
        try:
            with _compiling:
                compiled = _new_kernel(function, arguments)
                if hasattr(compiled, "compile_for"):
                    compiled.compile_for(*given)
            _kernels[key] = compiled
        except Exception:
            _log.warning("%s is not compiled and runs as Python", function, exc_info=True)


#: Held while the thread imports Numba and compiles: a fork waits until it is free, because the
#: child would inherit Numba's own locks as taken and could never compile.
_compiling = threading.Lock()


def _after_fork() -> None:
    """The child has no such thread: start one."""
    _compiling.release()
    if _Background.current is not None:
        _Background.current = _Background()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_compiling.acquire,
        after_in_parent=_compiling.release,
        after_in_child=_after_fork,
    )


# The folders


def _folder(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Path | None:
    """Where a kernel is cached; None if it can't be."""
    kinds = [part for argument in arguments for part in _flat(_kind(argument))]
    if any(map(_is_of_this_process, (function, *kinds))):
        return None
    names: list[Any] = [function, *map(type, arguments)]
    name = re.sub(r"[^\w-]", "_", "-".join(one.__name__ for one in names))[:100]
    try:
        return cache_directory() / "kernels" / name / digest(_setting(), function, *kinds)[:24]
    except NoDigest as reason:
        _warn(str(reason))
    except FileError:  # no home directory: compile in each process
        pass
    return None


def _is_of_this_process(kind: Any) -> bool:
    home, name = getattr(kind, "__module__", None), getattr(kind, "__qualname__", "")
    return home == "__main__" or "<locals>" in name


@functools.cache
def _versions() -> tuple[str, ...]:
    import importlib.metadata
    import platform

    return platform.python_version(), importlib.metadata.version("numba"), np.__version__


def _setting() -> tuple[Any, ...]:
    """What machine code depends on besides the source, without importing Numba."""
    told = (os.environ.get(f"NUMBA_{name}") for name in ("BOUNDSCHECK", "OPT", "DEBUGINFO"))
    return (*_versions(), sorted(OPTIONS.items()), *told)


@functools.cache
def _warn(reason: str) -> None:
    warnings.warn(
        f"can't cache compiled code for the next process: {reason}", RuntimeWarning, stacklevel=5
    )


def _is_on_disk(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    key = function, tuple(map(_kind, arguments))
    folder = None if key in _kernels else _folder(function, arguments)
    return folder is not None and _is_stored(folder)


def _is_stored(folder: Path) -> bool:
    return (folder / "kernel.nbi").is_file()


def _make(folder: Path) -> None:
    """Create a kernel's folder; if it is new, remove others that are no longer used."""
    with contextlib.suppress(OSError):  # not writable: reading still works
        if not folder.is_dir():
            folder.mkdir(parents=True)
            _prune(folder.parent)
            _prune(cache_directory())  # the former location of kernels
        os.utime(folder)


def _prune(parent: Path) -> None:
    """Remove folders of kernels that were last used a week ago or earlier."""
    import shutil

    for folder in parent.iterdir():
        if re.fullmatch("[0-9a-f]{24}", folder.name):
            with contextlib.suppress(OSError):  # another process was faster
                if time.time() - folder.stat().st_mtime > WEEK:
                    shutil.rmtree(folder, ignore_errors=True)
