"""Is a grid of rank one? The maximum-likelihood fit of u[i]·v[j] to counts, and how far off it is.

`fit` finds the likeliest grid of rank one, `p_value` says whether the counts contradict it.
"""

from __future__ import annotations

from rank1.fit.model import Cell, Fit, fit
from rank1.fit.replay import Replay, fixed_design, p_value

__all__ = ["Cell", "Fit", "Replay", "fit", "fixed_design", "p_value"]
