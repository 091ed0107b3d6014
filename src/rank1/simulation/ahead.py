"""Compile the kernels of many series before they are played, several at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rank1.progress import Progress
from rank1.simulation.backends import RunCell, Setup, backend
from rank1.simulation.block import Block
from rank1.simulation.series import Series

__all__ = ["compile_ahead"]

#: For fewer kernels it doesn't pay to start processes, each of which imports Numba.
WORTH = 4
#: A rough guess.
SECONDS = 3.0


class _Compiling(NamedTuple):
    """Stands in a cell for a series that is compiled instead of played."""

    series: Series

    def play(self, runs: range, stopped: Any) -> Block:
        self.series.compile()
        return Block({}, 0.0)


def compile_ahead(series: Iterable[Series], jobs: int, *, progress: bool = False) -> None:
    """Compile in up to `jobs` processes, because Numba compiles one kernel at a time in each.

    They store the kernels in the cache directory, from where this process loads them. Does nothing
    for kernels that are there or can't be stored. A kernel that doesn't compile is left for the
    runs that need it, which report the error.
    """
    if jobs < 2:
        return
    kinds = {(type(one.policy), type(one.problem.law), one.method): one for one in series}
    kernels: dict[Path, Series] = {}
    for one in kinds.values():
        with contextlib.suppress(Exception):
            if folder := one.uncompiled():
                kernels[folder] = one
    if len(kernels) < WORTH:
        return
    cells: list[Any] = [RunCell(_Compiling(one), range(1), SECONDS) for one in kernels.values()]  # type: ignore[arg-type]
    with Progress(progress, "compiling", len(cells)) as bar:
        for k, _ in backend("processes")([[cell] for cell in cells], Setup(jobs)):
            bar.advance(1, f"compiled {cells[k].series.series.policy.name}")
