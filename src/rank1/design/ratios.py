"""Find the ratios of two levels that the reports refute, at any time, with bets as polynomials.

To bet against the null "level l is at least s times as good as level a", replace X by s·X where a
was shown. A report X of either level multiplies the wealth by

    1 + c·ρ·(s·X − m)      if it shows a
    1 − c·(1 − ρ)·(X − m)  if it shows l

whose mean is at most 1 under the null, for any m and c that are known in advance (see `bets`). The
wealth grows with s, so the ratios that aren't refuted have an upper end. For the lower end, swap a
and l.

Here m is the fitted mean of l, averaged over what the other sides show, so only the version and the
level of a report matter. Also, log(1 + y) ≥ y − y²/2 + y³/3 − γ·y⁴ for all y ≥ −y₀, with the γ that
makes both sides equal at −y₀. So the moments of the rewards turn a whole history into a polynomial
in s that is a lower bound of the log wealth. A lower bound is as valid as the wealth itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rank1.design.bets import LARGEST_MEAN, LEAST_MEAN, MOST
from rank1.design.counts import Counts, checked_counts, log_average, tally
from rank1.design.values import ROUNDING, Design, Floats, Version, checked_version

__all__ = ["History", "Shown", "largest_ratio"]

#: The ratios to compare: 2 to the powers −10 to 10, in steps of 1/4.
RATIOS = 2.0 ** np.arange(-10, 10.25, 0.25)
#: The number of bisections between two neighbouring ratios.
HALVINGS = 16
#: The degree of the polynomial.
ORDER = 4
#: The largest number of versions × levels to process at once.
ROOM = 2**20


class Shown(NamedTuple):
    """Reports of all levels, or of one level, with a row for each version."""

    shares: Floats
    fit: Floats
    #: Sums of the rewards to the powers 0 to 4.
    moments: list[Floats]

    def take(self, where: Any) -> Shown:
        """Return some of the versions or levels."""
        return Shown(self.shares[where], self.fit[where], [sums[where] for sums in self.moments])


class History:
    """All reports, by the version of the pull and the version that was current at arrival."""

    def __init__(self, design: Design, versions: Mapping[int, Version], counts: Counts) -> None:
        rows = checked_counts(design, versions, counts)
        under = rows.arrived
        betting = np.isin(under, [n for n in versions if versions[n].bets])
        self.rows, under, width = rows.take(betting), under[betting], max(versions) + 1
        pairs, self.pair = np.unique(self.rows.version * width + under, return_inverse=True)
        own, by = ([versions[n] for n in part.tolist()] for part in np.divmod(pairs, width))
        leaders = np.array([version.leaders for version in by], np.int64)
        self.design, self.leaders = design, leaders.reshape(-1, len(design.sizes))
        self.shares, self.fit = [], []
        for side, levels in enumerate(design.sizes):
            shares = np.array([version.shares[side] for version in own]).reshape(-1, levels)
            fit = np.array([version.fit[side] for version in by]).reshape(-1, levels)
            wrong = side not in design.given and (abs(shares.sum(axis=1) - 1) > ROUNDING).any()
            if wrong or not (shares.min(initial=0) >= 0 and 0 < fit.min(initial=1) < math.inf):
                for version in versions.values():
                    checked_version(design, version)
            self.shares.append(shares)
            self.fit.append(fit)

    def shown(self, side: int) -> tuple[Shown, Floats]:
        """Return the reports of each level of a side, and the mean of the other sides' factors."""
        design, levels = self.design, self.design.sizes[side]
        shown = self.rows.arm // design.grid.strides[side] % levels
        place, size = self.pair * levels + shown, len(self.leaders) * levels
        x, weights = design.scaled(self.rows.reward), self.rows.pulls
        moments = []
        for _ in range(ORDER + 1):
            moments.append(tally(place, weights, size).reshape(-1, levels))
            weights = weights * x
        others = np.ones(len(self.leaders))
        for other in range(len(design.sizes)):
            if other in design.given and other != side:
                others *= self.fit[other].mean(axis=1)
            elif other != side:
                others *= np.einsum("vk,vk->v", self.shares[other], self.fit[other])
        return Shown(self.shares[side], self.fit[side], moments), others[:, None]


def largest_ratio(
    design: Design, ahead: Shown, rival: Shown, others: Floats, threshold: float
) -> Floats:
    """Return, for each level, the largest ratio of `rival` to `ahead` that isn't refuted.

    One of the two has all levels of a side, the other a single column.
    """
    kappas = design.kappas
    top = max(1.0, float(kappas[-1]))
    etas = np.minimum(kappas / top, MOST)
    levels = max(ahead.shares.shape[1], rival.shares.shape[1])
    sums, lost = np.zeros((ORDER + 1, ORDER + 1, levels)), np.zeros(levels)
    step = max(1, ROOM // levels)
    for begin in range(0, len(others), step):
        part = slice(begin, begin + step)
        _add(ahead.take(part), rival.take(part), others[part], top, sums, lost)
    found = _polynomials(sums, lost, etas)
    refuted = _log_e(found[:, :, :, None], RATIOS) >= threshold
    first = refuted.argmax(axis=1)
    low, high = RATIOS[np.maximum(first - 1, 0)], RATIOS[first]
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        under = _log_e(found, middle) >= threshold
        low, high = np.where(under, low, middle), np.where(under, middle, high)
    return np.where(refuted.any(axis=1), high, math.inf)


def _add(
    ahead: Shown, rival: Shown, others: Floats, top: float, sums: Floats, lost: Floats
) -> None:
    """Add the powers of y without its η: `sums[j, i]` is the part of y^j that belongs to s^i."""
    both = (ahead.shares > 0) & (rival.shares > 0)
    rho = np.divide(rival.shares, ahead.shares + rival.shares, where=both, out=np.zeros(both.shape))
    m = np.clip(rival.fit * others, LEAST_MEAN, LARGEST_MEAN)
    most = np.maximum(rho * m, (1 - rho) * (1 - m))
    scale = np.where(both, np.minimum(top / (1 - m), 1 / most), 0.0)
    np.maximum(lost, (scale * most).max(axis=0, initial=0.0), out=lost)
    up, down = scale * rho, scale * (rho - 1)
    for slope, moments, by_ratio in ((up, ahead.moments, 1), (down, rival.moments, 0)):
        offset = -slope * m
        slopes, offsets = [np.ones_like(m)], [np.ones_like(m)]
        for _ in range(ORDER):
            slopes.append(slopes[-1] * slope)
            offsets.append(offsets[-1] * offset)
        for i, powers in enumerate(moments):
            for j in range(max(i, 1), ORDER + 1):
                total = _total(slopes[i] * offsets[j - i], powers)
                sums[j, i * by_ratio] += math.comb(j, i) * total


def _total(weights: Floats, powers: Floats) -> Floats:
    """Return weighted sums over the versions."""
    if powers.shape[1] == 1:
        return powers[:, 0] @ weights
    return np.einsum("vk,vk->k", np.broadcast_to(weights, powers.shape), powers)


def _polynomials(sums: Floats, lost: Floats, etas: Floats) -> Floats:
    """Return the coefficients by power of s, stake and level."""
    worst = np.clip(np.multiply.outer(etas, lost), 1e-3, None)
    last = (-np.log1p(-worst) - worst - worst**2 / 2 - worst**3 / 3) / worst**4
    found = np.zeros((ORDER + 1, len(etas), sums.shape[2]))
    for j, weight in enumerate((1.0, -1 / 2, 1 / 3, -last), 1):
        found += sums[j][:, None] * (weight * etas[:, None] ** j)
    return found


def _log_e(found: Floats, ratios: Floats) -> Floats:
    """Return the log of the average wealth of each level at these ratios."""
    value = found[ORDER] * ratios
    for power in range(ORDER - 1, 0, -1):
        value = (value + found[power]) * ratios
    return log_average(value + found[0])
