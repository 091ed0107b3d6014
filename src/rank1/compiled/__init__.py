"""Compiling with Numba: methods chosen by type, a disk cache keyed by a digest of the code.

- `dispatch`: how functions are compiled, and functions that *are* the method of their argument,
- `digest`: what something depends on: the code and values that can be reached from it, with
  `bytecode` (what a piece of code names) and `pins` (what is installed, and so has a version),
- `cache`: kernels, from the disk where possible,
- `generators`: random number generators that compiled code may be given.
"""

from __future__ import annotations

from rank1.compiled.cache import kernel
from rank1.compiled.digest import digest, walked
from rank1.compiled.dispatch import entry, inlined, jit, method
from rank1.compiled.generators import generator
from rank1.compiled.records import record
from rank1.paths import cache_directory

__all__ = [
    "cache_directory",
    "digest",
    "entry",
    "generator",
    "inlined",
    "jit",
    "kernel",
    "method",
    "record",
    "walked",
]
