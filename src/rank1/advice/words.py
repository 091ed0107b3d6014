"""Figures in words."""

from __future__ import annotations

import math
from typing import Any

from rank1.advice.assumed import AssumedGrid
from rank1.policies import DEFAULT_POLICY, Policy

__all__ = ["about", "earn_words", "earner", "find_words", "share", "table_of"]

#: A policy that brings less than this share of what could be gained isn't worth having.
WORTH = 0.1
#: A horizon is enough where this share of the runs stop within it.
ENOUGH = 0.5


def about(number: float) -> str:
    """A number without digits that mean nothing.

    >>> about(67416.0), about(512), about(12)
    ('67,000', '510', '12')
    """
    return f"{float(f'{number:.2g}'):,.0f}"


def find_words(
    grids: list[AssumedGrid], figures: list[dict[str, Any]], able: list[Policy], horizon: int
) -> tuple[str | None, list[str]]:
    """The policy to take for "find", None where that won't do, and why."""
    labels = [policy.label for policy in able if policy.name != "uniform"]
    if not labels:  # where no other policy was simulated
        labels = [policy.label for policy in able]
    best = max(
        labels,
        key=lambda label: sum(row["within"] for row in figures if row["policy"] == label),
        default=None,
    )
    words, enough, unknown = [], 0, 0
    for grid, rows in _by_grid(grids, figures):
        *others, equal = rows
        mine = next((row for row in others if row["policy"] == best), (others or rows)[0])
        enough += mine["within"] >= ENOUGH
        open_ = mine["within"] < ENOUGH and mine["most"] < horizon and mine["at_least"] < horizon
        unknown += open_
        told = f"Within {horizon:,} pulls {mine['within']:.0%} of {mine['policy']}'s runs stop."
        if open_:
            told = (
                f"Longer runs weren't simulated; any rule needs {about(mine['at_least'])} pulls "
                "or more on average."
            )
        words.append(f"If {grid.words}: {_pulls(mine)}; {_equal_pulls(equal)}. {told}")
    if best is None or not (enough or unknown):
        made = any(policy.name == DEFAULT_POLICY["find"] for policy in able)
        asked = "" if made else f" for {' and '.join(labels)}; others weren't simulated"
        few = (
            f"Don't expect to find it: {horizon:,} pulls are too few on all grids that were "
            f"simulated{asked}. Plan for the pulls below, merge {grids[0].levels}, be content with "
            "less confidence, or measure something that happens more often. If the aim is to earn "
            "meanwhile, ask for that."
        )
        return None, [few, *words]
    take = f"Take {best}{_default(best, 'find')}, and stop when the rule says so"
    if enough == len(grids):
        all_ = f"{take}: {horizon:,} pulls are enough on all grids that were simulated."
        return best, [all_, *words]
    rest = f"{take}: {horizon:,} pulls are enough on {enough} of the {len(grids)} grids simulated."
    if unknown:
        rest += f" On {unknown} it can't be told in seconds; `rank1.identify` tells with patience."
    if enough + unknown < len(grids):
        rest += f" On {len(grids) - enough - unknown} most runs would end without an answer."
    return best, [rest, *words]


def earner(figures: list[dict[str, Any]], able: list[Policy], horizon: int) -> tuple[Policy, str]:
    """The best for "earn", and the verdict on it.

    The verdict is "worth" taking, "nothing" to be had by any policy, or "unknown" where the horizon
    is longer than what was simulated, in which no policy got far.
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
    """The policy to take for "earn", or that it isn't worth it, and why.

    `halves` says, for each grid, when half of what can be gained would be had, if that is "nothing"
    within the horizon.
    """
    words = []
    for number, (grid, rows) in enumerate(_by_grid(grids, figures)):
        own = next(row for row in rows if row["policy"] == best.label)
        others = "".join(
            f", {row['policy']} {row['reward']:,.0f}" for row in rows if row is not own
        )
        short = "" if own["steps"] == horizon else f" in the first {own['steps']:,} pulls"
        rest = f"; {halves[number]}" if halves else f" (expected regret {own['regret']:,.0f})"
        words.append(
            f"If {grid.words}: {best.label} earns {own['reward']:,.0f}{short}, an equal split "
            f"{own['equal_split']:,.0f}{others}. {best.label} brings {share(own['gain'])} of what "
            f"the best {grid.arm} would bring above an equal split{rest}."
        )
    steps = figures[0]["steps"]
    take = f"Take {best.label}{_default(best.label, 'earn')}"
    if verdict == "worth":
        part = f", going by the first {steps:,} of {horizon:,} pulls" if steps < horizon else ""
        return [f"{take}{part}.", *words]
    none = f"no policy brings {WORTH:.0%} of what could be gained"
    if verdict == "unknown":
        return [
            f"{take}, unless you have the patience to simulate more: in the first {steps:,} of "
            f"{horizon:,} pulls {none}, and what comes later can't be told in seconds; "
            "`rank1.simulate` tells it.",
            *words,
        ]
    return [
        f"Don't expect to earn more than an equal split does: in {horizon:,} pulls {none}. "
        f"Keep to what you have, or merge {grids[0].levels}.",
        *words,
    ]


def _best_earner(figures: list[dict[str, Any]], able: list[Policy]) -> Policy:
    """The first one, which is the goal's own, unless another is clearly better."""
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
            regret = f"{row['regret']:,.0f} ± {row['regret_se']:,.0f}"
            cells += [f"{row['steps']:,}", regret, f"{row['reward']:,.0f}", share(row["gain"])]
        rows.append(cells)
    return header, rows


def _default(label: str, goal: str) -> str:
    return f", as a study with the goal {goal} does" if label == DEFAULT_POLICY[goal] else ""


def share(value: float) -> str:
    """A share as a percentage, without a minus before 0.

    >>> share(0.123), share(-0.001)
    ('12%', '0%')
    """
    return f"{round(value, 2) + 0.0:.0%}"


def _pulls(row: dict[str, Any]) -> str:
    runs = f"of the runs of {row['policy']} stop within"
    if row["cut"]:
        return f"fewer than half {runs} {about(row['most'])} pulls"
    late = f", but not 90% within {about(row['most'])}" if row["cut_p90"] else ""
    return f"half {runs} {about(row['median'])} pulls" + (
        late or f", 90% within {about(row['p90'])}"
    )


def _equal_pulls(row: dict[str, Any]) -> str:
    half, name = ("fewer than half", "most") if row["cut"] else ("half", "median")
    return f"{half} of those of an equal split within {about(row[name])}"


def _by_grid(
    grids: list[AssumedGrid], figures: list[dict[str, Any]]
) -> list[tuple[AssumedGrid, list[dict[str, Any]]]]:
    return [
        (grid, [f for f in figures if (f["shape"], f["lift"]) == (grid.shape, grid.lift)])
        for grid in grids
    ]
