"""A digest of the package's sources, by which a client and its workers compare versions."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

__all__ = ["package_digest"]


@functools.cache
def package_digest() -> bytes:
    """A digest of this package's sources as they were when they were imported."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


package_digest()  # now, not when something compiles: the sources may have changed by then
