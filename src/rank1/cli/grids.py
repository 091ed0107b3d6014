"""rank1 grids."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rank1.cli.app import app, print_json, show
from rank1.cli.options import Jobs, Json, Seed, integer

#: Policies whose regret is shown, and policies that are played until they may stop.
EARN = ("uts", "thompson", "kl_ucb", "rank1elim_kl", "uniform")
FIND = ("top_two", "uts", "uniform")
#: Among many small grids, only those that reject rank one at this level are shown.
LEVEL = 0.05


@app.command(epilog="Example: rank1 grids hillstrom_history --runs 5 --n 20000 --pulls 20000")
def grids(
    grid: Annotated[
        list[str] | None,
        typer.Argument(
            help="hillstrom_history, hillstrom_recency, facebook_ads or upworthy; or a CSV file "
            "with the columns row, column, trials, successes. Default: all four."
        ),
    ] = None,
    n: Annotated[int, integer("Steps for regret.")] = 100_000,
    pulls: Annotated[
        int, integer("Number of pulls after which a run ends without a stop.")
    ] = 1_000_000,
    runs: Annotated[int, integer("Runs of each policy.")] = 20,
    replays: Annotated[int, integer("Number of simulated grids for the bootstrap p-value.")] = 199,
    seed: Seed = 1,
    jobs: Jobs = 1,
    json_: Json = False,
) -> None:
    """Test whether real grids have rank one, and play policies on them.

    Of the 46 tests of headlines × images, only those that reject rank one at 5% are shown.
    """
    from rank1 import checks
    from rank1.datasets import grid_problem
    from rank1.grids import TABLES, about_fit, about_play, tables
    from rank1.settings import parse_policy

    runs, n = checks.integer("runs", runs, 1), checks.integer("n", n, 1)
    pulls = checks.integer("pulls", pulls, 1)
    replays = checks.integer("replays", replays, 0)
    names = grid or list(TABLES)
    chosen = [(table, len(tables(name)) > 1) for name in names for table in tables(name)]
    earn, find = [parse_policy(name) for name in EARN], [parse_policy(name) for name in FIND]
    told: list[dict[str, Any]] = []
    together = {"grids": 0, "rejected": 0, "deviance": 0.0, "degrees_of_freedom": 0}
    for table, one_of_many in chosen:
        if one_of_many:
            facts = about_fit(table, 0)
            together["grids"] += 1
            together["rejected"] += facts["chi2_p"] < LEVEL
            together["deviance"] += facts["deviance"]
            together["degrees_of_freedom"] += facts["degrees_of_freedom"]
            if facts["chi2_p"] >= LEVEL:
                continue
        facts = about_fit(table, replays, seed)
        facts["play"] = about_play(
            grid_problem(table), earn, find, n, pulls, runs, seed, jobs, progress=True
        )
        told.append(facts)
        if not json_:
            for part in _shown(facts):
                show(part)
    if json_:
        print_json({"grids": told} | ({"upworthy": together} if together["grids"] else {}))
    elif together["grids"]:
        print(
            "{grids} tests of headlines × images: {rejected} reject rank one at 5% (χ²); together "
            "their deviance is {deviance:.1f} on {degrees_of_freedom}.".format(**together)
        )


def _shown(facts: dict[str, Any]) -> list[Any]:
    from rank1.statistics import with_error
    from rank1.tables import table

    title = "{grid} {K}×{L}, {trials:,} trials, {successes:,} successes".format(**facts)
    about = table(title=title)
    about.show_header = False
    p = facts["bootstrap_p"]
    about.add_row(
        "deviance from rank one",
        "{deviance:.1f} on {degrees_of_freedom}, p = {chi2_p:.3f} by χ²".format(**facts)
        + (f", {p:.3f} by bootstrap" if p is not None else ""),
    )
    about.add_row("share of the variation explained", f"{facts['explained']:.1%}")
    about.add_row("best pair observed", " · ".join(facts["best_pair"]))
    about.add_row("best pair of the fit", " · ".join(facts["best_pair_of_fit"]))
    about.add_row("pairs that are best in their row and column", str(len(facts["local_maxima"])))
    for side in ("row", "column"):
        factors = (f"{each['name']} {each['factor']:.2f}" for each in facts[f"{side}_effects"])
        about.add_row(f"{side} effects", ", ".join(factors))
    for cell in facts["deviating"]:
        words = "{rate:.3g} observed, {fitted:.3g} fitted, residual {residual:+.1f}".format(**cell)
        about.add_row("deviates: " + " · ".join(cell["pair"]), words)
    if facts["note"]:
        about.add_row("note", facts["note"])

    play = facts["play"]
    columns = "+expected regret", "+of equal split", "+at a best pair"
    regret = table(f"after {play['n']:,} steps", *columns)
    equal = next(each for each in play["regret"] if each["policy"] == "uniform")
    for each in play["regret"]:
        mean, se = each["expected_regret"]["mean"], each["expected_regret"]["se"]
        share = mean / equal["expected_regret"]["mean"] if equal["expected_regret"]["mean"] else 1.0
        found = f"{each['found']} of {play['runs']}"
        regret.add_row(each["policy"], with_error(mean, se), f"{share:.1%}", found)

    stopping = table("until the rule stops", "+stopped", "+wrong", "+pulls")
    for each in play["stopping"]:
        label = each["policy"] + (", assuming rank one" if each["rank_one"] else ", any grid")
        least = "" if each["stopped"] == play["runs"] else "> "
        pulls = least + with_error(each["pulls"]["mean"], each["pulls"]["se"])
        stopping.add_row(label, f"{each['stopped']} of {play['runs']}", str(each["wrong"]), pulls)
    return [about, regret, stopping]
