"""Figures in words, for the goal "earn" and for both."""

from __future__ import annotations

import math
from typing import Any

from rank1.advice.assumed import AssumedGrid
from rank1.policies import DEFAULT_POLICY, Policy
from rank1.statistics import with_error

__all__ = ["about", "by_grid", "earn_words", "earner", "share", "study_default", "table_of"]

#: A policy with less than this share of the possible gain isn't worth having.
WORTH = 0.1


def about(number: float) -> str:
    """A number with two significant digits.

    >>> about(67416.0), about(512), about(12)
    ('67,000', '510', '12')
    """
    return f"{float(f'{number:.2g}'):,.0f}"


def earner(figures: list[dict[str, Any]], able: list[Policy], horizon: int) -> tuple[Policy, str]:
    """The best policy for "earn", and the verdict on it.

    The verdict is "worth" using, "nothing" if no policy gains anything, or "unknown" if the horizon
    is longer than what was simulated and no policy gained much.
    """
    best = _best_earner(figures, able)
    mine = [row for row in figures if row["policy"] == best.label]
    if max(row["gain"] - 2 * row["gain_se"] for row in mine) >= WORTH:  # not by luck
        return best, "worth"
    return best, "unknown" if mine[0]["steps"] < horizon else "nothing"


def earn_words(
    grids: list[AssumedGrid],
    figures: list[dict[str, Any]],
    best: Policy,
    verdict: str,
    horizon: int,
    halves: list[str],
) -> list[str]:
    """The recommended policy for "earn", or that it isn't worth it, and why.

    If the verdict is "nothing", `halves` says for each grid when half of the possible gain would be
    reached.
    """
    words = []
    for number, (grid, rows) in enumerate(by_grid(grids, figures)):
        own = next(row for row in rows if row["policy"] == best.label)
        others = "".join(
            f", {row['policy']} {row['reward']:,.0f}" for row in rows if row is not own
        )
        short = "" if own["steps"] == horizon else f" in the first {own['steps']:,} pulls"
        rest = f"; {halves[number]}" if halves else f" (expected regret {own['regret']:,.0f})"
        words.append(
            f"If {grid.words}, then {best.label} earns {own['reward']:,.0f}{short}, an equal "
            f"split {own['equal_split']:,.0f}{others}. {best.label} gains {share(own['gain'])} of "
            f"what the best {grid.arm} alone would gain over an equal split{rest}."
        )
    steps = figures[0]["steps"]
    take = f"Use {best.label}{study_default(best.label, 'earn')}"
    if verdict == "worth":
        part = f", judging by the first {steps:,} of {horizon:,} pulls" if steps < horizon else ""
        return [f"{take}{part}.", *words]
    none = f"no policy gains {WORTH:.0%} of what could be gained"
    if verdict == "unknown":
        return [
            f"{take}, or simulate more first: in the first {steps:,} of {horizon:,} pulls {none}. "
            "A longer simulation would take too long here; use `rank1.simulate`.",
            *words,
        ]
    return [
        f"Don't expect to earn more than an equal split does: in {horizon:,} pulls {none}. "
        f"Keep what you have, or merge {grids[0].levels}.",
        *words,
    ]


def _best_earner(figures: list[dict[str, Any]], able: list[Policy]) -> Policy:
    """The first policy, which is the goal's default, unless another is clearly better."""
    rows = [[row for row in figures if row["policy"] == policy.label] for policy in able]
    gains = [sum(row["gain"] for row in own) for own in rows]
    best = gains.index(max(gains))
    noise = math.hypot(*(row["gain_se"] for k in (0, best) for row in rows[k]))
    return able[best if gains[best] - gains[0] > 2 * noise else 0]


def table_of(goal: str, figures: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The main figures as a table for people: its header and its rows."""
    header = ["grid", "lift", "policy", "runs"]
    if goal == "find":
        header += ["stop within the horizon", "pulls: half", "90%", "wrong"]
    else:
        header += ["pulls", "expected regret", "reward", "gain"]
    rows = []
    for row in figures:
        cells = [row["shape"], f"{row['lift']:.0%}", row["policy"], str(row["runs"])]
        if goal == "find":
            pulls = [
                f"{'> ' if row[cut] else ''}{row[name]:,.0f}"
                for name, cut in (("median", "cut"), ("p90", "cut_p90"))
            ]
            within = f"{'≥ ' if row['given_up'] else ''}{row['within']:.0%}"
            cells += [within, *pulls, str(row["wrong"])]
        else:
            regret = with_error(row["regret"], row["regret_se"], 0)
            cells += [f"{row['steps']:,}", regret, f"{row['reward']:,.0f}", share(row["gain"])]
        rows.append(cells)
    return header, rows


def study_default(label: str, goal: str) -> str:
    """A clause that says that studies use this policy, if they do."""
    return f", the default of a study with the goal {goal}" if label == DEFAULT_POLICY[goal] else ""


def share(value: float) -> str:
    """A share as a percentage, without a minus before 0.

    >>> share(0.123), share(-0.001)
    ('12%', '0%')
    """
    return f"{round(value, 2) + 0.0:.0%}"


def by_grid(
    grids: list[AssumedGrid], figures: list[dict[str, Any]]
) -> list[tuple[AssumedGrid, list[dict[str, Any]]]]:
    """The rows of each grid."""
    return [
        (grid, [f for f in figures if (f["shape"], f["lift"]) == (grid.shape, grid.lift)])
        for grid in grids
    ]
