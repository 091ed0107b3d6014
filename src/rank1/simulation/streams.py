"""The random numbers of a run: two streams made of its seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["streams"]

Pair = tuple[np.random.Generator, np.random.Generator]

#: Generators that nobody uses now. Compiled code never lets go of one that it was given, and a new
#: one takes longer than many a run.
_idle: list[Pair] = []

_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_MASK = 2**128 - 1


@contextmanager
def streams(seed: np.random.SeedSequence) -> Iterator[Pair]:
    """Two generators for one run, to be used until the block ends.

    The first gives the numbers of `np.random.PCG64(seed)`, the second others that are independent.

    >>> seed = np.random.SeedSequence(7)
    >>> with streams(seed) as (one, other):
    ...     one.random() == np.random.Generator(np.random.PCG64(seed)).random(), other.random()
    (True, 0.2882679267759992)
    """
    try:
        pair = _idle.pop()
    except IndexError:
        pair = np.random.Generator(np.random.PCG64(0)), np.random.Generator(np.random.PCG64(0))
    words = seed.generate_state(8, np.uint64).tolist()
    for k, generator in enumerate(pair):
        generator.bit_generator.state = _seeded(*words[4 * k : 4 * k + 4])
    try:
        yield pair
    finally:
        _idle.append(pair)


def _seeded(high: int, low: int, inc_high: int, inc_low: int) -> dict[str, object]:
    """The state of PCG64 after it was seeded with these words, as O'Neill's `pcg64_srandom` does.

    >>> words = np.random.SeedSequence(3).generate_state(4, np.uint64).tolist()
    >>> _seeded(*words) == np.random.PCG64(np.random.SeedSequence(3)).state
    True
    """
    inc = ((inc_high << 64 | inc_low) << 1 | 1) & _MASK
    state = ((inc + (high << 64 | low)) * _MULTIPLIER + inc) & _MASK
    return {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": inc},
        "has_uint32": 0,
        "uinteger": 0,
    }
