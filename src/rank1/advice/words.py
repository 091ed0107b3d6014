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


def about(number: float, horizon: int, down: bool = False) -> str:
    """A number rounded up (or down) to two significant digits, so that "within" it stays true.

    It has more digits if the rounded number would be on the other side of the horizon.

    >>> about(50348.0, 50_000), about(50348.0, 50_000, down=True), about(12, 20)
    ('51,000', '50,300', '12')
    >>> about(49_912, 50_000), about(49_912, 49_950)
    ('50,000', '49,920')
    """
    unit = 10 ** max(int(math.log10(number)) - 1, 0)
    while True:
        rounded = (math.floor if down else math.ceil)(number / unit) * unit
        if unit == 1 or (rounded <= horizon) == (number <= horizon):
            return f"{rounded:,}"
        unit //= 10


def earner(figures: list[dict[str, Any]], able: list[Policy], horizon: int) -> tuple[Policy, str]:
    """The best policy for "earn", and the verdict on it.

    The best is the first, which is the goal's default, unless another is clearly better. The
    verdict is "worth" using, "nothing" if no policy gains anything, or "unknown" if the horizon is
    longer than what was simulated and no policy gained much.
    """
    rows = [[row for row in figures if row["policy"] == policy.label] for policy in able]
    gains = [sum(row["gain"] for row in own) for own in rows]
    most = gains.index(max(gains))
    noise = math.hypot(*(row["gain_se"] for k in (0, most) for row in rows[k]))
    k = most if gains[most] - gains[0] > 2 * noise else 0
    best, mine = able[k], rows[k]
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
