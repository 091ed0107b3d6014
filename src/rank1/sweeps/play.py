"""Sweeps: every policy on every problem of a grid."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rank1 import checks
from rank1.errors import InputTypeError
from rank1.simulation.feedback import AT_ONCE
from rank1.simulation.known import problem_document
from rank1.simulation.plan import Plan, make_plan
from rank1.simulation.series import Series
from rank1.simulation.store import Store
from rank1.simulation.tidy import Part, frame_of, write_tidy
from rank1.sweeps.grid import SweepGrid, grid_of, read_grid
from rank1.sweeps.output import Sweep, missing_of

__all__ = ["facts_of", "parts_of", "plan", "sweep", "write_sweep"]


def sweep(
    grid: str | os.PathLike[str] | Mapping[str, Any] | SweepGrid,
    store: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    backend: str = "processes",
    jobs: int = -1,
    address: str | None = None,
    progress: bool = False,
) -> Sweep:
    """Play every policy on every problem of a grid.

    Parameters
    ----------
    grid
        A TOML file, a dict with the same contents, or a `SweepGrid`.
    store
        A folder for finished cells. The same call continues where it was stopped; sweeps and
        `simulate` can share a store.
    out
        A Parquet file for the result; see `rank1.load`.
    backend, jobs, address
        Where runs are played, as for `rank1.simulate`.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Sweep
        Regret of every run. `failed` lists the cells that could not be played, `missing` the runs.

    Examples
    --------
    >>> import rank1
    >>> spike = {"name": "spike", "K": [2, 4], "L": 3, "p_u": 0.5, "p_v": 0.5}
    >>> spike |= {"delta_u": 0.4, "delta_v": 0.4}
    >>> grid = {"n": 1000, "runs": 5, "problem": [spike], "policy": [{"name": "rank1elim"}]}
    >>> result = rank1.sweep(grid, jobs=1)
    >>> result.summary().select("K", "policy", "runs").rows()
    [(2, 'rank1elim', 5), (4, 'rank1elim', 5)]
    """
    if isinstance(grid, Mapping):
        grid = grid_of(grid)
    elif isinstance(grid, str | os.PathLike):
        grid = read_grid(grid)
    elif not isinstance(grid, SweepGrid):
        raise InputTypeError("grid", grid, "a TOML file, a dict or a SweepGrid")
    jobs = checks.jobs("jobs", jobs)
    todo = plan(grid, None if store is None else Store(store), progress=progress)
    failed = todo.play(backend, jobs, address, progress=progress)
    if out is not None:
        write_sweep(Path(out), grid, todo)
    tidy = frame_of(parts_of(todo), facts_of(grid, todo))
    return Sweep.of(tidy, failed)


def plan(grid: SweepGrid, store: Store | None = None, **options: Any) -> Plan[Series]:
    """What is left to play of a grid; options are those of `make_plan`.

    >>> from rank1.sweeps.grid import EXAMPLE, grid_of
    >>> import tomllib
    >>> some = plan(grid_of(tomllib.loads(EXAMPLE)))
    >>> len(some.series), len(some.cells), sum(len(cell.runs) for cell in some.cells)
    (18, 18, 180)
    """
    return make_plan([(one, grid.runs) for one in grid.series()], store, **options)


def parts_of(todo: Plan[Series]) -> list[Part]:
    """The contents of a file, for each series."""
    return [
        Part(
            problem_document(one.problem),
            one.policy.label,
            one.policy.settings,
            one.n,
            one.checkpoints,
            todo.finished(number),
        )
        for number, one in enumerate(todo.series)
    ]


def facts_of(grid: SweepGrid, todo: Plan[Series]) -> dict[str, Any]:
    """The metadata of a file."""
    missing = [
        [number, part.start, part.stop]
        for number in range(len(todo.series))
        for part in todo.missing(number)
    ]
    return {
        "runs": grid.runs,
        "seed": grid.seed,
        "shuffle": grid.shuffle,
        **({} if grid.feedback == AT_ONCE else {"feedback": grid.feedback.document()}),
        "series": len(todo.series),
        "missing": missing,
    }


def write_sweep(path: Path, grid: SweepGrid, todo: Plan[Series]) -> int:
    """Write the result of a sweep; returns the number of rows.

    If there is a file of the same sweep with fewer missing runs, it is not replaced: nothing is
    written, and the number is 0.
    """
    facts, parts = facts_of(grid, todo), parts_of(todo)
    if not any(part.blocks for part in parts):
        return 0
    facts["what"] = _name_of(grid)
    if (before := missing_of(path, facts["what"])) is not None:
        now = sum(stop - start for _, start, stop in facts["missing"])
        if now > before:
            return 0
    return write_tidy(path, parts, facts)


def _name_of(grid: SweepGrid) -> str:
    """A digest that identifies the sweep."""
    policies = [policy.label for policy in grid.policies]
    problems = [problem.digest for problem in grid.problems]
    what: tuple[Any, ...] = policies, problems, list(grid.n), grid.runs, grid.seed
    what += grid.checkpoints, grid.shuffle
    if grid.feedback != AT_ONCE:
        what += (grid.feedback,)
    return hashlib.sha256(repr(what).encode()).hexdigest()
