"""rank1 sweep."""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rank1.cli.app import app, end, note, print_json
from rank1.cli.options import Address, Backend, Jobs, Json, option
from rank1.errors import InputError

if TYPE_CHECKING:
    from rank1.simulation.backends import Failure, RunCell
    from rank1.simulation.plan import Plan
    from rank1.sweeps import SweepGrid


@contextlib.contextmanager
def _continued(store: Path, dry_run: bool) -> Iterator[None]:
    """After Ctrl-C, say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        if dry_run:
            raise
        kept = "Nothing was finished; to start again"
        if store.is_dir():
            kept = f"Finished cells are in {store}; to continue"
        end(f". {kept}: {shlex.join(['rank1', *sys.argv[1:]])}")


@app.command(epilog="Example: rank1 sweep grid.toml --store cells --out result.parquet")
def sweep(
    grid: Annotated[
        Path | None, typer.Argument(help="A TOML file with problems, policies, n and runs.")
    ] = None,
    store: Annotated[Path, option("Folder for finished cells; sweeps can share it.")] = Path(
        "cells"
    ),
    out: Annotated[Path, option("Parquet file for the result.")] = Path("result.parquet"),
    backend: Backend = "local",
    address: Address = None,
    jobs: Jobs = -1,
    dry_run: Annotated[
        bool, option("Only check the grid and estimate the time.", "--dry-run")
    ] = False,
    example: Annotated[
        bool, option("Print an example grid, and nothing else.", "--example")
    ] = False,
    json_: Json = False,
) -> None:
    """Play every policy on every problem of a grid; a stopped sweep can be continued."""
    if example:
        from rank1.sweeps.grid import EXAMPLE

        print(EXAMPLE, end="")
        return
    if grid is None:
        hint = "print an example with: rank1 sweep --example"
        raise InputError("grid", None, "a TOML file", hint, got="none")
    with _continued(store, dry_run):
        from rank1 import checks, sweeps
        from rank1.atomic import check_writable
        from rank1.simulation.backends import BACKENDS
        from rank1.simulation.store import Store
        from rank1.sweeps.play import plan

        checks.one_of("backend", backend, BACKENDS)
        if address is not None and backend not in ("dask", "ray"):
            raise InputError("backend", backend, "dask or ray with --address")
        if out.resolve() == grid.resolve():
            raise InputError("out", str(out), "a different file from the grid")
        jobs = checks.jobs("jobs", jobs)
        chosen = sweeps.read_grid(grid)
        if not dry_run:
            check_writable(out)
        todo = plan(chosen, Store(store), progress=True)
        document = _document(chosen, todo)
        for line in _lines(document, todo, jobs if backend in ("local", "processes") else 1):
            print(line, file=sys.stdout if dry_run and not json_ else sys.stderr)
        if dry_run:
            if json_:
                print_json(document)
            return
        failed = todo.play(backend, jobs, address, note=note, progress=True, lines=True)
        rows = sweeps.write_sweep(out, chosen, todo)
        missing = sum(len(part) for k in range(len(todo.series)) for part in todo.missing(k))
        if json_:
            failures = [
                _about(cell) | {"error": why.error, "trace": why.trace} for cell, why in failed
            ]
            written = {"rows": rows, "out": str(out) if rows else None}
            print_json(document | {"failed": failures, "missing_runs": missing} | written)
        elif rows:
            more = f", {missing:,} runs missing" if missing else ""
            print(f"Written: {out}, {rows:,} rows{more}.")
        if not rows and out.is_file():
            note(f"{out} was not replaced: it has more runs of this sweep.")
        if failed:
            _report(failed)
            sys.exit(1)


def _about(cell: RunCell) -> dict[str, Any]:
    """The series and the runs of a cell, as plain values."""
    series: Any = cell.series
    return {
        "problem": series.problem.description["name"],
        "problem_settings": series.problem.description["settings"],
        "policy": series.policy.name,
        "policy_settings": series.policy.settings,
        "n": series.n,
        "runs": [cell.runs.start, cell.runs.stop],
    }


def _document(grid: SweepGrid, todo: Plan[Any]) -> dict[str, Any]:
    return {
        "problems": len(grid.problems),
        "policies": [policy.label for policy in grid.policies],
        "n": list(grid.n),
        "runs": grid.runs,
        "seed": grid.seed,
        "steps": grid.steps,
        "cells_in_store": todo.found,
        "cells_left": len(todo.cells),
        "steps_left": sum(cell.steps for cell in todo.cells),
        "seconds_left": todo.seconds,
    }


def _lines(document: dict[str, Any], todo: Plan[Any], jobs: int) -> list[str]:
    from rank1.progress import clock, short

    lines = [
        f"Problems: {document['problems']:,}, policies: {len(document['policies']):,}, "
        f"horizons: {len(document['n'])}, runs of each: {document['runs']:,}, "
        f"steps: {short(document['steps'])}",
        f"Cells in the store: {document['cells_in_store']:,}, left to play: "
        f"{document['cells_left']:,}, their steps: {short(document['steps_left'])}",
    ]
    if todo.tasks:
        text = f", {clock(math.ceil(todo.seconds / jobs))} with {jobs} jobs" if jobs > 1 else ""
        lines.append(f"By a short probe: {clock(math.ceil(todo.seconds))} on one core{text}")
    return lines


def _report(failed: list[tuple[RunCell, Failure]], limit: int = 20) -> None:
    note(
        f"{len(failed):,} cells failed; the results of the others are stored, and the same command "
        "retries these:"
    )
    for cell, why in failed[:limit]:
        runs = f"runs {cell.runs.start} to {cell.runs.stop - 1}"
        note(f"  {cell.series}, {runs}: {' '.join(why.error.split())}")
    if len(failed) > limit:
        note(f"  and {len(failed) - limit:,} more: see --json")
