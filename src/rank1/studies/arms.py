"""Figures for the arms and levels of a study: the arms with the largest means, and totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rank1.studies.state import StudyState

__all__ = ["leading_arms", "level_totals"]

Floats = NDArray[np.float64]

#: The number of arms to list.
LISTED = 10
#: The totals of a retired level.
NO_TOTALS = {"reports": 0, "mean": None, "shown": 0}


def level_totals(
    state: StudyState, won: Floats, counts: Floats, pending: NDArray[np.int64]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return rewards, their average and exposures, by side and active level."""
    low, high = state.spec.reward_range
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for axis, side in enumerate(state.labels):
        others = tuple(k for k in range(counts.ndim) if k != axis)
        sums = (each.sum(axis=others).tolist() for each in (won, counts, pending))
        labels = state.living_labels(side)
        found[side] = {
            label: {
                "reports": count,
                "mean": low + (high - low) * total / count if count else None,
                "shown": count + waiting,
            }
            for label, total, count, waiting in zip(labels, *sums, strict=True)
        }
    return found


def leading_arms(
    state: StudyState,
    won: Floats,
    counts: Floats,
    pending: NDArray[np.int64],
    out: NDArray[np.bool_],
    leader: tuple[str, ...] | None,
) -> list[dict[str, Any]]:
    """Return the arms with the largest means, in descending order."""
    from rank1 import stopping

    tried = np.flatnonzero(counts)
    s, n = won.ravel()[tried], counts.ravel()[tried]
    some = np.argsort(-s / n, kind="stable")[:LISTED]
    if not len(some):
        return []
    # Each interval is as wide as if intervals for all arms had been requested.
    spent = (1 - state.spec.confidence) * len(some) / counts.size
    low, high = state.spec.reward_range
    ends = stopping.mean_intervals(s[some], (n - s)[some], 1 - spent)
    lower, upper = (low + (high - low) * each for each in ends)
    names = [state.living_labels(side) for side in state.labels]
    everything = counts.sum() + pending.sum()
    found = []
    for k, place in enumerate(some.tolist()):
        at = np.unravel_index(int(tried[place]), counts.shape)
        labels = tuple(side[int(level)] for side, level in zip(names, at, strict=True))
        found.append(
            {
                "levels": list(labels),
                "mean": float(low + (high - low) * s[place] / n[place]),
                "interval": [float(lower[k]), float(upper[k])],
                "count": int(n[place]),
                "share": float((n[place] + pending[at]) / everything),
                "state": "leads" if labels == leader else "out" if out[at] else "",
            }
        )
    return found
