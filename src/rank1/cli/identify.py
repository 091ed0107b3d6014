"""rank1 identify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rank1.cli import options
from rank1.cli.app import app, end, finished, note, print_json, show
from rank1.cli.options import integer, number, number_or_settings, option, problem_of


@app.command(
    epilog="Example: rank1 identify --problem spike --set K=8 --set L=8 --set p_u=0.5 --set "
    "p_v=0.5 --set delta_u=0.2 --set delta_v=0.2 --policy bet_elim --confidence 0.95 --runs 100"
)
def identify(
    problem: options.ProblemName,
    policy: options.Policies,
    set_: options.Set = None,
    confidence: Annotated[float, number("Probability that the arm found is the best.")] = 0.95,
    tolerance: Annotated[float, number("How far the arm found may be from the best.")] = 0.0,
    n: Annotated[
        int, integer("Number of pulls after which a run ends without a stop.")
    ] = 1_000_000,
    runs: Annotated[int, integer("Runs of each policy.")] = 100,
    seed: options.Seed = 1,
    jobs: options.Jobs = 1,
    any_grid: Annotated[
        bool, option("Don't assume that the grid has rank one.", "--any-grid")
    ] = False,
    rule: Annotated[
        str,
        option("Evidence for stopping: kt, or sharp (fewer pulls, but only if means don't drift)."),
    ] = "kt",
    method: Annotated[str, option("How to play runs: auto, steps or stages.")] = "auto",
    shuffle: options.Shuffle = False,
    delay: options.Delay = "0",
    missing: options.Missing = 0.0,
    batch: options.Batch = 1,
    drift: options.Drift = None,
    store: options.Store = None,
    backend: options.Backend = "threads",
    address: options.Address = None,
    plot: Annotated[
        Path | None, option("Plot the share of stopped runs to this .png, .svg or .pdf file.")
    ] = None,
    json_: options.Json = False,
) -> None:
    """Play policies until the best arm is known, and print the number of pulls."""
    from rank1 import simulation
    from rank1.atomic import check_writable
    from rank1.plots import checked_ending, save_figure
    from rank1.settings import parse_policy

    chosen = problem_of(problem, set_)
    policies = [parse_policy(text) for text in policy]
    late = number_or_settings(delay, "--delay")
    drifts = None if drift is None else number_or_settings(drift, "--drift")
    if plot is not None:
        checked_ending(plot, "--plot")
        check_writable(plot)
    found, interrupted = finished(
        lambda: simulation.identify(
            policies, chosen, confidence, tolerance, n, runs, seed, jobs,
            rank_one=not any_grid, rule=rule, method=method, shuffle=shuffle, delay=late,
            missing=missing, batch=batch, drift=drifts, store=store, backend=backend,
            address=address, progress=True,
        )
    )  # fmt: skip
    if json_:
        print_json(found.document() | ({"interrupted": True} if interrupted else {}))
    else:
        _show(found)
    if plot is not None:
        save_figure(found.plot().figure, plot)
    ended = [each for each in found.searches if not each.stopped.all()]
    if ended and not json_:
        names = ", ".join(each.label for each in ended)
        note(f"Runs of {names} that did not stop count as n = {found.n:,} pulls.")
    if interrupted:
        end(": these are the runs that were completed.")


def _show(found: Any) -> None:
    from rank1.statistics import with_error
    from rank1.tables import table

    problem = found.problem
    title = f"{problem.description['name']} {problem.grid}, confidence {found.confidence:g}"
    if found.rule != "kt":
        title += f", {found.rule} rule"
    if found.tolerance:
        title += f", tolerance {found.tolerance:g}"
    bound = found.bound
    rows = []
    for row in found.summary().iter_rows(named=True):
        over = found.over_bound(row["policy"])
        rows.append((
            row["policy"], row["runs"], row["stopped"], row["wrong"],
            with_error(row["pulls_mean"], row["pulls_se"]),
            f"{row['pulls_median']:,.0f}", f"{row['pulls_p90']:,.0f}",
            with_error(row["regret_mean"], row["regret_se"]),
            *([] if bound is None else ["–" if over is None else f"{over:.2f}"]),
        ))  # fmt: skip
    columns = ["runs", "stopped", "wrong", "pulls", "median", "90%", "expected regret"]
    columns += [] if bound is None else ["÷ bound"]
    title = f"{title}, seed {found.seed}"
    show(table("policy", *(f"+{name}" for name in columns), title=title, rows=rows))
    if bound is not None:
        what = {
            "rank_one": "if the grid is known to have rank one",
            "unimodal": "if the grid is known to be unimodal",
            "any": "if nothing is known about the grid",
        }[bound["structure"]]
        show(f"÷ bound: average pulls divided by T*·log(1/α) = {bound['pulls']:,.0f}, {what}.")
