"""The wealth of the bets, and the verdict that follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rank1.compiled import kernel_for
from rank1.design.bets import Book, fold_reports, give_slots, prepare, show
from rank1.design.counts import Counts, checked_counts, runs, tally
from rank1.design.shares import drop
from rank1.design.values import (
    Bools,
    Design,
    Floats,
    Ints,
    Totals,
    Version,
    Wealth,
    checked_version,
)

__all__ = [
    "Verdict",
    "fold",
    "log_e_of",
    "padded_totals",
    "padded_wealth",
    "start",
    "totals",
    "verdict",
]


class Verdict(NamedTuple):
    """What the evidence shows now, at the design's confidence."""

    #: Whether the leaders' arm can be called best, or close enough to the best.
    stop: bool
    leaders: tuple[int, ...]
    #: For each side, the levels that may still be best.
    living: tuple[Bools, ...]
    #: For each side, the log of the evidence against each level.
    log_e: tuple[Floats, ...]


def start(design: Design) -> Wealth:
    """Return the wealth before the first report."""
    levels, kappas = sum(design.sizes), len(design.kappas)
    led = int(design.pair_rows[-1])
    slots = np.full(levels if led else 0, -1)
    return Wealth(np.zeros((levels, kappas)), slots, np.zeros((led, kappas)))


def totals(design: Design, versions: Mapping[int, Version], counts: Counts) -> Totals:
    """Add up reports for a fit; pass those of matured pulls only."""
    rows = checked_counts(design, versions, counts)
    number = tally(rows.arm, rows.pulls, design.grid.arms)
    gained = tally(rows.arm, rows.pulls * design.scaled(rows.reward), design.grid.arms)
    return Totals(number, level_sums(gained.reshape(design.sizes)))


def level_sums(cells: Floats) -> Floats:
    """Add up the arms of each level, for the levels of all sides in a row."""
    every = range(cells.ndim)
    sums = [cells.sum(axis=tuple(e for e in every if e != side)).ravel() for side in every]
    return np.concatenate(sums)


def fold(
    design: Design,
    wealth: Wealth,
    versions: Mapping[int, Version],
    counts: Counts,
    under: Version | None = None,
) -> Wealth:
    """Return the wealth after more reports.

    Parameters
    ----------
    design, wealth
        The design, and the wealth so far; neither changes.
    versions
        The versions that the counts refer to, by number.
    counts
        How often each arm, drawn under a version, gave each reward. Each report counts once. The
        bets use the shares of the version that the pull was drawn under, and the leaders and the
        fit of the version `Counts.under`, which was current when the report arrived: for late
        reports, that version knows more. Neither may depend on these counts. The order in which
        reports are folded doesn't matter.
    under
        One version for all reports, in place of `Counts.under`.

    Examples
    --------
    >>> from rank1.design import first_version, next_version
    >>> design = Design([2], first=10)
    >>> versions = {0: first_version(design)}
    >>> counts = Counts.of([(0, 0, 1.0, 9), (0, 0, 0.0, 1), (0, 1, 1.0, 1), (0, 1, 0.0, 9)])
    >>> wealth = fold(design, start(design), versions, counts)
    >>> versions[1] = next_version(design, versions[0], wealth, totals(design, versions, counts))
    >>> more = Counts.of([(1, 0, 1.0, 36), (1, 0, 0.0, 4), (1, 1, 1.0, 4), (1, 1, 0.0, 36)])
    >>> wealth = fold(design, wealth, versions, more)
    >>> verdict(design, versions[1], wealth).stop
    True
    """
    rows = checked_counts(design, versions, counts)
    for number in {*rows.version.tolist(), *rows.arrived.tolist()}:
        checked_version(design, versions[number])
    levels, slots = len(wealth.logs), wealth.slots.copy()
    logs = np.concatenate([wealth.logs, wealth.pairs])
    products, factors = np.ones_like(logs), np.zeros(len(logs), np.int64)
    for own, current, part in runs(rows):
        by = under or versions[current]
        if not by.bets:
            continue
        shares, fit = np.concatenate(versions[own].shares), np.concatenate(by.fit)
        leaders = np.array(by.leaders)
        rho, base = np.zeros((2, levels))
        prepare(design.sides, leaders, shares, fit, rho, base)
        if len(slots):
            give_slots(design.sides, leaders, slots)
        book = Book(
            design.sides, design.kappas, leaders, fit, logs, products, factors, slots,
            levels + design.pair_rows,
        )  # fmt: skip
        work = sum(  # a leader's report is a bet against all levels, any other against one
            len(part.arm) + size * int((part.arm // stride % size == leader).sum())
            for size, stride, leader in zip(
                design.sizes, design.grid.strides, by.leaders, strict=True
            )
        )
        kernel_for(_fold_rows, work=work)(
            book, rho, base, np.zeros_like(leaders), part.arm, design.scaled(part.reward),
            part.pulls, design.min_lift,
        )  # fmt: skip
    logs += np.log(products)
    return Wealth(logs[:levels], slots, logs[levels:])


def _fold_rows(
    book: Any, rho: Floats, base: Floats, shown: Ints, arms: Ints, x: Floats, count: Floats,
    lift: float,
) -> None:  # fmt: skip
    """Fold reports that arrived under one version."""
    for row in range(len(arms)):
        show(book.sides, arms[row], shown)
        fold_reports(book, rho, base, shown, x[row], count[row], 0, lift)


def verdict(design: Design, version: Version, wealth: Wealth) -> Verdict:
    """Return the verdict on the current version's leaders."""
    log_e = log_e_of(wealth.logs)
    living = np.concatenate(version.living) & np.concatenate(design.kept)
    drop(design.sides, log_e, design.threshold, living)
    stop = True
    pairs = log_e_of(wealth.pairs)
    for d in design.chosen:
        begin, levels, leader = int(design.sides[d].begin), design.sizes[d], version.leaders[d]
        for k in range(levels):
            if k == leader or not living[begin + k]:
                continue
            slot = int(wealth.slots[begin + leader]) if len(wealth.slots) and leader >= 0 else -1
            close = slot >= 0 and pairs[
                design.pair_rows[d] + slot * levels + k
            ] >= design.threshold + math.log(levels - 1)
            stop = stop and close
        if levels > 1 and (leader < 0 or not living[begin + leader]):
            stop = False
    return Verdict(bool(stop), version.leaders, design.split(living), design.split(log_e))


def log_e_of(logs: Floats) -> Floats:
    """Return the log of the average wealth of each row."""
    top = logs.max(axis=1, initial=-np.inf)
    return top + np.log(np.exp(logs - top[:, None]).mean(axis=1))


def padded_wealth(design: Design, wealth: Wealth, sizes: Sequence[int]) -> Wealth:
    """Extend the wealth to sides with levels added at the end; `design` is the one before that.

    >>> padded_wealth(Design([2, 2]), start(Design([2, 2])), [2, 3]).logs.shape
    (5, 6)
    """
    after = design.changed(sizes, retired=())
    new = start(after)
    for d, (begin, size) in enumerate(zip(design.sides["begin"], design.sizes, strict=True)):
        to, own = int(after.sides[d].begin), slice(begin, begin + size)
        new.logs[to : to + size] = wealth.logs[own]
        if len(wealth.slots):
            new.slots[to : to + size] = wealth.slots[own]
            old = wealth.pairs[design.pair_rows[d] : design.pair_rows[d + 1]]
            old = old.reshape(-1, size, old.shape[1])
            block = new.pairs[after.pair_rows[d] : after.pair_rows[d + 1]]
            block.reshape(-1, sizes[d], old.shape[2])[: len(old), :size] = old
    return new


def padded_totals(design: Design, seen: Totals, sizes: Sequence[int]) -> Totals:
    """Extend totals to sides with levels added at the end; `design` is the one before that.

    >>> seen = Totals(np.array([5.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    >>> padded_totals(Design([1, 2]), seen, [2, 2]).counts.tolist()
    [5.0, 6.0, 0.0, 0.0]
    """
    more = [(0, after - before) for before, after in zip(design.sizes, sizes, strict=True)]
    sums = zip(design.split(seen.sums), more, strict=True)
    return Totals(
        np.pad(seen.counts.reshape(design.sizes), more).ravel(),
        np.concatenate([np.pad(own, added) for own, added in sums]),
    )
