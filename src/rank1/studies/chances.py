"""The chance that each level is the best of its side: for information, not for stopping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rank1.documents import Best

__all__ = ["chances_of"]

Floats = NDArray[np.float64]

#: The number of draws for a side, and the most random numbers to use for it.
DRAWS, MOST = 4000, 2**20


def chances_of(best: Best, low: float, high: float) -> dict[str, list[float | None]]:
    """Return how often each active level wins among draws around the fit, by side.

    A level without reports has None. The draws are normal on the logarithmic scale, with the
    standard error of a level's own rewards. They don't correct for repeated looks: stopping when a
    daily look shows 95% would be wrong in far more than 5 of 100 studies.
    """
    found: dict[str, list[float | None]] = {}
    for side, labels in best.sides.items():
        told = {level["label"]: level for level in best.levels[side]}
        levels = [told[label] for label in labels]
        counts = np.array([level["reports"] for level in levels], np.float64)
        means = np.array(
            [low if level["mean"] is None else level["mean"] for level in levels], np.float64
        )
        living = np.array([level["living"] for level in levels])
        sums = counts * (means - low) / (high - low)
        found[side] = _chances(counts, sums, best.effects[side][:, 0], living)
    return found


def _chances(
    counts: Floats, sums: Floats, effects: Floats, living: NDArray[np.bool_]
) -> list[float | None]:
    """Compute chances from each level's count, sum of scaled rewards and estimated factor.

    >>> _chances(np.array([1000, 1000]), np.array([100.0, 200.0]), np.full(2, np.nan),
    ...          np.array([True, True]))
    [0.0, 1.0]
    """
    if not living.any() or not (counts[living] > 0).all():
        return [None] * len(counts)
    means = (sums + 0.5) / (counts + 1.0)  # neither 0 nor 1
    factors = effects if (np.isfinite(effects[living]) & (effects[living] > 0)).all() else means
    centre = np.log(np.where(living, factors, 1.0))
    error = np.sqrt((1 - means) / (means * (counts + 1.0)))
    runs = max(1, min(DRAWS, MOST // len(counts)))
    draws = centre + error * np.random.default_rng(1).standard_normal((runs, len(counts)))
    draws[:, ~living] = -np.inf
    first = np.bincount(draws.argmax(axis=1), minlength=len(counts)) / runs
    return [
        round(float(part), 3) if lives else None for part, lives in zip(first, living, strict=True)
    ]
