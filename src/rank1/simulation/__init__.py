"""Simulations: play policies on problems, many runs at a time."""

from rank1.simulation.identification import Identification, Searches, identify
from rank1.simulation.result import Outcome, Result
from rank1.simulation.runs import Interrupted, simulate
from rank1.simulation.series import Series
from rank1.simulation.trace import Trace

__all__ = [
    "Identification",
    "Interrupted",
    "Outcome",
    "Result",
    "Searches",
    "Series",
    "Trace",
    "identify",
    "simulate",
]
