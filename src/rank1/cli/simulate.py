"""rank1 simulate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rank1.cli.app import app, ending, finished, print_json, show, status
from rank1.cli.options import (
    Address,
    Backend,
    Checkpoints,
    Jobs,
    Json,
    ProblemName,
    Real,
    Seed,
    Set,
    Shuffle,
    Store,
    Whole,
)
from rank1.errors import InputError


@app.command(
    epilog="Example: rank1 simulate --problem spike --set K=8 --set L=8 --set p_u=0.7 --set "
    "p_v=0.7 --set delta_u=0.2 --set delta_v=0.2 --policy rank1elim --n 2e6 --runs 20"
)
def simulate(
    problem: ProblemName,
    policy: Annotated[
        list[str],
        typer.Option(help="Name of a policy, settings after a colon: see `rank1 policies`."),
    ],
    set_: Set = None,
    n: Annotated[int, typer.Option(help="Number of steps.", **Whole)] = 2_000_000,
    runs: Annotated[int, typer.Option(help="Runs of each policy.", **Whole)] = 20,
    seed: Seed = 1,
    jobs: Jobs = 1,
    checkpoints: Checkpoints = 100,
    method: Annotated[
        str, typer.Option(help="auto, steps (every step) or stages (whole stages at once).")
    ] = "auto",
    shuffle: Shuffle = False,
    delay: Annotated[
        float, typer.Option(help="Steps by which rewards come late, on average.", **Real)
    ] = 0.0,
    missing: Annotated[float, typer.Option(help="Share of rewards that never come.", **Real)] = 0.0,
    batch: Annotated[int, typer.Option(help="Rewards come after so many steps.", **Whole)] = 1,
    forgetting: Annotated[
        float | None, typer.Option(help="Half-life of what is learned, in rewards.", **Real)
    ] = None,
    store: Store = None,
    backend: Backend = "threads",
    address: Address = None,
    out: Annotated[Path | None, typer.Option(help="Write the runs to this Parquet file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the curves into this .png, .svg or .pdf file.")
    ] = None,
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Draw the theoretical bounds into the figure, too.")
    ] = False,
    json_: Json = False,
) -> None:
    """Play policies on a problem and print their regret."""
    from rank1 import simulation
    from rank1.atomic import check_writable
    from rank1.plots import checked_ending, save_figure
    from rank1.problems import PROBLEMS
    from rank1.settings import build, parse_policy, parse_settings

    chosen = build("problem", PROBLEMS, problem, parse_settings(set_ or [], "--set"))
    policies = [parse_policy(text) for text in policy]
    for path in (out, plot):
        if path is not None:
            check_writable(path)
    if out is not None and plot is not None and out.resolve() == plot.resolve():
        raise InputError(f"--out and --plot must name two files, got {str(out)!r} twice")
    if plot is not None:
        checked_ending(plot, "--plot")
    elif bounds:
        raise InputError("--bounds draws into the figure of --plot: name one, as in --plot a.png")
    result, interrupted = finished(
        lambda: simulation.simulate(
            policies, chosen, n, runs, seed, jobs, checkpoints,
            method=method, shuffle=shuffle, delay=delay, missing=missing, batch=batch,
            forgetting=forgetting, store=store, backend=backend, address=address,
            progress=True,
        )
    )  # fmt: skip
    if json_:
        print_json(result.document() | ({"interrupted": True} if interrupted else {}))
    else:
        _show_result(result)
    if out is not None:
        result.save(out)
    if plot is not None:
        save_figure(result.plot(bounds=bounds).figure, plot)
    if interrupted:
        played = {outcome.label for outcome in result.outcomes}
        others = ", ".join(each.label for each in policies if each.label not in played)
        also = f" None of {others} was." if others else ""
        what = f"{ending()}: these are the runs that were finished.{also}"
        print(what, file=sys.stderr)
        sys.exit(status())


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
            *(with_error(row[f"{k}_mean"], row[f"{k}_se"]) for k in ("expected", "realised")),
            result.problem.name_of(*row["best_pair"]) if result.problem else str(row["best_pair"]),
            "?" if row["found"] is None else f"{row['found']:.0%}",
            f"{row['seconds']:.2f}",
        )
    show(table)


def with_error(mean: float, se: float | None) -> str:
    """A mean with its standard error, where there is one."""
    return f"{mean:,.1f}" if se is None else f"{mean:,.1f} ± {se:,.1f}"
