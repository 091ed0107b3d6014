"""Sides, shares and bets: which level of each side is best, from counts by version, at any time.

Each side's level is drawn by known shares, independently of the other sides. A *version* is a
numbered set of shares, with the leaders and the fit that the bets under it use. All functions are
pure: counts and values in, values out; nothing is kept.

- `Design`: what stays the same: sides, confidence, range of rewards, floors,
- `first_version`, then `next_version` whenever it `is_due`,
- `start` and `fold`: what the bets have won, from `Counts` by version, arm and reward,
- `verdict`: which levels have gone, and whether the best arm is known,
- `any_grid` and `flattened`: the same without any assumption on the grid, from the same draws,
- `lifts`: intervals for the lift of each level over the leader, or over a control.

`rank1.BetElim` is the policy that plays it, by the same compiled functions.
"""

from __future__ import annotations

from rank1.design.intervals import lifts
from rank1.design.values import Counts, Design, Totals, Version, Wealth
from rank1.design.versions import (
    Verdict,
    any_grid,
    first_version,
    flattened,
    fold,
    is_due,
    next_version,
    start,
    totals,
    verdict,
)

__all__ = [
    "Counts",
    "Design",
    "Totals",
    "Verdict",
    "Version",
    "Wealth",
    "any_grid",
    "first_version",
    "flattened",
    "fold",
    "is_due",
    "lifts",
    "next_version",
    "start",
    "totals",
    "verdict",
]
