"""The arms and levels of a study in numbers: which arms have the largest means, by level what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rank1.studies.state import StudyState

__all__ = ["leading_arms", "level_totals"]

Floats = NDArray[np.float64]

#: Arms that are listed.
LISTED = 10
#: The totals of a level that is retired.
NO_TOTALS = {"reports": 0, "mean": None, "shown": 0}


def level_totals(
    state: StudyState, won: Floats, counts: Floats, pending: NDArray[np.int64]
) -> dict[str, dict[str, dict[str, Any]]]:
    """By side and level that lives: rewards, their average, and what was shown."""
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
    """The arms with the largest means, the largest first."""
    from rank1 import stopping

    tried = np.flatnonzero(counts)
    s, n = won.ravel()[tried], counts.ravel()[tried]
    some = np.argsort(-s / n, kind="stable")[:LISTED]
    if not len(some):
        return []
    # Each interval is as wide as if those of all arms were asked for.
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
