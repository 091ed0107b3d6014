"""rank1 paper."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rank1.cli.app import Jobs, Json, Seed, app, console, print_json
from rank1.paper import ARTEFACTS, Options

CHOICES = (*ARTEFACTS, "all")


@app.command(epilog="Example: rank1 paper table1 --runs 20 --seed 1")
def paper(
    artefact: Annotated[str, typer.Argument(help=f"One of {', '.join(CHOICES)}.")] = "all",
    runs: Annotated[int, typer.Option(help="Runs of each cell; the paper has 20.")] = 20,
    n: Annotated[float, typer.Option(help="Number of steps; the paper has 2 million.")] = 2e6,
    seed: Seed = 1,
    jobs: Jobs = -1,
    out: Annotated[Path, typer.Option(help="Folder for what is written.")] = Path("report"),
    json_: Json = False,
) -> None:
    """Reproduce the paper's experiments, beside the paper's own numbers."""
    from rank1 import checks

    checks.one_of("the artefact", artefact, CHOICES)
    options = Options(
        checks.integer("runs", runs, 1), checks.integer("n", n, 1), seed, jobs, out, progress=True
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"--out must name a folder that may be written to, got {str(out)!r}: {error.strerror}"
        ) from None
    documents: dict[str, Any] = {}
    try:
        for name in ARTEFACTS if artefact == "all" else [artefact]:
            documents[name] = _make(name, options, quiet=json_)
    except KeyboardInterrupt:
        print(
            "Interrupted."
            + (
                f" Finished cells are kept in {options.store}; the same command goes on from there."
                if options.store.is_dir()
                else ""
            ),
            file=sys.stderr,
        )
        sys.exit(130)
    if json_:
        print_json(documents if artefact == "all" else documents[artefact])


def _make(name: str, options: Options, quiet: bool) -> dict[str, Any]:
    from rank1.files import whole_file

    module = importlib.import_module(f"rank1.paper.{name}")
    document: dict[str, Any] = module.compute(options)
    written = [options.out / f"{name}.json"]
    with whole_file(written[0]) as temporary:
        temporary.write_text(json.dumps(document, indent=1, allow_nan=False))
    for title, figure in module.draw(document).items():
        from rank1.plots import save_figure

        for ending in ("png", "svg"):
            written.append(options.out / f"{title}.{ending}")
            save_figure(figure, written[-1])
    if not quiet:
        for part in module.show(document):
            console().print(part)
        print(f"Written: {', '.join(str(path) for path in written)}")
    return document
