"""Live studies: ask for a pair, show it, tell its reward; on a durable log."""

from __future__ import annotations

from rank1.studies.asking import Report, Suggestion
from rank1.studies.best import Best
from rank1.studies.checking import Verified
from rank1.studies.export import Replayed
from rank1.studies.fitting import StudyFit
from rank1.studies.study import Study

__all__ = ["Best", "Replayed", "Report", "Study", "StudyFit", "Suggestion", "Verified"]
