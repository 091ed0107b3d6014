"""rank1 simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rank1.cli import options
from rank1.cli.app import app, end, finished, print_json, show
from rank1.cli.options import integer, number, number_or_settings, option, problem_of
from rank1.errors import InputError


@app.command(
    epilog="Example: rank1 simulate --problem spike --set K=8 --set L=8 --set p_u=0.7 --set "
    "p_v=0.7 --set delta_u=0.2 --set delta_v=0.2 --policy rank1elim --n 2e6 --runs 20"
)
def simulate(
    problem: options.ProblemName,
    policy: options.Policies,
    set_: options.Set = None,
    n: Annotated[int, integer("Number of steps.")] = 2_000_000,
    runs: Annotated[int, integer("Runs of each policy.")] = 20,
    seed: options.Seed = 1,
    jobs: options.Jobs = 1,
    checkpoints: options.Checkpoints = 100,
    method: Annotated[
        str, option("auto, steps (every step) or stages (whole stages at once).")
    ] = "auto",
    shuffle: options.Shuffle = False,
    delay: options.Delay = "0",
    missing: options.Missing = 0.0,
    batch: options.Batch = 1,
    drift: options.Drift = None,
    forgetting: Annotated[float | None, number("Half-life of learned data, in rewards.")] = None,
    store: options.Store = None,
    backend: options.Backend = "threads",
    address: options.Address = None,
    out: Annotated[Path | None, option("Write the runs to this Parquet file.")] = None,
    plot: Annotated[Path | None, option("Plot the curves to this .png, .svg or .pdf file.")] = None,
    bounds: Annotated[bool, option("Add the theoretical bounds to the plot.", "--bounds")] = False,
    json_: options.Json = False,
) -> None:
    """Play policies on a problem and print their regret."""
    from rank1 import simulation
    from rank1.atomic import check_writable
    from rank1.plots import checked_ending, save_figure
    from rank1.settings import parse_policy

    chosen = problem_of(problem, set_)
    policies = [parse_policy(text) for text in policy]
    late = number_or_settings(delay, "--delay")
    drifts = None if drift is None else number_or_settings(drift, "--drift")
    for path in (out, plot):
        if path is not None:
            check_writable(path)
    if out is not None and plot is not None and out.resolve() == plot.resolve():
        raise InputError("plot", str(plot), "a different file from --out")
    if plot is not None:
        checked_ending(plot, "--plot")
    elif bounds:
        hint = "bounds are part of a plot; add --plot a.png"
        raise InputError("plot", None, "given with --bounds", hint, got="none")
    result, interrupted = finished(
        lambda: simulation.simulate(
            policies, chosen, n, runs, seed, jobs, checkpoints,
            method=method, shuffle=shuffle, delay=late, missing=missing, batch=batch,
            drift=drifts, forgetting=forgetting, store=store, backend=backend, address=address,
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
        also = f" No run of {others} was." if others else ""
        end(f": these are the runs that were completed.{also}")


def _show_result(result: Any) -> None:
    from rank1.grid import product_text
    from rank1.statistics import with_error
    from rank1.tables import table

    about, sides = result.about, result.about["sides"]
    title = f"{about['name']} {product_text(sides)}, n = {result.n:,}, seed {result.seed}"
    best = "best pair" if len(sides) == 2 else "best arm"
    regret = [f"+{kind} regret" for kind in ("expected", "realised")]
    columns = "policy", "+runs", *regret, f"+{best}", "+found", "+seconds"
    rows = [
        (
            row["policy"], row["runs"],
            *(with_error(row[f"{k}_mean"], row[f"{k}_se"]) for k in ("expected", "realised")),
            result.problem.name_of(result.problem.grid.arm(row["best_arm"])),
            f"{row['found']:.0%}", f"{row['seconds']:.2f}",
        )
        for row in result.summary().iter_rows(named=True)
    ]  # fmt: skip
    show(table(*columns, title=title, rows=rows))
