"""Does a grid have rank one? The likeliest products of factors, and how far off they are.

`fit` finds the likeliest grid of rank one, `p_value` says whether the counts contradict it, and
`second_peak` whether they could hide an arm that does.
"""

from __future__ import annotations

from rank1.fit.model import Deviation, Fit, fit
from rank1.fit.peaks import Peak, powers, second_peak
from rank1.fit.replay import Replay, fixed_design, p_value

__all__ = [
    "Deviation",
    "Fit",
    "Peak",
    "Replay",
    "fit",
    "fixed_design",
    "p_value",
    "powers",
    "second_peak",
]
