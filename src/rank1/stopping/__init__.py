"""Stopping rules: evidence that is valid however arms are chosen and whenever you look.

Plain functions over counts, which work on any data: `verdict` says whether the leading arm can be
declared the best, `relative_intervals` and `effects` show the same evidence, so that picture and
verdict never disagree, and `mean_intervals` bounds every mean. A `Watch` allows a look after every
report, also from compiled code.

All of them rest on one fact about two arms, see `rank1.stopping.evalues`.
"""

from __future__ import annotations

from rank1.stopping.intervals import (
    Effects,
    RelativeIntervals,
    effects,
    mean_intervals,
    relative_intervals,
)
from rank1.stopping.online import Watch, may_stop, note_report, report, start_watch
from rank1.stopping.rule import Verdict, log_e_value, verdict

__all__ = [
    "Effects",
    "RelativeIntervals",
    "Verdict",
    "Watch",
    "effects",
    "log_e_value",
    "may_stop",
    "mean_intervals",
    "note_report",
    "relative_intervals",
    "report",
    "start_watch",
    "verdict",
]
