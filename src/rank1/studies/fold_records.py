"""Fold runs of records with NumPy, while the fold's loop isn't compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rank1.studies.events import HELD_OUT, Events, Kind
from rank1.studies.fold import Book

__all__ = ["fold_records"]

#: Shorter runs aren't worth it.
LEAST = 8


def fold_records(book: Book, events: Events, arms: NDArray[np.int64], begin: int) -> int:
    """Fold the records with rewards from `begin` on, up to the first other event.

    Returns where they end. The result is the same as that of `fold.fold_events`, to the last bit:
    sums are added in the order of the events. Only for studies that draw by shares.
    """
    at, rules = book.at[0], book.rules[0]
    if rules.by_window:  # they wait in the table
        return begin
    some = slice(begin, begin + len(book.journal) - int(at.noted))
    kind, tags, values, places = (
        each[some] for each in (events.kind, events.tag, events.value, arms)
    )
    fit = (kind == int(Kind.RECORDED)) & ~np.isnan(values) & (places >= 0)
    fit &= (tags >= 0) | (tags == HELD_OUT)
    size = len(fit) if fit.all() else int(fit.argmin())
    if size < LEAST:
        return begin
    tags, values, places = tags[:size], values[:size], places[:size]
    x = np.clip((values - rules.low) / (rules.high - rules.low), 0.0, 1.0)
    shown = tags != HELD_OUT
    held, won, arm = x[~shown], x[shown], places[shown]
    for counts, sums in ((book.known, book.known_sums), (book.counts, book.sums)):
        np.add.at(counts, arm, 1.0)
        np.add.at(sums, arm, won)
    rows = book.journal[at.noted : at.noted + len(arm)]
    rows["version"], rows["under"], rows["arm"], rows["metric"] = tags[shown], at.version, arm, 0
    rows["value"] = np.clip(values[shown], rules.low, rules.high)
    rows["asked"] = events.at[begin : begin + size][shown]
    at.noted += len(arm)
    at.learned += len(arm)
    at.evidence += len(arm)
    at.gained, at.squares = _added(at.gained, won), _added(at.squares, won * won)
    at.held += len(held)
    at.held_sum, at.held_squares = _added(at.held_sum, held), _added(at.held_squares, held * held)
    at.suggested += size
    at.reported += size
    at.seq, at.time = events.seq[begin + size - 1], events.at[begin + size - 1]
    return begin + size


def _added(total: float, terms: NDArray[np.float64]) -> float:
    """Add terms one after another, as a loop would; `sum` adds them in pairs."""
    return float(np.cumsum(np.append(total, terms))[-1])
