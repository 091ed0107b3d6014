"""Figure 3: does it work on movie ratings, which don't have rank one?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from rank1.documents import to_document
from rank1.paper import Options
from rank1.paper.artefact import Computing
from rank1.paper.claims import claim
from rank1.paper.curves import EARLY, LATE, concave, mark, slopes
from rank1.paper.figure3_panels import draw
from rank1.paper.movielens import RatingProblem, Ratings, obtain, rating_problem
from rank1.paper.movielens.problem import SCALES, STARS
from rank1.policies import POLICIES
from rank1.simulation import Series
from rank1.simulation.result import Outcome
from rank1.statistics import mean_and_error, with_error
from rank1.tables import table

__all__ = ["compute", "draw", "show"]

#: The paper's two policies, and two later ones.
NAMES = ("rank1elim", "ucb1", "uts", "rank1elim_kl")
#: The value of s stars on each of the scales of `rating_problem`.
WORTH = {"unit": "(s − 1)/4", "fifths": "s/5", "stars": "s"}
#: The shares of the steps at which regret is printed.
MARKS = (EARLY, 0.25, 0.5, LATE, 1.0)


def compute(options: Options) -> Computing:
    """The grid of ratings, the regret of each policy on it, and the paper's claims about them."""
    data = obtain(options.data_dir, accept_licence=options.accept_licence)
    grid = rating_problem(
        data,
        seed=options.block_seed,
        iterations=options.iterations,
        sigma=options.sigma,
        scale=options.scale,
    )
    names = NAMES if grid.scale != "stars" else NAMES[:2]  # the later two need rewards in [0, 1]
    policies = [POLICIES[name]() for name in names]
    series = [Series.of(policy, grid.problem, options.n, 100, options.seed) for policy in policies]
    outcomes = yield [(one, options.runs) for one in series]
    marks = series[0].checkpoints
    entries = [
        outcome.entry(marks)
        | {"label": outcome.label}
        | slopes(outcome, marks)
        | _ends(outcome, grid)
        for outcome in outcomes
    ]
    return {
        "data": _about(data, grid),
        # The problem by its settings; its probabilities would be far too long.
        "problem": {
            "name": "ratings",
            "K": grid.problem.K,
            "L": grid.problem.L,
            "settings": {
                "block_seed": options.block_seed,
                "iterations": options.iterations,
                "sigma": grid.sigma,
                "sigma_estimated": options.sigma == "estimated",
                "scale": grid.scale,
            },
        },
        "completion": grid.completion.report(),
        "singular_values": grid.singular_values[: grid.rank].tolist(),
        "best": _pair(grid, grid.problem.best_arm),
        "policies": entries,
        "claims": _claims(entries, grid, concave(outcomes[0], marks)),
        "groups": grid.groups,
        "titles": grid.titles,
        "observed": to_document(grid.observed.round(3)),
        "completed": to_document(grid.completed.round(3)),
    }


def _about(data: Ratings, grid: RatingProblem) -> dict[str, Any]:
    completion = grid.completion
    cells = len(completion.U) * len(completion.V)
    return {
        "label": grid.label,
        "stand_in": grid.stand_in,
        "users": len(data.genders),
        "ratings": len(data.stars),
        "groups": len(completion.U),
        "movies": len(completion.V),
        "seen": completion.entries / cells,
        "seen_in_block": float(np.isfinite(grid.observed).mean()),
        "stripes": _stripes(grid),
    }


def _stripes(grid: RatingProblem) -> dict[str, Any]:
    """Movies completed to over a star below the average of their own ratings: pale in panel b.

    The completion starts with zeros for missing ratings. A movie with few ratings is only slowly
    pulled away from there, and the descent is stopped before that.
    """
    completed = grid.completed.mean(axis=0)
    short = completed < grid.movie_averages - 1
    some = bool(short.any())
    return {
        "movies": int(short.sum()),
        "rated_by": int(grid.rated_by[short].max(initial=0)),
        "completed": float(completed[short].mean()) if some else None,
        "average": float(grid.movie_averages[short].mean()) if some else None,
    }


def _ends(outcome: Outcome, grid: RatingProblem) -> dict[str, Any]:
    """The pairs at which runs end, the most frequent first, and what they lack in stars."""
    arms = Counter(sorted(outcome.arms)).most_common()
    found = [_pair(grid, arm) | {"runs": runs} for arm, runs in arms]
    missed = np.repeat([pair["gap"] for pair in found], [pair["runs"] for pair in found])
    return {"pairs": found, "gap": mean_and_error(missed)}


def _pair(grid: RatingProblem, arm: int) -> dict[str, Any]:
    """A pair by its names, its mean rating in stars, and how far that is below the best."""
    stars = grid.problem.probabilities @ STARS
    row, column = grid.problem.grid.levels(arm)
    return {
        "pair": [row, column],
        "group": grid.groups[row],
        "title": grid.titles[column],
        "stars": float(stars[row, column]),
        "gap": float(stars[grid.problem.best_pair] - stars[row, column]),
    }


def _claims(
    entries: list[dict[str, Any]], grid: RatingProblem, is_concave: bool
) -> list[dict[str, Any]]:
    """The paper's sentences on Figure 3; each says which data it was tested on."""
    by_name = {entry["policy"]: entry for entry in entries}

    def slopes_of(name: str) -> list[float]:
        return [by_name[name][when]["mean"] for when in ("early", "late")]

    early, late = slopes_of("rank1elim")
    values = grid.singular_values
    reading = "regret a step in the first 5% and the last 25% of the steps"
    claims = [
        claim("“The algorithm automatically detects the rank of the matrix to be 5.”",
              [grid.rank == 5], [grid.rank], "detected rank", any_n=True),
        claim("“its first eigenvalue is an order of magnitude larger than the remaining four "
              "non-zero eigenvalues”", [bool(values[0] >= 10 * values[1])],
              [float(values[0] / values[1])],
              "first over second singular value of the completed block; 10 or more counts",
              any_n=True),
        claim("“the regret of Rank1Elim is concave in the number of steps n, and flattens”",
              [is_concave, late <= early / 4], [early, late],
              f"{reading}. Concave if no tenth of the steps has a slope of over three standard "
              "errors above the one before, flat if the slope falls to a quarter or less"),
        claim("“Rank1Elim learns a near-optimal solution.”",
              [by_name["rank1elim"]["gap"]["mean"] <= 0.1], [by_name["rank1elim"]["gap"]["mean"]],
              "how far the pair it ends on is below the best, in stars, on average over the runs; "
              "0.1 or less counts"),
    ]  # fmt: skip
    if "ucb1" in by_name:
        early, late = slopes_of("ucb1")
        claims.append(
            claim("“UCB1 explores throughout because our problem has more than 10k arms.”",
                  [late >= early / 2], [early, late],
                  f"{reading}; half of the slope or more at the end counts")
        )  # fmt: skip
    why = {"why": "generated data"} if grid.stand_in else {}  # they say nothing about MovieLens
    return [
        each | {"data": grid.label, "meaning": f"{each['meaning']}; on {grid.label}"} | why
        for each in claims
    ]


def show(document: dict[str, Any]) -> list[Any]:
    """The grid, regret and slopes, and the recommendations."""
    data = document["data"]
    note = "Stand-in data: generated ratings. They say nothing about MovieLens."
    runs = f"{document['runs']} runs of {document['n']:,} steps, {document['seconds']:.1f} s"
    return [
        *([note] if data["stand_in"] else []),
        _show_grid(document),
        _show_regret(document),
        _show_slopes(document),
        _show_pairs(document),
        f"{runs}, {data['label']}.",
    ]


def _table(title: str, document: dict[str, Any], *columns: str, rows: Iterable[Any]) -> Any:
    """A table that names its data."""
    return table(*columns, title=f"{title}, {document['data']['label']}", rows=rows)


def _show_grid(document: dict[str, Any]) -> Any:
    data, completion = document["data"], document["completion"]
    problem, settings = document["problem"], document["problem"]["settings"]
    values = document["singular_values"]
    stripes, reach = data["stripes"], np.ptp(SCALES[settings["scale"]])
    rows = {
        "ratings": f"{data['ratings']:,} by {data['users']:,} users",
        "groups of gender, age and occupation": f"{data['groups']} (the paper: 241)",
        "movies": f"{data['movies']:,}",
        "pairs with a rating": f"{data['seen']:.0%}",
        "detected rank": f"{completion['rank']} (the paper: 5)",
        "residual of the completion, stars": f"{completion['residual_start']:.2f} → "
        f"{completion['residual']:.2f} in {completion['iterations']} iterations",
        "gradient of the completion": f"{completion['gradient']:.2g} of the residuals, "
        + ("converged" if completion["converged"] else "not converged: stopped early"),
        "random block": f"{problem['K']} groups × {problem['L']} movies, "
        f"seed {settings['block_seed']}",
        "movies completed more than a star too low": f"{stripes['movies']}"
        + ("; rated by at most {rated_by} groups, {completed:.1f} for {average:.1f} stars").format(
            **stripes
        )
        if stripes["movies"]
        else "none",
        "its singular values": ", ".join(f"{value:.1f}" for value in values),
        "first over second": f"{values[0] / values[1]:.1f}" if len(values) > 1 else "–",
        "a rating's standard deviation, stars": f"{settings['sigma']:.2f}"
        + (", estimated" if settings["sigma_estimated"] else ""),
        "reward of s stars": WORTH[settings["scale"]]
        + (f"; all confidence intervals {reach:.0f} times as wide" if reach > 1 else ""),
        "best pair": "{group}; {title}; {stars:.2f} stars".format(**document["best"]),
    }
    return _table("The grid", document, "what", "figure", rows=rows.items())


def _show_regret(document: dict[str, Any]) -> Any:
    entries = document["policies"]
    steps = entries[0]["steps"]
    marks = sorted({mark(steps, share) for share in MARKS})
    columns = [f"+{steps[k]:,}" for k in marks]
    rows = []
    for entry in entries:
        mean, se = (entry["expected_curve"][name] for name in ("mean", "se"))
        rows.append((entry["label"], *(with_error(mean[k], se[k], 0) for k in marks)))
    return _table("Expected regret by step", document, "policy", *columns, rows=rows)


def _show_slopes(document: dict[str, Any]) -> Any:
    entries = document["policies"]
    until, rest = entries[0]["early"]["until"], document["n"] - entries[0]["late"]["from"]
    columns = (f"+first {until:,} steps", f"+last {rest:,} steps")
    rows = []
    for entry in entries:
        figures = [entry[when] for when in ("early", "late")]
        rows.append((entry["label"], *(with_error(it["mean"], it["se"], 4) for it in figures)))
    return _table("Expected regret a step", document, "policy", *columns, rows=rows)


def _show_pairs(document: dict[str, Any]) -> Any:
    columns = ("policy", "ends on: group", "movie", "+runs", "+stars below the best")
    rows = []
    for entry in document["policies"]:
        pair, gap = entry["pairs"][0], entry["gap"]
        ends = pair["group"], pair["title"], f"{pair['runs']} of {document['runs']}"
        missed = f"{pair['gap']:.3f}", with_error(gap["mean"], gap["se"], 3)
        rows.append((entry["label"], *ends, *missed))
    return _table("What was recommended", document, *columns, "+on average", rows=rows)
