"""A study from its first report on, whole versions at once, for rewards of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rank1 import design
from rank1.design import Counts, Design, Totals, Version, Wealth
from rank1.design.counts import tally


class Played(NamedTuple):
    versions: dict[int, Version]
    rows: list[Counts]
    wealth: Wealth
    seen: Totals
    reports: int
    verdict: design.Verdict

    @property
    def counts(self) -> Counts:
        """All reports."""
        columns: Any = list(zip(*self.rows, strict=True))[:4]
        return Counts(*(np.concatenate(column) for column in columns))

    @property
    def sums(self) -> Any:
        """The sum of each arm's rewards."""
        counts = self.counts
        return tally(counts.arm, counts.reward * counts.pulls, len(self.seen.counts))


def play(plan: Design, means: Any, most: int, seed: int, traffic: Any = None,
         until_stop: bool = True) -> Played:  # fmt: skip
    """Play until the verdict, or for `most` reports; see `studied`."""
    for found in studied(plan, means, most, seed, traffic):
        if until_stop and found.verdict.stop:
            break
    return found


def studied(
    plan: Design, means: Any, most: int, seed: int, traffic: Any = None
) -> Iterator[Played]:
    """What is known at the end of each version, up to `most` reports.

    `traffic` has the shares of the levels of each side that is given; default: equal.
    """
    rng, flat = np.random.default_rng(seed), np.asarray(means, np.float64).ravel()
    versions, wealth = {0: design.first_version(plan)}, design.start(plan)
    seen = Totals(np.zeros(plan.grid.arms), np.zeros(sum(plan.sizes)))
    rows: list[Counts] = []
    reports = 0
    gained = 0.0
    while reports < most:
        last, began = max(versions), reports
        version = versions[last]
        shares = np.ones(1)
        for side, own in enumerate(version.shares):
            given = side in plan.given and traffic is not None
            weights = traffic[plan.given.index(side)] if given else own
            shares = np.multiply.outer(shares, weights).ravel()
        low, n = 0, 1
        while began + n < most and not design.is_due(plan, version, began, began + n, gained):
            low, n = n, 2 * n
        while n - low > 1:  # the first number at which it is due
            middle = (low + n) // 2
            due = design.is_due(plan, version, began, began + middle, gained)
            low, n = (low, middle) if due or began + middle >= most else (middle, n)
        pulls = rng.multinomial(n, shares / shares.sum())
        ones = rng.binomial(pulls, flat)
        at = np.concatenate([np.nonzero(ones)[0], np.nonzero(pulls - ones)[0]])
        x = np.repeat([1.0, 0.0], [(ones > 0).sum(), (pulls > ones).sum()])
        number = np.where(x == 1, ones[at], (pulls - ones)[at])
        rows.append(Counts(np.full(len(at), last), at, x, number))
        reports, gained = reports + n, gained + ones.sum()
        wealth = design.fold(plan, wealth, versions, rows[-1])
        more = design.totals(plan, versions, rows[-1])
        seen = Totals(seen.counts + more.counts, seen.sums + more.sums)
        versions[last + 1] = design.next_version(plan, version, wealth, seen)
        said = design.verdict(plan, versions[last + 1], wealth)
        yield Played(dict(versions), list(rows), wealth, seen, reports, said)
