"""Python first, compiled by Numba when it pays, with a disk cache keyed by the source.

- `dispatch`: functions that may be compiled, and functions that *are* the method of their argument,
- `kernels`: what is compiled now, in the background or never, and where it is cached,
- `machine`: the interface to Numba, and the only module that imports it,
- `explain`: a mistake in a policy, in one line instead of Numba's hundred,
- `digest`: what something depends on, with `sources`, the files that a module imports,
- `generators`: random number generators for compiled code,
- `records`: scalars of a state by name.
"""

from __future__ import annotations

from rank1.compiled.digest import digest
from rank1.compiled.dispatch import apart, inlined, jit, method, overload_of
from rank1.compiled.explain import explain
from rank1.compiled.generators import generator
from rank1.compiled.kernels import in_background, kernel, kernel_for, missing, ready
from rank1.compiled.records import record
from rank1.compiled.sources import closure
from rank1.paths import cache_directory

__all__ = [
    "apart",
    "cache_directory",
    "closure",
    "digest",
    "explain",
    "generator",
    "in_background",
    "inlined",
    "jit",
    "kernel",
    "kernel_for",
    "method",
    "missing",
    "overload_of",
    "ready",
    "record",
]
