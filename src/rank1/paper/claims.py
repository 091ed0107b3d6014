"""Sentences of the paper, each with the figures that support or contradict it."""

from __future__ import annotations

import math
from typing import Any

from rank1.paper.published import N

__all__ = [
    "DOUBLES",
    "NOT_QUADRATIC",
    "claim",
    "claim_line",
    "combined",
    "figures_of",
    "headline",
    "judged",
    "verdict",
    "z_of",
]

#: Claims that several experiments test; the page merges claims with exactly these words.
DOUBLES = "“the regret doubles when K and L are doubled, and when Δᵁ and Δⱽ are halved”"
NOT_QUADRATIC = "“the regret is not quadratic in 1/μ”"

VERDICTS = ("holds", "holds under a reading", "holds in part", "doesn't hold", "not judged")


def z_of(regret: dict[str, Any], shown: float, runs: int, shown_runs: int) -> float | None:
    """How far our mean is from a published one, in standard errors; None if there is no spread.

    The standard deviation is ours for both: a few runs of a skewed law say little about it.
    """
    error = (regret["std"] or 0.0) * math.sqrt(1 / runs + 1 / shown_runs)
    return float((regret["mean"] - shown) / error) if error else None


def claim(
    claim: str,
    each: list[bool],
    figures: list[float],
    meaning: str,
    *,
    reading: bool = False,
    any_n: bool = False,
) -> dict[str, Any]:
    """A claim of the paper, its own words in quotation marks, as plain values.

    `each` says whether it holds in each of its parts or cases. `meaning` says what the measured
    figures are, and by which criterion it holds. `reading`: all of it holds under another reading
    of its words, given in `meaning`. `any_n`: it can be judged with any number of steps.
    """
    return {
        "claim": claim,
        "holds": all(each),
        "each": each,
        "figures": figures,
        "meaning": meaning,
        "reading": reading,
        "any_n": any_n,
    }


def judged(claims: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """The claims, without verdicts if n is too short or the data are generated.

    The paper is about two million steps, too many to judge from a few, and about real ratings.

    >>> short = judged([claim("It flattens.", [False], [0.9], "slope")], 1000)
    >>> verdict(short[0])
    'not judged'
    """
    found = []
    for each in claims:
        why = each.get("why")
        if why is None and n < N and not each["any_n"]:
            why = "a short run"
        found.append(each if why is None else each | {"holds": None, "why": why})
    return found


def verdict(claim: dict[str, Any]) -> str:
    """One of `VERDICTS`.

    >>> verdict(claim("It is large and red.", [True, False], [7], "size"))
    'holds in part'
    >>> verdict(claim("It is red.", [False], [7], "size") | {"holds": None})
    'not judged'
    """
    if claim["holds"] is None:
        return "not judged"
    if claim["holds"]:
        return "holds"
    if claim["reading"]:
        return "holds under a reading"
    return "holds in part" if any(claim["each"]) else "doesn't hold"


def combined(verdicts: list[str]) -> str:
    """The verdict on a claim that several experiments test; unjudged ones don't count.

    >>> combined(["holds", "not judged"]), combined(["holds", "doesn't hold"])
    ('holds', 'holds in part')
    """
    found = {name for name in verdicts if name != "not judged"} or {"not judged"}
    if len(found) == 1:
        return found.pop()
    # It may hold everywhere except for a second reading.
    readings = {"holds", "holds under a reading"}
    return "holds under a reading" if found == readings else "holds in part"


def headline(verdicts: list[str], reasons: list[str]) -> str:
    """How many claims have each verdict; and why some have none.

    >>> headline(["holds", "holds", "not judged"], ["generated data"])
    '2 hold, 1 not judged (generated data)'
    """
    counts = {name: verdicts.count(name) for name in VERDICTS}
    parts = [
        f"{count} {name if count == 1 else name.replace('holds', 'hold').replace('does', 'do')}"
        for name, count in counts.items()
        if count
    ]
    why = f" ({', '.join(sorted(set(reasons)))})" if reasons and counts["not judged"] else ""
    return ", ".join(parts) + why


def figures_of(claim: dict[str, Any]) -> str:
    """The figures in a few digits, and what they are.

    >>> figures_of({"figures": [2.0431, 12.5], "meaning": "factors"})
    '2.04, 12.5: factors'
    """
    numbers = ", ".join(f"{figure:.3g}" for figure in claim["figures"])
    return f"{numbers}: {claim['meaning']}"


def claim_line(claim: dict[str, Any]) -> str:
    """A claim with its verdict and figures, on one line."""
    return f"{verdict(claim)}: {claim['claim']} ({figures_of(claim)})"
