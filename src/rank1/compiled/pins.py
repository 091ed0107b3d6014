"""What is installed has a version, which stands for all of its code."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

__all__ = ["pin"]

_FOLDERS = {"site-packages", "dist-packages"}


@functools.cache
def pin(module: str) -> str | None:
    """Name and version of what a module came with; None if only its code says what it does.

    The latter holds for rank1 itself, wherever it lies, for modules that lie outside of
    site-packages, and for what was installed from a folder or a repository: there, code may change
    and the version stay.

    >>> pin("numpy.random").startswith("numpy 2"), pin("rank1.checks")
    (True, None)
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        # Changes of behaviour wait for the next minor version.
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    if top in ("rank1", "__main__"):
        return None
    return _version(top) if _is_installed(module) else None


def _is_installed(module: str) -> bool:
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        return _is_findable(module.partition(".")[0])
    places = [file] if file else list(getattr(loaded, "__path__", ()))
    return bool(places) and all(_FOLDERS & {*Path(place).parts} for place in places)


@functools.cache
def _is_findable(top: str) -> bool:
    """Whether a package that isn't loaded is installed; it isn't loaded to find out."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    return bool(spec and spec.origin and _FOLDERS & {*Path(spec.origin).parts})


@functools.cache
def _version(top: str) -> str | None:
    """Name and version of the distributions that a package came with."""
    try:
        found = [importlib.metadata.distribution(top)]
    except (importlib.metadata.PackageNotFoundError, ValueError):
        # Its distribution has another name, which is slow to find.
        names = importlib.metadata.packages_distributions().get(top, ())
        found = [importlib.metadata.distribution(name) for name in sorted({*names})]
    if not found or any(one.read_text("direct_url.json") for one in found):
        return None
    return ", ".join(f"{one.metadata['Name']} {one.version}" for one in found)
