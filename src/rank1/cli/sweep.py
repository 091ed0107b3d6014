"""rank1 sweep."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rank1.cli.app import Jobs, Json, app, print_json
from rank1.errors import InputError

if TYPE_CHECKING:
    from rank1.sweeps import Cell, Failure, Plan


@app.command(epilog="Example: rank1 sweep grid.toml --store cells --out result.parquet")
def sweep(
    grid: Annotated[
        Path | None, typer.Argument(help="A TOML file: problems, policies, n, runs.")
    ] = None,
    store: Annotated[
        Path, typer.Option(help="Folder that keeps finished cells; sweeps may share it.")
    ] = Path("cells"),
    out: Annotated[Path, typer.Option(help="Parquet file for the result.")] = Path(
        "result.parquet"
    ),
    engine: Annotated[
        str, typer.Option(help="local (processes on this machine), dask or ray.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="Of a Dask or Ray cluster; without it one starts on this machine."),
    ] = None,
    jobs: Jobs = -1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check the grid and say what it would take.")
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a grid to start from, and nothing else.")
    ] = False,
    json_: Json = False,
) -> None:
    """Play every policy on every problem of a grid; a sweep that was stopped goes on."""
    from rank1 import checks, sweeps
    from rank1.atomic import check_writable
    from rank1.simulation.store import Store
    from rank1.sweeps.grid import EXAMPLE

    if example:
        print(EXAMPLE, end="")
        return
    if grid is None:
        raise InputError("name a grid, or print one to start from: rank1 sweep --example")
    checks.one_of("--engine", engine, sweeps.ENGINES)
    if address is not None and engine == "local":
        raise InputError(f"--address needs --engine dask or ray, got {address!r} without")
    if out.resolve() == grid.resolve():
        raise InputError(f"--out must not be the grid itself, got {str(out)!r}")
    check_writable(out)
    jobs = checks.jobs("--jobs", jobs)
    chosen = sweeps.read_grid(grid)
    # Looking must not leave a folder behind.
    kept = Store(store) if store.is_dir() or not dry_run else None
    todo = sweeps.plan(chosen, kept, progress=True)
    document = _document(todo)
    for line in _lines(document, todo, jobs if engine == "local" else 1):
        print(line, file=sys.stdout if dry_run and not json_ else sys.stderr)
    if kept is None or dry_run:
        if json_:
            print_json(document)
        return
    setup = sweeps.Setup(chosen.seed, jobs, address, lambda line: print(line, file=sys.stderr))
    try:
        failed = sweeps.play(todo, kept, engine, setup, progress=True) if todo.tasks else []
        rows = 0
        if any(todo.blocks.values()):  # else whatever is there is worth more
            rows = sweeps.write_sweep(out, chosen, todo.series, todo.blocks)
    except KeyboardInterrupt:
        command = shlex.join(["rank1", *sys.argv[1:]])
        print(
            f"Interrupted. What is finished is kept in {store}; to go on from there: {command}",
            file=sys.stderr,
        )
        sys.exit(130)
    if json_:
        failures = [
            cell.series.settings
            | {"runs": [cell.runs.start, cell.runs.stop], "error": why.error, "trace": why.trace}
            for cell, why in failed
        ]
        written = str(out) if rows else None
        print_json(document | {"failed": failures, "rows": rows, "out": written})
    elif rows:
        print(f"Written: {out}, {rows:,} rows.")
    if failed:
        _report(failed)
        sys.exit(1)


def _document(todo: Plan) -> dict[str, Any]:
    grid = todo.grid
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


def _lines(document: dict[str, Any], todo: Plan, jobs: int) -> list[str]:
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


def _report(failed: list[tuple[Cell, Failure]], limit: int = 20) -> None:
    print(
        f"{len(failed):,} cells failed; what others gave is kept, and the same command tries these "
        "again:",
        file=sys.stderr,
    )
    for cell, why in failed[:limit]:
        runs = f"runs {cell.runs.start} to {cell.runs.stop - 1}"
        print(f"  {cell.series}, {runs}: {' '.join(why.error.split())}", file=sys.stderr)
    if len(failed) > limit:
        print(f"  and {len(failed) - limit:,} more: see --json", file=sys.stderr)
