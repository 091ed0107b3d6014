"""Sides, shares and bets: find the best level of each side from counts by version, at any time.

Each side's level is drawn by known shares, independently of the other sides. A *version* is a
numbered set of shares, with the leaders and the fit that its bets use. All functions are pure: they
take counts and values, return values, and keep no state.

- `Design`: the settings that never change: sides, confidence, reward range, floors,
- `first_version`, then `next_version` whenever `is_due` returns True,
- `start` and `fold`: the wealth of the bets, from `Counts` by version, arm and reward,
- `gridded`: counts of bounded size, whatever the rewards,
- `verdict`: which levels are eliminated, and whether the best arm is known,
- `any_grid` and `flattened`: a verdict from the same draws that assumes nothing about the grid,
- `lifts`: intervals for the lift of each level over the leader, or over a control; `arm_lift`: an
  interval for the lift of the leaders' arm,
- `harmful`: which levels are worse than the control on a second metric,
- `uneven`: whether visitors are missing, because levels aren't recorded as often as drawn,
- `forecast`: how many more reports a verdict will take,
- `judge`: verdict, lifts and the next version from a table of counts, for tests that live in a
  warehouse; `first_shares` starts such a test, `counts_sql` is the query that makes the table,
- `personalise`: whether the best level differs between segments; `gain`: what that may be worth.

`rank1.BetElim` is the policy that plays this design, with the same compiled functions.
"""

from __future__ import annotations

from rank1.design.absences import Uneven, uneven
from rank1.design.counts import Counts, gridded
from rank1.design.flat import any_grid, flat_arms, flattened
from rank1.design.forecasting import Forecast, forecast
from rank1.design.guardrails import harm_threshold, harmful
from rank1.design.intervals import ArmLift, arm_lift, lifts
from rank1.design.judging import Judgement, judge
from rank1.design.personalisation import Gain, Personalised, gain, personalise
from rank1.design.share_document import first_shares
from rank1.design.values import Design, Totals, Version, Wealth
from rank1.design.versions import first_version, is_due, next_version, padded, restarted
from rank1.design.warehouse import DIALECTS, counts_sql
from rank1.design.wealth import (
    Verdict,
    fold,
    padded_totals,
    padded_wealth,
    start,
    totals,
    verdict,
)

__all__ = [
    "DIALECTS",
    "ArmLift",
    "Counts",
    "Design",
    "Forecast",
    "Gain",
    "Judgement",
    "Personalised",
    "Totals",
    "Uneven",
    "Verdict",
    "Version",
    "Wealth",
    "any_grid",
    "arm_lift",
    "counts_sql",
    "first_shares",
    "first_version",
    "flat_arms",
    "flattened",
    "fold",
    "forecast",
    "gain",
    "gridded",
    "harm_threshold",
    "harmful",
    "is_due",
    "judge",
    "lifts",
    "next_version",
    "padded",
    "padded_totals",
    "padded_wealth",
    "personalise",
    "restarted",
    "start",
    "totals",
    "uneven",
    "verdict",
]
