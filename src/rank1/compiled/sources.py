"""The source files that a module depends on: its own, and those of everything it imports.

Imports are read from the source, including those inside functions; nothing is imported for this.
The standard library and installed packages are represented by their name and version. That doesn't
apply to rank1 itself, to modules outside of site-packages, and to packages installed from a folder
or a repository: their code may change while the version stays the same.

It can't see modules that are imported by a computed name.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from rank1.errors import NoDigest

__all__ = ["closure", "source_digest", "version_of"]

_FOLDERS = {"site-packages", "dist-packages"}


class _Source(NamedTuple):
    #: A digest of the file, or the version of the module's package.
    token: str
    #: Modules that it imports.
    imports: frozenset[str] = frozenset()


# Both caches are valid as long as none of their modules is imported again.
_sources: dict[str, _Source] = {}
_digests: dict[str, str] = {}
#: In Python 3.11, one of two threads that parse at the same time may get a SystemError.
_parsing = threading.Lock()


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
            _digests.clear()


sys.meta_path.insert(0, _Imports)


def source_digest(module: str) -> str:
    """A digest of all source files that a module depends on; computed once per process.

    Raises
    ------
    NoDigest
        If a file can't be read, or was edited after it was imported.
    """
    found = _digests.get(module)
    if found is None:
        told = repr(sorted(closure(module).items())).encode()
        found = _digests[module] = hashlib.sha256(told).hexdigest()
    return found


def closure(module: str) -> dict[str, str]:
    """The modules that a module depends on, with a digest of each file, or a version.

    >>> sorted(name for name in closure("rank1.grid") if name.startswith("rank1"))
    ['rank1.errors', 'rank1.grid']
    """
    found: dict[str, str] = {}
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in found:
            source = _sources.get(name) or _sources.setdefault(name, _read(name))
            found[name] = source.token
            todo += source.imports
    return found


def _read(name: str) -> _Source:
    if version := version_of(name):
        return _Source(version)
    if name == "__main__":
        raise NoDigest("the module __main__ is different in every process")
    spec = _find(name)
    if spec is None:
        return _Source("absent")
    if spec.origin is None or not spec.has_location:  # a folder without __init__.py
        return _Source("namespace")
    try:
        data, status = Path(spec.origin).read_bytes(), os.stat(spec.origin)
    except OSError as error:
        raise NoDigest(f"the source of module {name} can't be read", str(error)) from None
    imported = _Imports.times.get(name, _Imports.began)
    if name in sys.modules and max(status.st_mtime_ns, status.st_ctime_ns) > imported:
        raise NoDigest(
            f"{spec.origin} was edited after it was imported", "start a new process", where=name
        )
    token = hashlib.sha256(data).hexdigest()
    try:
        with _parsing:
            tree = ast.parse(data) if spec.origin.endswith(".py") else ast.Module([], [])
    except (SyntaxError, ValueError):
        return _Source(token)
    package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
    return _Source(token, frozenset(_imports(tree, package)))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """The modules that a module names in imports, and as attributes of what it imports."""
    modules: dict[str, str] = {}
    chains: list[ast.Attribute] = []
    for node in _nodes(tree):
        if isinstance(node, ast.Attribute):
            chains.append(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from _home(alias.name)
                top = alias.name.partition(".")[0]
                modules[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            for alias in node.names:
                full = base if alias.name == "*" else f"{base}.{alias.name}"
                modules[alias.asname or alias.name] = full
                yield from _home(full)
    for chain in chains:
        names, inner = [chain.attr], chain.value
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in modules:
            yield from _home(".".join([modules[inner.id], *reversed(names)]))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those that only type checkers see."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            todo += node.orelse
        else:
            todo += ast.iter_child_nodes(node)


def _home(name: str) -> Iterator[str]:
    """The module of a dotted name: `rank1.grid` for `rank1.grid.Grid`."""
    if version_of(name):
        yield name.partition(".")[0]
        return
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        if _is_module(found := ".".join(parts[:k])):
            break
    if found == "rank1" and len(parts) > 1:  # its names come from other modules, see its table
        homes = sys.modules["rank1"].HOMES
        found = f"rank1.{homes[parts[1]]}" if parts[1] in homes else found
    yield found


def _is_module(name: str) -> bool:
    return name in _sources or _find(name) is not None


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


# Modules with a version


def version_of(module: str) -> str | None:
    """Name and version of the package a module came with; None if it must be read instead.

    >>> version_of("numpy.random").startswith("numpy 2"), version_of("rank1.checks")
    (True, None)
    """
    return _version(module.partition(".")[0])


@functools.cache
def _version(top: str) -> str | None:
    if top in sys.stdlib_module_names and top != "__main__":
        # Python's behaviour changes only in minor versions.
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    spec = None if top in ("rank1", "__main__", "") else _find(top)
    if spec is None:
        return None
    places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or ())
    if not places or not all(_FOLDERS & {*Path(str(place)).parts} for place in places):
        return None
    import importlib.metadata  # slow to import, and `ask` never comes here

    try:
        found = [importlib.metadata.distribution(top)]
    except (importlib.metadata.PackageNotFoundError, ValueError):
        # Its distribution has another name, which is slow to find.
        names = importlib.metadata.packages_distributions().get(top, ())
        found = [importlib.metadata.distribution(name) for name in sorted({*names})]
    if not found or any(one.read_text("direct_url.json") for one in found):
        return None
    return ", ".join(f"{one.metadata['Name']} {one.version}" for one in found)
