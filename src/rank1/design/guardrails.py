"""Guardrails: detect levels that do harm, by bets on a second metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rank1 import checks
from rank1.design.bets import LONGER, MOST
from rank1.design.counts import Counts, checked_counts, log_average, tally
from rank1.design.values import Design, Floats, Ints, Version
from rank1.errors import InputError

__all__ = ["harm_threshold", "harmful"]

#: The number and the sum of the prior reports that the mean of the metric starts from.
PRIOR_REPORTS, PRIOR_SUM = 20.0, 1.0


def harmful(
    design: Design,
    versions: Mapping[int, Version],
    counts: Counts,
    control: Sequence[int],
    worse_by: float,
) -> tuple[Floats, ...]:
    """Return the log of the evidence that each level does harm, by side.

    Parameters
    ----------
    design, versions
        As in `fold`.
    counts
        As in `fold`, with the metric in place of the reward: a number from 0 to 1, where more is
        worse, such as 1 for a visitor who unsubscribed.
    control
        The level of each side to compare the others with; -1 for a given side.
    worse_by
        How much worse than the control a level may be, as an absolute difference.

    Returns
    -------
    tuple
        For each side, an array with a number for each level; 0 for the control's level. A level
        that reaches `harm_threshold(design)` is shown to be worse by more than that. This holds at
        any time.

    Notes
    -----
    Suppose level l is worse than the control's level c by at most x, whatever the other sides show.
    A report G that shows l multiplies the wealth by 1 + k·(1 − ρ)·(G − x − m), and one that shows c
    multiplies it by 1 − k·ρ·(G − m), with ρ = r(l)/(r(c) + r(l)), and m and k known in advance. As
    r(l)·(1 − ρ) = r(c)·ρ, its mean is 1 + k·r(l)·(1 − ρ)·(g(l) − x − g(c)) ≤ 1. So it is a test
    supermartingale, and the probability that it ever reaches 1/α is at most α.

    Examples
    --------
    >>> from rank1 import design
    >>> plan = design.Design([2])
    >>> versions = {0: design.first_version(plan)}
    >>> rows = [(0, 0, 1.0, 30), (0, 0, 0.0, 970), (0, 1, 1.0, 80), (0, 1, 0.0, 920)]
    >>> evidence = harmful(plan, versions, design.Counts.of(rows), (0,), worse_by=0.01)[0]
    >>> evidence.round(1).tolist(), round(harm_threshold(plan), 1)
    ([0.0, 5.9], 3.0)
    """
    most = checks.number("worse_by", worse_by, 0, 1, below=True)
    if len(control) != len(design.sizes):
        raise InputError("control", control, f"{len(design.sizes)} levels, one for each side")
    rows = checked_counts(design.changed(low=0.0, high=1.0), versions, counts)
    means = _means_before(rows)
    numbers, place = np.unique(rows.version, return_inverse=True)
    found = []
    for side, base in enumerate(control):
        levels = design.sizes[side]
        if not -1 <= base < levels:
            raise InputError(f"control[{side}]", base, f"a level in 0 … {levels - 1}")
        if base < 0 or side in design.given or not len(rows.arm):
            found.append(np.zeros(levels))
            continue
        shares = np.array([versions[number].shares[side] for number in numbers.tolist()])
        shown = rows.arm // design.grid.strides[side] % levels
        found.append(_log_e(rows, means, _parts(shares, base)[place], shown, base, most))
    return tuple(found)


def harm_threshold(design: Design, guardrails: int = 1) -> float:
    """Return the log of the evidence at which a level is dropped for harm.

    With the design's confidence, no harmless level ever reaches it, on any side and for any of the
    guardrails.
    """
    tested = sum(design.sizes[side] - 1 for side in design.chosen)
    return math.log(max(1, tested * guardrails) / (1 - design.confidence))


def _means_before(rows: Counts) -> Floats:
    """Return, for each row, the mean of all reports that arrived under earlier versions."""
    numbers, place = np.unique(rows.arrived, return_inverse=True)
    reports = np.cumsum(tally(place, rows.pulls, len(numbers)))
    sums = np.cumsum(tally(place, rows.pulls * rows.reward, len(numbers)))
    before = (PRIOR_SUM + np.append(0.0, sums)) / (PRIOR_REPORTS + np.append(0.0, reports))
    return before[place]


def _parts(shares: Floats, base: int) -> Floats:
    """Return the ρ of each level under each version; 0 where there is no bet."""
    own = shares[:, base : base + 1]
    both = (shares > 0) & (own > 0)
    rho = np.divide(shares, shares + own, where=both, out=np.zeros(shares.shape))
    rho[:, base] = 0.0
    return rho


def _log_e(
    rows: Counts, means: Floats, rho: Floats, shown: Ints, base: int, worse_by: float
) -> Floats:
    """Return the evidence against each level of a side; `rho` has a row for each row of counts."""
    at, own = np.nonzero(shown == base)[0], np.nonzero(shown != base)[0]
    logs = np.zeros((len(LONGER), rho.shape[1]))
    wide, wide_m, narrow, m = rho[at], means[at, None], rho[own, shown[own]], means[own]
    for k, kappa in enumerate(LONGER):
        y = -_stake(kappa, wide, wide_m, worse_by) * wide * (rows.reward[at, None] - wide_m)
        logs[k] = rows.pulls[at] @ np.log1p(y)
        y = _stake(kappa, narrow, m, worse_by) * (1 - narrow) * (rows.reward[own] - worse_by - m)
        logs[k] += tally(shown[own], rows.pulls[own] * np.log1p(y), rho.shape[1])
    return log_average(logs)


def _stake(kappa: float, rho: Floats, m: Floats, worse_by: float) -> Floats:
    """Return the largest stake that keeps the loss within bounds; 0 where ρ is 0."""
    lost = np.maximum((1 - rho) * (worse_by + m), rho * (1 - m))
    return np.where(rho > 0, np.minimum(kappa / (1 - m), MOST / lost), 0.0)
