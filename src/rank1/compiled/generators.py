"""Random number generators that compiled code may be given.

Compiled without reference counts, code never gives back the Generator that it was called with:
each would stay in memory for ever, 2.9 KB a run. So there are only as many as are in use at once,
and each is set to the next seed.
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
    """A generator that gives the numbers of `Generator(PCG64(seed))`, to be used in the block only.

    >>> import numpy as np
    >>> seed = np.random.SeedSequence(1)
    >>> with generator(seed) as rng:
    ...     rng.random() == np.random.Generator(np.random.PCG64(seed)).random()
    True
    """
    fresh = np.random.PCG64(seed)
    try:
        rng = _idle.pop()  # threads take turns at this: both calls are atomic
    except IndexError:
        rng = np.random.Generator(fresh)
    else:
        # As `pickle` does it: with the seed, so that what it spawns is the same, too.
        bits: Any = rng.bit_generator
        bits.__setstate__(fresh.__getstate__())
    try:
        yield rng
    finally:
        _idle.append(rng)
