"""When may one stop? Evidence that is valid however the arms were chosen and whenever one looks.

Plain functions over counts, so that they serve on anybody's data: `verdict` says whether the
leading arm may be called best, `relative_intervals` and `effects` draw the same evidence so that
picture and verdict never disagree, and `mean_intervals` bounds every mean. A `Watch` is the
form for a look after every report, also from compiled code.

All rest on one fact about two arms, see `rank1.stopping.evalues`.
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
