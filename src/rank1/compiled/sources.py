"""The source files that a module depends on: its own, and those of everything it imports.

Imports are read from the code, including those inside functions; nothing is imported for this. The
standard library and installed packages are represented by their name and version. That doesn't
apply to rank1 itself, to modules outside of site-packages, and to packages installed from a folder
or a repository: their code may change while the version stays the same.

It can't see modules that are imported by a computed name.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from pkgutil import iter_modules
from types import CodeType
from typing import Any, ClassVar

from rank1.errors import NoDigest

__all__ = ["closure", "source_digest", "version_of"]

_IMPORT = dis.opmap["IMPORT_NAME"]

#: By module: a digest of its file, or the version of its package; and the modules it imports.
#: Valid as long as none of them is imported again.
_sources: dict[str, tuple[str, set[str]]] = {}


class _Imports:
    """Records when modules are imported, as the first of Python's finders; it finds nothing.

    If a file was edited after its module was imported, it doesn't show what the module does.
    """

    began = time.time_ns()
    times: ClassVar[dict[str, int]] = {}

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> None:
        cls.times[name] = time.time_ns()
        if name in _sources:
            _sources.clear()
            source_digest.cache_clear()


sys.meta_path.insert(0, _Imports)


@functools.cache
def source_digest(module: str) -> str:
    """A digest of all source files that a module depends on; computed once per process.

    Raises
    ------
    NoDigest
        If a file can't be read, or was edited after it was imported.
    """
    return hashlib.sha256(repr(sorted(closure(module).items())).encode()).hexdigest()


def closure(module: str) -> dict[str, str]:
    """The modules that a module depends on, with a digest of each file, or a version.

    >>> sorted(name for name in closure("rank1.grid") if name.startswith("rank1"))
    ['rank1.errors', 'rank1.grid']
    """
    found: dict[str, str] = {}
    todo = {module}
    while todo:
        name = todo.pop()
        found[name], imports = _sources.get(name) or _sources.setdefault(name, _read(name))
        todo |= imports - found.keys()
    return found


def _read(name: str) -> tuple[str, set[str]]:
    if version := version_of(name):
        return version, set()
    if name == "__main__":
        raise NoDigest("the module __main__ is different in every process")
    spec = _find(name)
    if spec is None or spec.origin is None or not spec.has_location:
        return "no file", set()
    try:
        data, status = Path(spec.origin).read_bytes(), os.stat(spec.origin)
    except OSError as error:
        raise NoDigest(f"the source of module {name} can't be read", str(error)) from None
    imported = _Imports.times.get(name, _Imports.began)
    if name in sys.modules and max(status.st_mtime_ns, status.st_ctime_ns) > imported:
        raise NoDigest(
            f"{spec.origin} was edited after it was imported", "start a new process", where=name
        )
    try:
        code: Any = SourceFileLoader(name, spec.origin).get_code(name)
    except (SyntaxError, ValueError):  # such as a compiled extension
        code = None
    package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
    # `import rank1` itself imports nothing: what counts is the names that a module takes from it.
    imports = set() if code is None or name == "rank1" else _modules(code, package)
    return hashlib.sha256(data).hexdigest(), imports


def _modules(code: CodeType, package: str) -> set[str]:
    """The modules that a module imports, and those among their attributes that it may use."""
    codes = [code]
    for one in codes:
        codes += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
    names = {name for one in codes for name in one.co_names}
    todo = {name for one in codes for name in _imports(one, package)}
    found: set[str] = set()
    while todo:
        found.add(module := _home(name := todo.pop()))
        if module == name:
            todo |= {f"{name}.{below}" for below in names & _below(name)}
    return found


def _imports(code: CodeType, package: str) -> Iterator[str]:
    """The dotted names that a module, a class or a function imports."""
    if _IMPORT in code.co_code[::2]:
        loaded: list[Any] = []
        for step in dis.get_instructions(code):
            if step.opname.startswith("LOAD_"):
                loaded.append(step.argval)
            elif step.opcode == _IMPORT:
                level, names = loaded[-2:]
                base = resolve_name("." * level + step.argval, package)
                if names:
                    yield from [f"{base}.{name}" for name in names]
                else:  # `import a.b` binds `a`
                    yield from (base, base.partition(".")[0])


def _below(name: str) -> set[str]:
    """The names in a package that may stand for other modules."""
    spec = None if version_of(name) else _find(name)
    path = spec and spec.submodule_search_locations
    modules = {one.name for one in iter_modules(path)} if path else set()
    return modules.union(sys.modules["rank1"].HOMES) if name == "rank1" else modules


def _home(name: str) -> str:
    """The module of a dotted name: `rank1.grid` for `rank1.grid.Grid`."""
    top, _, rest = name.partition(".")
    if version_of(top):
        return top
    if top == "rank1" and (home := sys.modules[top].HOMES.get(rest)):
        return f"rank1.{home}"
    while "." in name and name not in _sources and _find(name) is None:
        name = name.rpartition(".")[0]
    return name


def _find(name: str) -> ModuleSpec | None:
    """Find a module without importing it or its package."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is not None:
        return spec
    above, path = name.rpartition(".")[0], None
    if above:
        outer = _find(above)
        path = None if outer is None else outer.submodule_search_locations
        if path is None:
            return None
    for finder in sys.meta_path:
        if finder is not _Imports and (found := finder.find_spec(name, path)):
            return found
    return None


@functools.cache
def version_of(module: str) -> str | None:
    """Name and version of the package a module came with; None if it must be read instead.

    >>> version_of("numpy.random").startswith("numpy 2"), version_of("rank1.checks")
    (True, None)
    """
    top, _, rest = module.partition(".")
    if rest:
        return version_of(top)
    if top in sys.stdlib_module_names:
        # Python's behaviour changes only in minor versions.
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    spec = None if top in ("rank1", "__main__", "") else _find(top)
    if spec is None:
        return None
    places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or ())
    installed = {"site-packages", "dist-packages"}
    if not places or not all(installed & {*Path(str(place)).parts} for place in places):
        return None
    import importlib.metadata  # slow to import, and `ask` never comes here

    try:
        found = [importlib.metadata.distribution(top)]
    except importlib.metadata.PackageNotFoundError:
        # Its distribution has another name, which is slow to find.
        names = importlib.metadata.packages_distributions().get(top, ())
        found = [importlib.metadata.distribution(name) for name in sorted({*names})]
    if not found or any(one.read_text("direct_url.json") for one in found):
        return None
    return ", ".join(f"{one.metadata['Name']} {one.version}" for one in found)
