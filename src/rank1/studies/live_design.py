"""The design of a study, as its log says: versions, the evidence under each, and what bets won.

The fold's loop only notes rewards in a journal. Here they are grouped and bet on, when a version
begins or somebody looks. Levels are all that ever were, as in the tables of a book.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import design
from rank1.design import Counts, Design, Totals, Verdict, Version, Wealth
from rank1.design.wealth import level_sums
from rank1.errors import DamagedError, InputError
from rank1.grid import Grid
from rank1.policies.base import Records, Simple
from rank1.studies.examination import Suspect, examine
from rank1.studies.fold import Book
from rank1.studies.spec import GROWTH, Spec

__all__ = ["DrawnState", "Gone", "LiveDesign", "renumbered"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: What rewards may be alike in: see `fold.NOTE`.
COLUMNS = ("version", "under", "arm", "metric", "value")
#: Rewards that are alike, and how many there were.
ROW = np.dtype([(name, "f8" if name == "value" else "i8") for name in (*COLUMNS, "count")])
#: Rewards that count for the fit later: see `LiveDesign.matured`.
UNRIPE = np.dtype([("arm", "i8"), ("x", "f8"), ("asked", "f8")])
#: The part of all rewards that must have matured before they alone make the fit.
MATURE = 0.5
#: Successes that each level is given beforehand, at the rate of all; see `early_fit`.
PRIOR = 2.0


class _Nothing(NamedTuple):
    limits: Records


class DrawnState(_Nothing, Simple):
    """The state of a policy's place in studies that draw by shares: nothing is learned there."""

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Nothing is learned."""

    def load(self, arm: int, count: int, total: float) -> None:
        """Nothing is learned."""


class Gone(NamedTuple):
    """When a level went, and why."""

    seq: int
    at: float
    why: str


def renumbered(arms: Ints, of: Grid, to: Grid) -> Ints:
    """The numbers that arms of a grid have on a larger one."""
    sides = zip(of.strides, of.sizes, to.strides, strict=True)
    found: Ints = np.zeros_like(arms)
    for stride, size, other in sides:
        found += arms // stride % size * other
    return found


class LiveDesign:
    """Versions, rows of evidence and wealth, as of the last event that was folded."""

    def __init__(self, spec: Spec, sizes: Sequence[int]) -> None:
        self.spec = spec
        self.given = tuple(k for k, side in enumerate(spec.sides) if side in spec.given)
        low, high = spec.reward_range
        self.design = Design(
            sizes, spec.confidence, low, high, growth=GROWTH, min_lift=spec.min_lift,
            given=self.given,
        )  # fmt: skip
        self.versions: dict[int, Version] = {}
        self.wealth = design.start(self.design)
        #: Which levels live now, by side.
        self.living = [np.ones(size, np.bool_) for size in sizes]
        self.gone: dict[tuple[int, int], Gone] = {}
        #: Evidence when the current version began.
        self.began = 0
        #: Whether levels have come or gone since.
        self.stale = True
        #: Bets against arms: see `AnyGrid`.
        self.arms: Any = None
        #: The version from which on bets against arms count: the first after a level was retired.
        self.since = 0
        self._strides = Grid(spec.room).strides
        self._drawn: tuple[int, list[tuple[Floats, Floats, int]]] | None = None
        self._parts: list[NDArray[Any]] = []
        self._unripe = np.zeros(0, UNRIPE)

    @property
    def number(self) -> int:
        """The current version's; -1 before the first."""
        return max(self.versions, default=-1)

    @property
    def current(self) -> Version:
        """The current version, with the levels that live now."""
        living = tuple(each.copy() for each in self.living)
        version = self.versions.get(self.number) or design.first_version(self.design)
        return dataclasses.replace(version, living=living)

    def rows(self) -> NDArray[Any]:
        """All evidence that is settled, as records (`ROW`)."""
        if len(self._parts) != 1:
            self._parts = [_added_up(np.concatenate([np.zeros(0, ROW), *self._parts]))]
        return self._parts[0]

    def counts(self, metric: int = 0) -> Counts:
        """The evidence for the design's functions."""
        rows = self.rows()
        return _counts(rows[rows["metric"] == metric])

    # Folding

    def settle(self, book: Book) -> None:
        """Group what the journal has, bet on it, and empty the journal."""
        at = book.at[0]
        notes = book.journal[: at.noted].view(np.ndarray)
        if not len(notes):
            return
        at.noted = 0
        rows = np.ones(len(notes), ROW)
        for name in COLUMNS:
            rows[name] = notes[name]
        rows = _added_up(rows)
        self._parts.append(rows)
        self._bet(rows)
        window = self.spec.reward_window
        if window is not None:
            young = notes[(notes["metric"] == 0) & (notes["asked"] + window > at.time)]
            more = np.zeros(len(young), UNRIPE)
            more["arm"], more["asked"] = young["arm"], young["asked"]
            more["x"] = self.design.scaled(young["value"])
            self._unripe = np.concatenate([self._unripe, more])

    def _bet(self, rows: NDArray[Any]) -> None:
        rows = rows[rows["metric"] == 0]
        if not len(rows):
            return
        try:
            self.wealth = design.fold(self.design, self.wealth, self.versions, _counts(rows))
        except InputError as error:
            raise DamagedError(
                f"the log has an exposure that its version doesn't draw: {error}",
                "the storage is damaged; go back to a backup",
            ) from None

    def install(self, number: int, text: str | None, seq: int, time: float, evidence: int) -> None:
        """Begin the version that an event says."""
        try:
            fields = json.loads(text or "")
            shares, fit, living = (
                tuple(np.array(fields[name][side], kind) for side in self.spec.sides)
                for name, kind in (("shares", float), ("fit", float), ("living", bool))
            )
            leaders = tuple(int(fields["leaders"][side]) for side in self.spec.sides)
            version = Version(number, shares, leaders, fit, living)
            if [len(each) for each in living] != list(self.design.sizes):
                raise ValueError("levels")
            why = {(side, level): reason for side, level, reason in fields.get("why", ())}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedError(f"version {number} of the study can't be read: {error!r}") from None
        for side, (before, now) in enumerate(zip(self.living, living, strict=True)):
            for level in np.flatnonzero(before & ~now).tolist():
                self.gone[side, level] = Gone(seq, time, why.get((side, level), "refuted"))
        self.versions[number], self.living = version, [each.copy() for each in living]
        self.began, self.stale = evidence, False

    def revise(
        self,
        before: Grid,
        after: Grid,
        added: Sequence[tuple[int, int]],
        retired: Sequence[tuple[int, int]],
        seq: int,
        time: float,
    ) -> None:
        """Levels have come and gone: (side, level), on a grid that has grown at its ends."""
        if after.sizes != before.sizes:
            self.wealth = design.padded_wealth(self.design, self.wealth, after.sizes)
            self.versions = {
                number: design.padded(version, after.sizes)
                for number, version in self.versions.items()
            }
            self.design = self.design.changed(after.sizes)
            for side, (living, size) in enumerate(zip(self.living, after.sizes, strict=True)):
                self.living[side] = np.append(living, np.ones(size - len(living), np.bool_))
            for records in (*self._parts, self._unripe):
                records["arm"] = renumbered(records["arm"], before, after)
        for side, level in added:
            self.living[side][level] = True
            self.gone.pop((side, level), None)
        for side, level in retired:
            self.living[side][level] = False
            self.gone[side, level] = Gone(seq, time, "retired")
        led = {(d, a) for v in self.versions.values() for d, a in enumerate(v.leaders)}
        for side in {side for side, level in retired if (side, level) in led}:
            self._restart(side)
        self.stale, self.arms = True, None
        if retired:
            self.since = self.number + 1

    def _restart(self, side: int) -> None:
        """One side's bets start anew, because a level that had led it was retired."""
        version, self.wealth = design.restarted(self.kept_design(), self.current, self.wealth, side)
        self.living[side] = version.living[side].copy()
        self.gone = {
            k: gone for k, gone in self.gone.items() if k[0] != side or gone.why != "refuted"
        }

    # The next version

    def is_due(self, book: Book) -> bool:
        """Whether a version has to begin now."""
        if self.stale:
            return True
        version, evidence = self.versions[self.number], int(book.at[0].evidence)
        if not version.bets:
            return self._has_enough(book)
        return design.is_due(self.design, version, self.began, evidence, 0.0)

    def _has_enough(self, book: Book) -> bool:
        """Whether there are rewards enough for a first fit, those from elsewhere among them."""
        first, gained = Version(0, (), (), (), ()), float(book.sums.sum())
        return design.is_due(self.design, first, 0, int(book.at[0].evidence), gained)

    def next_text(self, book: Book) -> str:
        """The version that begins now, as its event has it."""
        self.settle(book)
        harmed = self._harmed()
        version = self._next(book, list(harmed))
        fit = [[float(f"{factor:.6g}") for factor in side.tolist()] for side in version.fit]
        living = [side.astype(int).tolist() for side in version.living]
        columns = {
            "shares": [side.tolist() for side in version.shares], "leaders": version.leaders,
            "fit": fit, "living": living,
        }  # fmt: skip
        fields: dict[str, Any] = {
            name: dict(zip(self.spec.sides, values, strict=True))
            for name, values in columns.items()
        }
        if harmed:
            fields["why"] = [[*level, why] for level, why in harmed.items()]
        return json.dumps(fields, separators=(",", ":"))

    def _harmed(self) -> dict[tuple[int, int], str]:
        """The levels that are shown to harm a guardrail, and that live."""
        found: dict[tuple[int, int], str] = {}
        if not self.versions or self.spec.control is None:
            return found
        control = self.spec.control
        base = [
            -1 if side in self.spec.given else labels.index(control[side])
            for side, labels in self.spec.sides.items()
        ]
        threshold = design.harm_threshold(self.design, len(self.spec.guardrails))
        for metric, (name, rule) in enumerate(self.spec.guardrails.items(), 1):
            evidence = design.harmful(
                self.design, self.versions, self.counts(metric), base, rule["worse_by"]
            )
            for side, log_e in enumerate(evidence):
                for level in np.flatnonzero((log_e >= threshold) & self.living[side]).tolist():
                    found.setdefault((side, level), f"harms {name}")
        return found

    def plan(self, current: Version | None = None) -> Design:
        """The design for new shares: levels that don't live have none."""
        current = current or self.current
        dead = [
            (side, level)
            for side in self.design.chosen
            for level in np.flatnonzero(~current.living[side]).tolist()
        ]
        return self.design.changed(floor=self.spec.floor, retired=dead)

    def _next(self, book: Book, harmed: Sequence[tuple[int, int]]) -> Version:
        current = self.current
        for side, level in harmed:
            current.living[side][level] = False
        plan = self.plan(current)
        if not self.versions or not (current.bets or self._has_enough(book)):
            first = design.first_version(plan)
            return dataclasses.replace(first, number=self.number + 1, living=current.living)
        counts, sums = self._matured(book)
        if len(self._unripe):
            hoped = float(book.at[0].gained)
            if hoped - float(self._unripe["x"].sum()) < MATURE * hoped:
                current = dataclasses.replace(current, fit=self._early_fit(book))
                counts, sums = np.zeros_like(counts), np.zeros_like(sums)  # the fit stays
        seen = self._totals(counts, sums)
        version = design.next_version(plan, current, self.wealth, seen)
        if design.verdict(self.design, version, self.wealth).stop and len(self.design.chosen) > 1:
            return self._examining(book, version)
        return version

    def _totals(self, counts: Floats, sums: Floats) -> Totals:
        return Totals(counts, level_sums(sums.reshape(self.design.sizes)))

    def totals(self, book: Book) -> Totals:
        """What a fit uses, of rewards whose windows have closed."""
        return self._totals(*self._matured(book))

    def _examining(self, book: Book, version: Version) -> Version:
        """The version, with half of each side for the arm because of which it can't stop yet."""
        found = self.suspect(book, version.leaders)
        if found is None:
            return version
        shares = list(version.shares)
        for side, level in zip(self.design.chosen, found.arm, strict=True):
            if level != version.leaders[side]:
                shares[side] = np.zeros(len(shares[side]))
                shares[side][[level, version.leaders[side]]] = 0.5
        return dataclasses.replace(version, shares=tuple(shares))

    def _matured(self, book: Book) -> tuple[Floats, Floats]:
        """Counts and sums of rewards whose windows have closed: what the fit uses.

        Else, where successes come before failures, they would push it up.
        """
        counts, sums, window = book.counts, book.sums, self.spec.reward_window
        if window is not None:
            young = self._unripe[self._unripe["asked"] + window > book.at[0].time]
            counts = counts - np.bincount(young["arm"], minlength=len(counts))
            sums = np.maximum(sums - np.bincount(young["arm"], young["x"], len(sums)), 0.0)
            self._unripe = young
        return counts, sums

    def _early_fit(self, book: Book) -> tuple[Floats, ...]:
        """A fit from the rewards so far, for the time in which too few have matured.

        Levels are drawn by their shares: what a level has gained, relative to its share of what
        all have gained, says how good it is. The mean is at least what all exposures have gained.
        """
        rows = self.rows()
        rows = rows[rows["metric"] == 0]
        x = rows["count"] * self.design.scaled(rows["value"])
        cells: Floats = np.bincount(rows["arm"], x, self.design.grid.arms).astype(float)
        gained = np.bincount(rows["version"], x)
        shared = [
            sum((g * self.versions[k].shares[side] for k, g in enumerate(gained) if g), 0.0)
            for side in range(len(self.design.sizes))
        ]
        sums = self.design.split(level_sums(cells.reshape(self.design.sizes)))
        fit = [(own + PRIOR) / (part + PRIOR) for own, part in zip(sums, shared, strict=True)]
        for side in self.given:
            fit[side] = np.ones(len(fit[side]))
        at = book.at[0]
        fit[self.design.chosen[0]] *= max(float(at.gained), 0.5) / max(int(at.suggested), 1)
        return tuple(fit)

    # What it says

    def over_given(self, table: Floats) -> Floats:
        """A table of the book summed over given sides, with a dimension for each of the others."""
        return table.reshape(self.design.sizes).sum(self.given)

    def suspect(self, book: Book, leader: Sequence[int]) -> Suspect | None:
        """The arm because of which the order isn't to be relied on, by levels of chosen sides.

        Only levels that are refuted are looked at: the others are drawn anyway.
        """
        counts, sums = (self.over_given(each) for each in self._matured(book))
        looked, living = [], self.verdict().living
        for side in self.design.chosen:
            some = self.allowed(side) & ~living[side]
            some[leader[side]] = True
            looked.append(np.flatnonzero(some))
        corner = np.ix_(*looked)
        tried, won = counts[corner], np.clip(sums[corner], 0.0, counts[corner])
        if tried.size == 1:
            return None
        places = zip(looked, self.design.chosen, strict=True)
        at = [int(np.searchsorted(some, leader[side])) for some, side in places]
        found = examine(won, tried - won, at)
        if found is None:
            return None
        levels = (int(k[level]) for k, level in zip(looked, found.arm, strict=True))
        return Suspect(tuple(levels), found.speaks)

    def chosen_levels(self, arm: int) -> tuple[int, ...]:
        """The levels of an arm of the grid of the sides that are chosen."""
        return Grid([self.design.sizes[side] for side in self.design.chosen]).levels(arm)

    def allowed(self, side: int) -> Bools:
        """Which levels of a side may be shown: those that aren't retired and do no harm."""
        found = np.ones(self.design.sizes[side], np.bool_)
        found[[k for (d, k), gone in self.gone.items() if d == side and gone.why != "refuted"]] = 0
        return found

    def kept_design(self) -> Design:
        """The design in which levels that may not be shown are retired."""
        barred = [(d, k) for (d, k), gone in self.gone.items() if gone.why != "refuted"]
        return self.design.changed(retired=[k for k in barred if k[0] not in self.given])

    def chosen_arms(self, arms: Ints) -> Ints:
        """The numbers of arms on the grid of the sides that are chosen."""
        found: Ints = np.zeros_like(arms)
        for side in self.design.chosen:
            at = self.design.sides[side]
            found = found * at.levels + arms // at.stride % at.levels
        return found

    def scaled(self, rows: NDArray[Any]) -> Floats:
        """The rewards of rows as numbers in [0, 1]."""
        return self.design.scaled(rows["value"])

    def verdict(self) -> Verdict:
        """What may be said now, assuming one order; once the journal is settled."""
        return design.verdict(self.design, self.current, self.wealth)

    def draw(self, rng: np.random.Generator, count: int, arm: int) -> tuple[Ints, Floats]:
        """Draw levels of the chosen sides: numbers in the log, and propensities.

        `arm` is the number of an arm with the levels of the given sides, and else the first ones.
        """
        if self._drawn is None or self._drawn[0] != self.number:
            self._drawn = (
                self.number,
                [
                    (*_ups(self.versions[self.number].shares[side]), self._strides[side])
                    for side in self.design.chosen
                ],
            )
        arms, propensities = np.full(count, arm), np.ones(count)
        for up_to, shares, stride in self._drawn[1]:
            levels = up_to.searchsorted(rng.random(count), "right")
            arms += stride * levels
            propensities *= shares[levels]
        return arms, propensities

    def propensity(self, levels: Sequence[int]) -> float:
        """The probability with which these levels of all sides are drawn."""
        shares = self.versions[self.number].shares
        return math.prod(float(shares[side][levels[side]]) for side in self.design.chosen)

    # Snapshots

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for `from_arrays`."""
        versions = [self.versions[number] for number in sorted(self.versions)]
        header = {
            "numbers": sorted(self.versions), "began": self.began, "stale": self.stale,
            "since": self.since,
            "gone": [[*level, *gone] for level, gone in self.gone.items()],
        }  # fmt: skip
        return {
            "design": np.array(json.dumps(header)),
            "design_leaders": np.array([each.leaders for each in versions], np.int64),
            **{
                f"design_{name}": np.array([np.concatenate(getattr(v, name)) for v in versions])
                for name in ("shares", "fit", "living")
            },
            "design_now": np.concatenate(self.living),
            "design_rows": self.rows(),
            "design_unripe": self._unripe,
            **{f"design_{name}": array for name, array in self.wealth._asdict().items()},
        }

    @classmethod
    def from_arrays(
        cls, spec: Spec, sizes: Sequence[int], arrays: Mapping[str, NDArray[Any]]
    ) -> LiveDesign:
        """What `to_arrays` kept."""
        made, header = cls(spec, sizes), json.loads(str(arrays["design"]))
        split = made.design.split
        for k, number in enumerate(header["numbers"]):
            shares, fit, living = (
                split(arrays[f"design_{name}"][k]) for name in ("shares", "fit", "living")
            )
            leaders = tuple(arrays["design_leaders"][k].tolist())
            made.versions[number] = Version(number, shares, leaders, fit, living)
        made.living = [each.copy() for each in split(arrays["design_now"])]
        made.began, made.stale, made.since = (header[k] for k in ("began", "stale", "since"))
        made.gone = {(side, level): Gone(*gone) for side, level, *gone in header["gone"]}
        made._parts, made._unripe = [arrays["design_rows"]], arrays["design_unripe"]
        made.wealth = Wealth(*(arrays[f"design_{name}"] for name in Wealth._fields))
        return made

    def compared(self, book: Book) -> dict[str, NDArray[Any]]:
        """What two folds of one log agree in, whenever they were looked at."""
        self._matured(book)
        arrays = self.to_arrays()
        arrays["design_rows"] = _added_up(arrays["design_rows"])
        arrays["design_unripe"] = np.sort(arrays["design_unripe"])
        arrays["design"] = np.frombuffer(str(arrays["design"]).encode(), np.uint8)
        return arrays


def _ups(shares: Floats) -> tuple[Floats, Floats]:
    """Shares added up, and the shares. They are 1 from the last one on, so none other is drawn."""
    up_to = np.cumsum(shares)
    up_to[np.flatnonzero(shares)[-1] :] = 1.0
    return up_to, shares


def _counts(rows: NDArray[Any]) -> Counts:
    names = "version", "arm", "value", "count", "under"
    return Counts(*(rows[name] for name in names))


def _added_up(rows: NDArray[Any]) -> NDArray[Any]:
    """One row for those that are alike, in order."""
    order = np.lexsort([rows[name] for name in reversed(COLUMNS)])
    rows = rows[order]
    if not len(rows):
        return rows
    new = np.ones(len(rows), np.bool_)
    new[1:] = np.any([rows[name][1:] != rows[name][:-1] for name in COLUMNS], axis=0)
    starts = np.flatnonzero(new)
    found = rows[starts]
    found["count"] = np.add.reduceat(rows["count"], starts)
    return found
