"""The interface to Numba: registering our functions, its cache in our folders, short errors.

Importing this module imports Numba; `kernels` does so when it first compiles.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typing import templates
from numba.extending import overload

from rank1.compiled.dispatch import OPTIONS, noted
from rank1.compiled.explain import explain

__all__ = ["dispatcher"]


def dispatcher(
    function: Callable[..., Any], folder: Path | None, arguments: tuple[Any, ...]
) -> Any:
    """Numba's dispatcher of a function, which compiles it or loads it from a folder when called."""
    made: Any = numba.njit(**OPTIONS)(function)
    if made is function:  # Numba is disabled
        return function
    if folder is not None:
        made._cache = _Cache(function, folder)
    compile_for_args = made._compile_for_args

    def compile_for(*given: Any) -> Any:
        """Compile for arguments of these types, without calling the function."""
        _register()
        try:
            with _quick_helpers():
                return compile_for_args(*given)
        except Exception as error:  # Numba's own, and what it fails to catch
            if not arguments:
                raise
            raise explain(error, *arguments) from None

    # Numba calls the first one when it meets arguments of new types.
    made._compile_for_args = made.compile_for = compile_for
    return made


def _register() -> None:
    """Tell Numba what was noted since the last time, while no other thread compiles."""
    with global_compiler_lock:
        while noted:
            function, chooser, options = noted.popleft()
            more: Any = {"strict": False, "jit_options": dict(options)}
            overload(function, **more)(chooser)


class _Library(JITCodeLibrary):
    """Turn functions that only compiled code calls into machine code with their kernel, not before.

    Numba would optimise each function in full, again everything that it calls, level by level, and
    translate every level: that took half of the time and made the kernel no faster.
    """

    _is_helper = False  # also for what is loaded from the disk

    def _optimize_final_module(self) -> None:
        if any(one.name.startswith(FOR_PYTHON) for one in self._final_module.functions):
            super()._optimize_final_module()  # type: ignore[no-untyped-call]
            return
        self._is_helper = True
        codegen: Any = self._codegen
        passes, builder = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect, slp_vectorize=False, opt=codegen._opt_level,
            cost="cheap",
        )  # fmt: skip
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        if self._is_helper:
            self._finalized = True
        else:
            super()._finalize_final_module()  # type: ignore[no-untyped-call]


def _get_impl(self: Any, args: Any, kws: Any) -> Any:
    """Find or compile a helper, once for all callers with which it computes the same.

    Numba would compile it again for each set of its callers' options, and comparing these took
    long. Whether a helper is inlined, which changes no result, depends on its first caller.
    """
    flags: Any = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
    options = flags and (flags.nrt, flags.error_model, str(flags.fastmath))
    key = self.context, tuple(args), tuple(kws.items()), options
    return self._impl_cache.get(key) or self._build_impl(key, args, kws)


#: The beginning of the name of the function through which Python calls a kernel.
FOR_PYTHON = "_ZN7cpython"


@contextlib.contextmanager
def _quick_helpers() -> Iterator[None]:
    """Use `_Library` and `_get_impl` within the block, while no other thread compiles."""
    with global_compiler_lock:
        codegen: Any = cpu_target.target_context.codegen()
        set_env = codegen.set_env

        def set_env_of_kernel(name: str, env: Any) -> None:
            if codegen._engine.is_symbol_defined(name):
                set_env(name, env)

        codegen._library_class, codegen.set_env = _Library, set_env_of_kernel
        helpers: Any = getattr(templates, "_OverloadFunctionTemplate", _Library)
        get_impl, helpers._get_impl = getattr(helpers, "_get_impl", None), _get_impl
        try:
            yield
        finally:
            helpers._get_impl = get_impl
            del codegen._library_class, codegen.set_env


def _after_fork() -> None:
    """Replace Numba's lock: the thread that held it may not exist in the child."""
    global_compiler_lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# Numba's cache in our own folders


class _Locator(_CacheLocator):
    """The location of a kernel. The folder's name identifies the source."""

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
    """A cache that recompiles if a file is damaged or the disk is full."""

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
