"""Live studies: ask for an arm, show it, and report its reward; stored in a durable log."""

from __future__ import annotations

from rank1.documents import (
    Best,
    Forecast,
    Imported,
    Personalised,
    Recorded,
    Replayed,
    Report,
    Suggestion,
    Verified,
)
from rank1.studies.fitting import StudyFit
from rank1.studies.study import Study

__all__ = [
    "Best",
    "Forecast",
    "Imported",
    "Personalised",
    "Recorded",
    "Replayed",
    "Report",
    "Study",
    "StudyFit",
    "Suggestion",
    "Verified",
]
