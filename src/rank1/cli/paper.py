"""rank1 paper."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rank1.cli.app import Jobs, Json, Seed, app, console, print_json


class Artefact(StrEnum):
    """What `rank1 paper` can make."""

    table1 = "table1"
    all = "all"


@app.command(epilog="Example: rank1 paper table1 --runs 20 --seed 1")
def paper(
    artefact: Annotated[Artefact, typer.Argument(help="What to reproduce.")] = Artefact.all,
    runs: Annotated[int, typer.Option(help="Runs of each cell; the paper has 20.")] = 20,
    n: Annotated[float, typer.Option(help="Number of steps; the paper has 2 million.")] = 2e6,
    seed: Seed = 1,
    jobs: Jobs = -1,
    out: Annotated[Path, typer.Option(help="Folder for what is written.")] = Path("report"),
    json_: Json = False,
) -> None:
    """Reproduce the paper's experiments, beside the paper's own numbers."""
    from rank1 import checks
    from rank1.files import whole_file
    from rank1.paper import table1

    runs, steps = checks.integer("runs", runs, 1), checks.integer("n", n, 1)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"--out must name a folder that may be written to, got {str(out)!r}: {error.strerror}"
        ) from None
    interrupted = False
    try:
        document = table1.table1(runs, steps, seed, jobs, progress=True)
    except table1.Table1Interrupted as stop:
        document, interrupted = stop.document, True
    with whole_file(out / "table1.json") as temporary:
        temporary.write_text(json.dumps(document, indent=1, allow_nan=False))
    if json_:
        print_json(document)
    else:
        for part in table1.show(document):
            console().print(part)
        print(f"Written: {out / 'table1.json'}")
    if interrupted:
        print("Interrupted: these are the cells that were finished.", file=sys.stderr)
        sys.exit(130)
