"""Bets against each arm of a study that draws by shares, without assumptions about its grid.

These use the same draws as the verdict that assumes one order: an arm's share is the product of its
levels' shares. The method is that of `rank1.design.any_grid`, but for all arms at once in NumPy and
incremental by version, so that results of a long study are quick. Levels of given sides are
ignored.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.design.bets import LARGEST_MEAN, LEAST_MEAN, MOST
from rank1.design.shares import PRIOR
from rank1.design.wealth import log_e_of
from rank1.studies.live_design import LiveDesign

__all__ = ["MOST_ARMS", "AnyGrid", "AnyVerdict"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: The maximum number of arms to examine one by one: the verdict needs evidence against each.
MOST_ARMS = 2**16


class AnyVerdict(NamedTuple):
    """A verdict without assumptions about the grid; for arms of the chosen sides."""

    stop: bool
    leader: int
    #: Arms that can't be the best, or exceed the leader by too little to matter.
    out: Bools
    #: The arm with the least evidence against it; the leader if it is the only arm.
    weakest: int


class AnyGrid:
    """Evidence against each arm, up to the version before the current one."""

    def __init__(self, live: LiveDesign) -> None:
        sizes = [live.design.sizes[side] for side in live.design.chosen]
        arms = math.prod(sizes)
        self._next = live.since
        self._logs = np.zeros((arms, len(live.design.kappas)))
        self._counts, self._sums = np.zeros((2, arms))
        #: Evidence against "exceeds this leader by the smallest lift", by leader.
        self._close: dict[int, Floats] = {}
        self._leader = -1

    def verdict(self, live: LiveDesign) -> AnyVerdict:
        """Return the current verdict."""
        rows = live.evidence.rows()
        rows = rows[(rows["metric"] == 0) & (rows["under"] >= self._next)]
        rows = rows[np.argsort(rows["under"], kind="stable")]
        ends = np.searchsorted(rows["under"], np.arange(self._next, live.number + 2))
        for place, number in enumerate(range(self._next, live.number)):
            self._take(live, number, rows[ends[place] : ends[place + 1]])
        self._next = live.number
        now = copy.deepcopy(self)  # because the current version can still get rewards
        now._take(live, live.number, rows[ends[-2] :])
        return now._said(live)

    def _said(self, live: LiveDesign) -> AnyVerdict:
        alpha, lift = 1 - live.design.confidence, live.spec.min_lift
        kept = np.ones(1, np.bool_)
        for side in live.design.chosen:
            own = live.allowed(side)
            kept = np.multiply.outer(kept, own).ravel()
        log_e = log_e_of(self._logs)
        out = log_e >= math.log((2 if lift else 1) / alpha)
        if self._leader in self._close:
            close = log_e_of(self._close[self._leader])
            out |= close >= math.log(2 * max(1, len(log_e) - 1) / alpha)
        rivals = kept & ~out
        if self._leader >= 0:
            out[self._leader] = rivals[self._leader] = False
        weakest = int(np.where(rivals, log_e, np.inf).argmin()) if rivals.any() else self._leader
        return AnyVerdict(self._leader >= 0 and not rivals.any(), self._leader, out, weakest)

    def _take(self, live: LiveDesign, number: int, rows: NDArray[Any]) -> None:
        """Bet on the rewards that arrived during a version, whose leader and fit precede them."""
        version = live.versions[number]
        arms, count = live.chosen_arms(rows["arm"]), rows["count"]
        x = live.design.scaled(rows["value"])
        if version.bets:
            mean = max(self._sums.sum(), 0.5) / max(self._counts.sum(), 1.0)
            fit = (self._sums + PRIOR) / (self._counts + PRIOR / mean)
            self._leader = leader = int(np.where(_flat(live, number) > 0, fit, -1.0).argmax())
            for drawn in np.unique(rows["version"]).tolist():
                some = rows["version"] == drawn
                told = _flat(live, drawn), fit, leader, arms[some], x[some], count[some]
                _bet(self._logs, live.design.kappas, 0.0, *told)
                if live.spec.min_lift > 0:
                    close = self._close.setdefault(leader, np.zeros_like(self._logs))
                    _bet(close, live.design.kappas, live.spec.min_lift, *told)
        self._counts += np.bincount(arms, count, len(self._counts))
        self._sums += np.bincount(arms, count * x, len(self._sums))


def _flat(live: LiveDesign, number: int) -> Floats:
    """Return the share of each arm in a version."""
    shares = np.ones(1)
    for side in live.design.chosen:
        shares = np.multiply.outer(shares, live.versions[number].shares[side]).ravel()
    return shares


def _bet(
    logs: Floats, kappas: Floats, lift: float, shares: Floats, fit: Floats, leader: int,
    arms: Ints, x: Floats, count: Ints,
) -> None:  # fmt: skip
    """Bet on the leader against each arm, as in `rank1.design.bets`."""
    if shares[leader] == 0:
        return
    rho = shares / (shares[leader] + shares)
    rho[leader] = 0.0  # there is no bet against it
    m = (1 - rho) * (1 + lift) * fit[leader] + rho * fit
    m = np.clip(m, LEAST_MEAN, LARGEST_MEAN)
    most = MOST / np.maximum(rho * m, (1 - rho) * (1 - m))
    c = np.minimum(np.multiply.outer(1 / (1 - m), kappas), most[:, None])
    ahead = arms == leader
    rewards, which = np.unique(x[ahead], return_inverse=True)
    for reward, times in zip(rewards, np.bincount(which, count[ahead]), strict=True):
        logs += times * np.log1p(c * (rho * ((1 + lift) * reward - m))[:, None])
    k = arms[~ahead]
    gained = np.log1p(c[k] * ((rho[k] - 1) * (x[~ahead] - m[k]))[:, None])
    np.add.at(logs, k, count[~ahead][:, None] * gained)
