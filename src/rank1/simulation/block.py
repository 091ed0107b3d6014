"""Some runs of a series: named arrays, and the time they took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "joined", "missing_runs"]


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive runs. Each array has one row per run."""

    arrays: Mapping[str, NDArray[Any]] = field(repr=False)
    #: Computing time in seconds, without compilation.
    seconds: float

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def part(self, start: int, stop: int) -> Block:
        """Runs `start` … `stop` − 1, with their share of the time."""
        arrays = {name: array[start:stop] for name, array in self.arrays.items()}
        return Block(arrays, self.seconds * (stop - start) / self.runs)


def joined(blocks: Iterable[Block]) -> Block:
    """Join consecutive blocks into one."""
    parts = list(blocks)
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].arrays}
    return Block(arrays, sum(part.seconds for part in parts))


def missing_runs(runs: range, blocks: Mapping[int, Block]) -> list[range]:
    """The runs that no block contains; blocks are keyed by their first run.

    >>> two = Block({"pulls": np.zeros(2)}, 0.0)
    >>> missing_runs(range(10), {0: two, 5: two})
    [range(2, 5), range(7, 10)]
    """
    missing, at = [], runs.start
    for first, block in sorted(blocks.items()):
        if first > at:
            missing.append(range(at, first))
        at = first + block.runs
    return [*missing, range(at, runs.stop)] if at < runs.stop else missing
