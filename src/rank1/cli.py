"""The command line. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Find the best pair of a grid from noisy feedback: stochastic rank-1 bandits.",
)

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same numbers.")]
Jobs = Annotated[int, typer.Option(help="Runs played side by side; -1 for one on each core.")]


class Artefact(StrEnum):
    """What `rank1 paper` can make."""

    table1 = "table1"
    all = "all"


def main() -> None:
    """Run the command line; bad input gives one line and status 2, never a traceback."""
    try:
        app(standalone_mode=True)
    except (ValueError, TypeError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)


def console() -> Console:
    """Standard output; wide enough for a table also where it isn't a terminal."""
    from rich.console import Console

    return Console(highlight=False) if sys.stdout.isatty() else Console(width=120)


def print_json(document: Any) -> None:
    """One document, of which every number is finite."""
    print(json.dumps(document, allow_nan=False, ensure_ascii=False))


@app.command(
    epilog="Example: rank1 simulate --problem spike --set K=8 --set L=8 --set p_u=0.7 --set "
    "p_v=0.7 --set delta_u=0.2 --set delta_v=0.2 --policy rank1elim --n 2e6 --runs 20"
)
def simulate(
    problem: Annotated[str, typer.Option(help="Name of the problem: see `rank1 problems`.")],
    policy: Annotated[
        list[str],
        typer.Option(help="Name of a policy, settings after a colon: see `rank1 policies`."),
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the problem, as name=value.")
    ] = None,
    n: Annotated[float, typer.Option(help="Number of steps; 2e6 is fine.")] = 2e6,
    runs: Annotated[int, typer.Option(help="Runs of each policy.")] = 20,
    seed: Seed = 1,
    jobs: Jobs = 1,
    checkpoints: Annotated[int, typer.Option(help="Points of each curve.")] = 100,
    engine: Annotated[
        str, typer.Option(help="auto, steps (every step) or stages (whole stages at once).")
    ] = "auto",
    out: Annotated[Path | None, typer.Option(help="Write the runs to this Parquet file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the curves into this .png, .svg or .pdf file.")
    ] = None,
    json_: Json = False,
) -> None:
    """Play policies on a problem and print their regret."""
    from rank1 import checks, simulation
    from rank1.named import build, parse_policy, parse_settings
    from rank1.plots import checked_ending, save_figure
    from rank1.problems import PROBLEMS

    chosen = build("problem", PROBLEMS, problem, parse_settings(set_ or [], "--set"))
    steps = checks.integer("n", n, 1)
    policies = [parse_policy(text) for text in policy]
    for path in (out, plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(
                f"--out and --plot must name files in a folder that exists, got {str(path)!r}"
            )
    if plot is not None:
        checked_ending(plot)
    interrupted = False
    try:
        result = simulation.simulate(
            policies, chosen, steps, runs, seed, jobs, checkpoints, engine=engine, progress=True
        )  # fmt: skip
    except simulation.Interrupted as stop:
        if stop.result is None:
            raise
        result, interrupted = stop.result, True
    if out is not None:
        result.save(out)
    if plot is not None:
        save_figure(result.plot().figure, plot)
    if json_:
        print_json(result.document())
    else:
        _show_result(result)
    if interrupted:
        print("Interrupted: these are the runs that were finished.", file=sys.stderr)
        sys.exit(130)


def _show_result(result: Any) -> None:
    from rich import box
    from rich.table import Table

    about = result.about
    table = Table(
        title=f"{about['name']} {about['K']}×{about['L']}, n = {result.n:,}, seed {result.seed}",
        box=box.SIMPLE,
        title_justify="left",
    )
    table.add_column("policy")
    for name in ("runs", "expected regret", "realised regret", "best pair", "found", "seconds"):
        table.add_column(name, justify="right")
    for row in result.summary().iter_rows(named=True):
        table.add_row(
            row["policy"],
            str(row["runs"]),
            *(_mean_and_error(row[f"{k}_mean"], row[f"{k}_se"]) for k in ("expected", "realised")),
            str(tuple(row["best_pair"])),
            "?" if row["found"] is None else f"{row['found']:.0%}",
            f"{row['seconds']:.2f}",
        )
    console().print(table)


def _mean_and_error(mean: float, se: float | None) -> str:
    return f"{mean:,.1f}" if se is None else f"{mean:,.1f} ± {se:,.1f}"


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


@app.command(epilog="Example: rank1 policies --json")
def policies(json_: Json = False) -> None:
    """List the policies, with the settings each takes."""
    from rank1.policies import POLICIES

    _list("policy", POLICIES, json_)


@app.command(epilog="Example: rank1 problems --json")
def problems(json_: Json = False) -> None:
    """List the problems, with the settings each takes."""
    from rank1.problems import PROBLEMS

    _list("problem", PROBLEMS, json_)


def _list(kind: str, table: Any, json_: bool) -> None:
    import inspect

    from rank1.named import settings_of

    entries = []
    for name, maker in table.items():
        settings = settings_of(maker)
        required = [key for key, value in settings.items() if value is inspect.Parameter.empty]
        defaults = {key: value for key, value in settings.items() if key not in required}
        about = (inspect.getdoc(maker) or "").splitlines()[0]
        entries.append({"name": name, "about": about, "required": required, "defaults": defaults})
    if json_:
        print_json({"problems" if kind == "problem" else "policies": entries})
        return
    from rich import box
    from rich.table import Table

    listing = Table(box=box.SIMPLE)
    for column in (kind, "what it is", "settings"):
        listing.add_column(column)
    for entry in entries:
        words = [
            *entry["required"],
            *(f"{key}={value}" for key, value in entry["defaults"].items()),
        ]
        listing.add_row(str(entry["name"]), str(entry["about"]), ", ".join(words) or "none")
    console().print(listing)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from rank1 import __version__

        print(__version__)
        raise typer.Exit
