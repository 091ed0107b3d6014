"""rank1 paper."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rank1.cli.app import app, end, note, print_json, show
from rank1.cli.options import Address, Backend, Jobs, Json, Seed, integer, option
from rank1.errors import InputError, MissingPackageError, extra
from rank1.paper import ARTEFACTS, PAPERS, Options

#: Names for several artefacts: the first paper's, and all.
SEVERAL = {"all": PAPERS[0].artefacts, "all-papers": ARTEFACTS}
CHOICES = (*ARTEFACTS, *SEVERAL)
DEFAULT = Options()


@app.command(epilog="Example: rank1 paper table1 --runs 20 --seed 1")
def paper(
    artefact: Annotated[str, typer.Argument(help=f"One of {', '.join(CHOICES)}.")] = "all",
    runs: Annotated[int | None, integer("Runs of each cell; default: 20, as in the paper.")] = None,
    n: Annotated[
        int | None, integer("Number of steps; default: 2 million, as in the paper.")
    ] = None,
    seed: Seed = 1,
    jobs: Jobs = -1,
    backend: Backend = "threads",
    address: Address = None,
    out: Annotated[
        Path | None, option("Output folder; default: report, with --quick report-quick.")
    ] = None,
    quick: Annotated[
        bool, option("A first look: 5 runs of 200,000 steps, labelled as such.", "--quick")
    ] = False,
    data_dir: Annotated[Path | None, option("Folder with MovieLens 1M, for figure3.")] = None,
    accept_licence: Annotated[
        bool,
        option(
            "I accept the terms of MovieLens 1M: download it. Otherwise figure3 uses "
            "stand-in data.",
            "--accept-licence",
        ),
    ] = False,
    scale: Annotated[
        str, option("figure3: value of s stars: unit (s−1)/4, fifths s/5 or stars s.")
    ] = DEFAULT.scale,
    sigma: Annotated[
        str, option("figure3: standard deviation of a rating in stars, or estimated.")
    ] = str(DEFAULT.sigma),
    iterations: Annotated[
        int, integer("figure3: steps of the matrix completion.")
    ] = DEFAULT.iterations,
    block_seed: Annotated[
        int, integer("figure3: seed of the random groups and movies.")
    ] = DEFAULT.block_seed,
    json_: Json = False,
) -> None:
    """Reproduce the papers' experiments next to the published numbers; see index.html.

    all: Stochastic Rank-1 Bandits; trinh2020: the paper on UTS; all-papers: both.
    """
    from rank1 import checks
    from rank1.paper.artefact import make_all
    from rank1.paper.movielens.problem import SCALES

    checks.one_of("artefact", artefact, CHOICES)
    names = SEVERAL.get(artefact, (artefact,))
    options = Options(
        checks.integer("runs", runs if runs is not None else 5 if quick else 20, 1),
        checks.integer("n", n if n is not None else 200_000 if quick else 2_000_000, 1),
        checks.integer("seed", seed, 0, None),
        checks.jobs("jobs", jobs),
        backend,
        address,
        out or Path("report-quick" if quick else "report"),
        progress=True,
        quick=quick,
        data_dir=data_dir,
        accept_licence=accept_licence,
        scale=checks.one_of("scale", scale, SCALES),
        sigma=_sigma(sigma),
        iterations=checks.integer("iterations", iterations, 0),
        block_seed=checks.integer("block_seed", block_seed, 0, None),
        command=shlex.join(["rank1", *sys.argv[1:]]),
    )
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        expected = "a writable folder"
        raise InputError("out", str(options.out), expected, error.strerror) from None
    if "figure3" in names:
        options = _with_data(options)
    documents: dict[str, Any] = {}
    drawn: dict[str, dict[str, str]] = {}
    try:
        for name, documents[name] in make_all(names, options):
            drawn[name] = _write(name, documents[name], options, quiet=json_)
    except (Exception, KeyboardInterrupt) as error:
        if documents:
            _report(options, drawn, quiet=True)
        if not isinstance(error, KeyboardInterrupt):
            raise
        kept = f" Finished cells are in {options.store}; the same command continues from there."
        end(f".{kept if options.store.is_dir() else ''}")
    _report(options, drawn, quiet=json_)
    if documents.get("figure3", {}).get("data", {}).get("stand_in"):
        note(
            "Figure 3 is made from stand-in data. To download MovieLens 1M instead, if you accept "
            "its terms: rank1 paper figure3 --accept-licence"
        )
    if json_:
        print_json(documents if artefact in SEVERAL else documents[artefact])


def _sigma(text: str) -> float | Literal["estimated"]:
    from rank1 import checks

    if text == "estimated":
        return "estimated"
    try:
        return checks.number("sigma", float(text), 0, above=True)
    except ValueError:
        raise InputError("sigma", text, "a number above 0 or estimated") from None


def _with_data(options: Options) -> Options:
    """Check the data before minutes of work."""
    from rank1.paper.movielens import downloaded, obtain

    # A user with the data in the cache has accepted its terms.
    accepted = options.accept_licence or (options.data_dir is None and downloaded() is not None)
    fetch = options.accept_licence and options.data_dir is None and downloaded() is None
    if fetch and importlib.util.find_spec("pooch") is None:
        raise MissingPackageError(
            "--accept-licence needs pooch to download MovieLens", extra("movielens")
        )
    if options.data_dir or accepted:
        data = obtain(options.data_dir, accept_licence=accepted)
        accepted = not data.stand_in
    return options._replace(accept_licence=accepted)


def _write(name: str, document: dict[str, Any], options: Options, quiet: bool) -> dict[str, str]:
    """Save an artefact's figures, and print the rest. Returns the figures as SVG."""
    from rank1.atomic import whole_file
    from rank1.paper import artefact
    from rank1.paper.claims import claim_line
    from rank1.plots import save_figure
    from rank1.plots.html import svg_file

    written, drawn = [options.out / f"{name}.json"], {}
    for title, figure in artefact.draw(name, document).items():
        written += [options.out / f"{title}.{ending}" for ending in ("png", "svg")]
        save_figure(figure, written[-2])
        figure.set_layout_engine("none")  # its layout is known now
        drawn[title] = svg_file(figure, title)
        with whole_file(written[-1]) as temporary:
            temporary.write_text(drawn[title], encoding="utf-8")
    if not quiet:
        lines = [claim_line(claim) for claim in document["claims"]]
        for part in [*artefact.show(name, document), *lines]:
            show(part)
        print(f"Written: {', '.join(str(path) for path in written)}")
    return drawn


def _report(options: Options, drawn: dict[str, dict[str, str]], quiet: bool) -> None:
    """Write the page of everything made with these options, now and before."""
    from rank1.paper.artefact import read_all
    from rank1.paper.report import write

    path = write(options, drawn)
    if not quiet:
        print(f"Written: {path}")
    made = [name for name in ARTEFACTS if (options.out / f"{name}.json").is_file()]
    if others := [name for name in made if name not in read_all(options)]:
        note(
            f"Not on the page, because they were made with other options: {', '.join(others)}. "
            "Use --out to write to a separate folder."
        )
