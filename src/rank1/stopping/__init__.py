"""When may one stop? Evidence that is valid however the pairs were chosen and whenever one looks.

Plain functions over counts, so that they serve on anybody's data: `verdict` says whether the
leading pair may be called best, `relative_intervals` and `effects` draw the same evidence so that
picture and verdict never disagree, and `mean_intervals` bounds every mean. A `Watch` is the
compiled form for a look after every report.

All rest on one fact about two pairs, see `rank1.stopping.evalues`.
"""

from __future__ import annotations

from rank1.stopping.intervals import (
    Effects,
    RelativeIntervals,
    effects,
    mean_intervals,
    relative_intervals,
)
from rank1.stopping.rule import Verdict, log_e_value, verdict
from rank1.stopping.watch import Watch, may_stop, report, start_watch

__all__ = [
    "Effects",
    "RelativeIntervals",
    "Verdict",
    "Watch",
    "effects",
    "log_e_value",
    "may_stop",
    "mean_intervals",
    "relative_intervals",
    "report",
    "start_watch",
    "verdict",
]
