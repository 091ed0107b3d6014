"""Random number generators for compiled code.

Code compiled without reference counts never releases the Generator that it was called with: each
would stay in memory forever, 2.9 KB per run. So there are only as many as are in use at once, and
they are reseeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["generator"]

_idle: list[np.random.Generator] = []


@contextmanager
def generator(seed: np.random.SeedSequence) -> Iterator[np.random.Generator]:
    """A generator with the numbers of `Generator(PCG64(seed))`, for use within the block only.

    >>> import numpy as np
    >>> seed = np.random.SeedSequence(1)
    >>> with generator(seed) as rng:
    ...     rng.random() == np.random.Generator(np.random.PCG64(seed)).random()
    True
    """
    fresh = np.random.PCG64(seed)
    try:
        rng = _idle.pop()  # thread-safe: `pop` and `append` are atomic
    except IndexError:
        rng = np.random.Generator(fresh)
    else:
        # Like `pickle`: include the seed, so that spawned generators are the same, too.
        bits: Any = rng.bit_generator
        bits.__setstate__(fresh.__getstate__())
    try:
        yield rng
    finally:
        _idle.append(rng)
