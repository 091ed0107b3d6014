"""The design of a study, from its log: versions, the evidence for each, and the bets' wealth.

The fold only adds rewards to a journal. This module groups them and bets on them, when a version
begins or the results are requested. Levels include retired ones, as in the tables of a book.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1 import design
from rank1.design import Design, Verdict, Version, Wealth
from rank1.errors import DamagedError, InputError
from rank1.grid import Grid
from rank1.policies.base import Records, Simple
from rank1.studies.evidence import Evidence, as_counts
from rank1.studies.examination import Suspect, examine
from rank1.studies.fold import Book
from rank1.studies.spec import GROWTH, Spec

__all__ = ["DrawnState", "Gone", "LiveDesign"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class _Nothing(NamedTuple):
    limits: Records


class DrawnState(_Nothing, Simple):
    """A stand-in for the policy's state in studies that draw by shares; it learns nothing."""

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Do nothing: there is nothing to learn."""

    def load(self, arm: int, count: int, total: float) -> None:
        """Do nothing: there is nothing to learn."""


class Gone(NamedTuple):
    """When a level was dropped or retired, and why."""

    seq: int
    at: float
    why: str


class LiveDesign:
    """Versions, rows of evidence and wealth, up to the last folded event."""

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
        #: Which levels are active now, by side.
        self.living = [np.ones(size, np.bool_) for size in sizes]
        self.gone: dict[tuple[int, int], Gone] = {}
        #: The amount of evidence when the current version began.
        self.began = 0
        #: Whether levels were added or removed since then.
        self.stale = True
        #: Bets against arms: see `AnyGrid`.
        self.arms: Any = None
        #: The first version whose bets against arms count: the first after a level was retired.
        self.since = 0
        self._strides = Grid(spec.room).strides
        self._drawn: tuple[int, list[tuple[Floats, Floats, int]]] | None = None
        # If rewards are evidence only when their windows close, all of them are ripe for the fit.
        self.evidence = Evidence(None if spec.by_window else spec.reward_window)

    @property
    def number(self) -> int:
        """The number of the current version; -1 before the first."""
        return max(self.versions, default=-1)

    @property
    def current(self) -> Version:
        """The current version, with the levels that are active now."""
        living = tuple(each.copy() for each in self.living)
        version = self.versions.get(self.number) or design.first_version(self.design)
        return dataclasses.replace(version, living=living)

    # Folding

    def settle(self, book: Book) -> None:
        """Group the rewards in the journal, bet on them, and empty the journal."""
        if book.at[0].noted:
            self._bet(self.evidence.take(book, self.design))

    def _bet(self, rows: NDArray[Any]) -> None:
        rows = rows[rows["metric"] == 0]
        if not len(rows):
            return
        try:
            self.wealth = design.fold(self.design, self.wealth, self.versions, as_counts(rows))
        except InputError as error:
            raise DamagedError(
                f"the log has an exposure that its version doesn't draw: {error}",
                "the storage is damaged; go back to a backup",
            ) from None

    def install(self, number: int, text: str | None, seq: int, time: float, evidence: int) -> None:
        """Begin the version that an event describes."""
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
        self._drop(why, seq, time)
        for side, (before, now) in enumerate(zip(self.living, living, strict=True)):
            for level in np.flatnonzero(before & ~now).tolist():
                self.gone[side, level] = Gone(seq, time, "refuted")
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
        """Add and retire levels, as (side, level), on a grid that has grown at its ends."""
        if after.sizes != before.sizes:
            self.wealth = design.padded_wealth(self.design, self.wealth, after.sizes)
            self.versions = {
                number: design.padded(version, after.sizes)
                for number, version in self.versions.items()
            }
            self.design = self.design.changed(after.sizes)
            for side, (living, size) in enumerate(zip(self.living, after.sizes, strict=True)):
                self.living[side] = np.append(living, np.ones(size - len(living), np.bool_))
            self.evidence.renumber(before, after)
        for side, level in added:
            self.living[side][level] = True
            self.gone.pop((side, level), None)
        self._drop(dict.fromkeys(retired, "retired"), seq, time)
        self.stale, self.arms = True, None
        if retired:
            self.since = self.number + 1

    @property
    def limit(self) -> int:
        """The evidence at which closing windows wait for the version after the current one."""
        if not self.current.bets and self.began < self.design.first:
            return self.design.first
        return self.began + max(50, self.began // 10)

    def copied(self) -> LiveDesign:
        """Return a copy that can settle a journal of its own."""
        after = copy.copy(self)
        after.living, after.gone = [each.copy() for each in self.living], dict(self.gone)
        after.evidence, after.arms = self.evidence.copied(), None
        return after

    def without(self, harmed: Mapping[tuple[int, int], str]) -> LiveDesign:
        """Return a copy of the design with these levels dropped, as (side, level)."""
        after = self.copied()
        after.evidence = self.evidence  # which forgets what has ripened
        after._drop(harmed, 0, 0.0)
        return after

    def _drop(self, why: Mapping[tuple[int, int], str], seq: int, time: float) -> None:
        """Drop levels for a reason other than being refuted."""
        for (side, level), reason in why.items():
            self.living[side][level] = False
            self.gone[side, level] = Gone(seq, time, reason)
        led = {(d, a) for v in self.versions.values() for d, a in enumerate(v.leaders)}
        for side in sorted({side for side, level in why if (side, level) in led}):
            self._restart(side)

    def _restart(self, side: int) -> None:
        """Restart one side's bets, because a level that had led it was dropped."""
        version, self.wealth = design.restarted(self.kept_design(), self.current, self.wealth, side)
        self.living[side] = version.living[side].copy()
        self.gone = {
            k: gone for k, gone in self.gone.items() if k[0] != side or gone.why != "refuted"
        }

    # Results

    def over_given(self, table: Floats) -> Floats:
        """Sum a table of the book over given sides, keeping a dimension for each other side."""
        return table.reshape(self.design.sizes).sum(self.given)

    def suspect(self, book: Book, leader: Sequence[int]) -> Suspect | None:
        """Return the arm that casts doubt on one order, as levels of chosen sides, or None.

        Only refuted levels are examined, because the others are drawn anyway.
        """
        counts, sums = (self.over_given(each) for each in self.evidence.matured(book))
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
        """Return the levels of an arm on the grid of the chosen sides."""
        return Grid([self.design.sizes[side] for side in self.design.chosen]).levels(arm)

    def control(self) -> tuple[int, ...] | None:
        """Return the control's levels, with -1 for given sides; None without a control."""
        control = self.spec.control
        if control is None:
            return None
        return tuple(
            -1 if side in self.spec.given else labels.index(control[side])
            for side, labels in self.spec.sides.items()
        )

    def allowed(self, side: int) -> Bools:
        """Return which levels of a side may be shown: not retired, and not dropped for harm."""
        found = np.ones(self.design.sizes[side], np.bool_)
        found[[k for (d, k), gone in self.gone.items() if d == side and gone.why != "refuted"]] = 0
        return found

    def kept_design(self) -> Design:
        """Return the design with the levels that may not be shown marked as retired."""
        barred = [(d, k) for (d, k), gone in self.gone.items() if gone.why != "refuted"]
        return self.design.changed(retired=[k for k in barred if k[0] not in self.given])

    def chosen_arms(self, arms: Ints) -> Ints:
        """Return the numbers of arms on the grid of the chosen sides."""
        found: Ints = np.zeros_like(arms)
        for side in self.design.chosen:
            at = self.design.sides[side]
            found = found * at.levels + arms // at.stride % at.levels
        return found

    def verdict(self) -> Verdict:
        """Return the current verdict, assuming one order; the journal must be settled."""
        return design.verdict(self.design, self.current, self.wealth)

    def draw(self, rng: np.random.Generator, count: int, arm: int) -> tuple[Ints, Floats]:
        """Draw levels of the chosen sides; return arms as the log numbers them, and propensities.

        `arm` is the number of an arm with the given sides' levels, and level 0 on the others.
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
        """Return the probability of drawing these levels of all sides."""
        shares = self.versions[self.number].shares
        return math.prod(float(shares[side][levels[side]]) for side in self.design.chosen)

    # Snapshots

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Serialize the design for `from_arrays`."""
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
            **self.evidence.to_arrays(),
            **{f"design_{name}": array for name, array in self.wealth._asdict().items()},
        }

    @classmethod
    def from_arrays(
        cls, spec: Spec, sizes: Sequence[int], arrays: Mapping[str, NDArray[Any]]
    ) -> LiveDesign:
        """Restore a design from `to_arrays`."""
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
        made.evidence.load(arrays)
        made.wealth = Wealth(*(arrays[f"design_{name}"] for name in Wealth._fields))
        return made

    def compared(self, book: Book) -> dict[str, NDArray[Any]]:
        """Return what must agree between two folds of a log, whenever results were requested."""
        self.evidence.matured(book)
        arrays = self.to_arrays()
        arrays["design_unripe"] = np.sort(arrays["design_unripe"])
        arrays["design"] = np.frombuffer(str(arrays["design"]).encode(), np.uint8)
        return arrays


def _ups(shares: Floats) -> tuple[Floats, Floats]:
    """Return cumulative shares, exactly 1 from the last positive share on, and the shares."""
    up_to = np.cumsum(shares)
    up_to[np.flatnonzero(shares)[-1] :] = 1.0
    return up_to, shares
