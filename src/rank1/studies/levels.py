"""The levels of a study's sides: their names, which are active, and how arms are numbered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.design.options import check_floor
from rank1.errors import DamagedError, InputError, shown
from rank1.grid import MAX_KEPT, Grid
from rank1.studies.spec import COLUMN, ROW, Spec, started

__all__ = ["Change", "Levels"]

Ints = NDArray[np.int64]


class Change(NamedTuple):
    """Levels to add and to retire, by side."""

    added: dict[str, tuple[str, ...]]
    retired: dict[str, tuple[str, ...]]

    @classmethod
    def read(cls, text: str | None) -> Change:
        """Read a change from an event's JSON; old events have rows and columns instead of sides."""
        fields = json.loads(text or "{}")

        def levels(what: str) -> dict[str, tuple[str, ...]]:
            named = fields.get(what, {})
            for side, former in ((ROW, "rows"), (COLUMN, "columns")):
                if f"{what}_{former}" in fields:
                    named[side] = fields[f"{what}_{former}"]
            return {side: tuple(labels) for side, labels in named.items() if labels}

        return cls(levels("add"), levels("retire"))

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain values."""
        return {"add": self.added, "retire": self.retired}


class Levels:
    """The names of levels and the numbers of arms.

    An arm has three numbers: in the log, on the study's room (`Spec.room`); in tables, on the grid
    of all levels, including retired ones; and in a policy's state, on the grid of active levels.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.revision = 0
        #: All levels, including retired ones, by side.
        self.labels = {side: list(labels) for side, labels in spec.sides.items()}
        #: The numbers of the active levels, in the policy's order.
        self.living = {side: list(range(len(names))) for side, names in self.labels.items()}
        self._number()

    def _number(self) -> None:
        """Prepare the numbering for the current levels."""
        self.room = Grid(self.spec.room)
        self.grid = Grid([len(names) for names in self.labels.values()])
        self.shape = tuple(len(numbers) for numbers in self.living.values())
        self._strides = Grid(self.shape).strides
        #: By side: what each level adds to the policy's number of an arm; a large negative number
        #: if the level isn't active.
        self._places = []
        for numbers, size, stride in zip(
            self.living.values(), self.grid.sizes, self._strides, strict=True
        ):
            places = np.full(size, -(2**55), np.int64)
            places[numbers] = np.arange(len(numbers)) * stride
            self._places.append(places)

    def levels_of(self, arm: int) -> tuple[int, ...]:
        """Return the levels of an arm of the log."""
        return self.room.levels(arm)

    def named(self, arm: int) -> dict[str, str]:
        """Return the labels of an arm of the log, by side."""
        try:
            sides = zip(self.labels.items(), self.room.levels(arm), strict=True)
            return {side: labels[level] for (side, labels), level in sides}
        except (IndexError, InputError, TypeError):
            raise DamagedError(
                f"the log has arm {arm!r}, which isn't on the grid",
                "the storage is damaged; `rank1 study doctor` says where; go back to a backup",
            ) from None

    def document(self, arm: int) -> dict[str, Any]:
        """Return an arm's labels in the format of exports; with two sides, also as a pair."""
        levels = self.named(arm)
        if len(levels) != 2:
            return {"levels": levels}
        row, column = levels.values()
        return {"row": row, "column": column, "levels": levels}

    def places_of(self, arms: ArrayLike) -> tuple[Ints, Ints]:
        """Convert arms of the log to their indices in the tables and their numbers in the policy.

        Arms that aren't on the grid, or aren't active, get -1.
        """
        given: Ints = np.asarray(arms, np.int64)
        if given.size == 1:  # as scalars, which is eight times as fast as arrays
            table, one = self._place_of(given.item())
            return np.full(given.shape, table), np.full(given.shape, one)
        tables, living = np.zeros_like(given), np.zeros_like(given)
        bad = (given < 0) | (given >= self.room.arms)
        for places, size, room, stride, own in zip(
            self._places, self.grid.sizes, self.room.sizes, self.room.strides, self.grid.strides,
            strict=True,
        ):  # fmt: skip
            levels = given // stride % room
            bad |= levels >= size
            levels = np.where(levels < size, levels, 0)
            tables += levels * own
            living += places[levels]
        return np.where(bad, -1, tables), np.where(bad | (living < 0), -1, living)

    def _place_of(self, arm: int) -> tuple[int, int]:
        table = living = 0
        for places, size, room, stride, own in zip(
            self._places, self.grid.sizes, self.room.sizes, self.room.strides, self.grid.strides,
            strict=True,
        ):  # fmt: skip
            level = arm // stride % room
            if not (0 <= arm < self.room.arms and level < size):
                return -1, -1
            table += level * own
            living += places.item(level)
        return table, max(living, -1)

    def arms_of(self, living: Iterable[int]) -> list[int]:
        """Convert the policy's arms to the log's numbers."""
        sides = list(zip(self.living.values(), self._strides, self.room.strides, strict=True))
        found = []
        for arm in living:
            number = 0
            for levels, stride, outer in sides:
                level, arm = divmod(arm, stride)
                number += levels[level] * outer
            found.append(number)
        return found

    def in_log(self, place: int) -> int:
        """Return the log's number of the arm at an index in the tables."""
        return self.room.arm(self.grid.levels(place))

    def arm_of(self, levels: Mapping[str, str] | Sequence[str]) -> int:
        """Return the log's number of the arm with these labels."""
        if isinstance(levels, Mapping):
            levels = [levels[side] for side in self.labels]
        numbers = [
            names.index(name) for names, name in zip(self.labels.values(), levels, strict=True)
        ]
        return self.room.arm(numbers)

    def living_labels(self, side: str) -> list[str]:
        """Return the active levels of a side."""
        return [self.labels[side][number] for number in self.living[side]]

    def of_living(self, table: NDArray[Any]) -> NDArray[Any]:
        """Restrict a table of the book to active levels, with a dimension for each side."""
        whole = table.reshape(self.grid.sizes)
        return np.ascontiguousarray(whole[np.ix_(*self.living.values())])

    # Revisions

    def check_change(self, change: Change) -> None:
        """Refuse an invalid revision before it is logged."""
        for room, (side, names) in zip(self.room.sizes, self.labels.items(), strict=True):
            living = set(self.living_labels(side))
            added, retired = change.added.get(side, ()), change.retired.get(side, ())
            name = f"add.{side}"
            new = sum(label not in names for label in added)
            if len(names) + new > room:
                expected = f"at most {room - len(names):,} new names"
                hint = f"a side of this study has at most {room:,} levels, with those retired"
                raise InputError(name, added, expected, hint, got=f"{new:,}")
            for label in added:
                if label in living or added.count(label) > 1:
                    raise InputError(name, label, "names that differ", got=f"{shown(label)} twice")
            name = f"retire.{side}"
            for label in retired:
                if label not in living or retired.count(label) > 1:
                    raise InputError(name, label, f"among {shown(sorted(living))}")
            if len(retired) == len(living) and not added:
                raise InputError(name, list(retired), "fewer names: at least one level must remain")
        sizes = [
            len(numbers) + len(change.added.get(side, ())) - len(change.retired.get(side, ()))
            for side, numbers in self.living.items()
        ]
        if not self.spec.design:
            started(self.spec, sizes)
        else:
            self._check_design(change, sizes)

    def _check_design(self, change: Change, sizes: Sequence[int]) -> None:
        spec, ever = self.spec, 1
        for side, names in self.labels.items():
            ever *= len({*names, *change.added.get(side, ())})
            kept = (spec.control or {}).get(side)
            if kept in change.retired.get(side, ()):
                raise InputError(f"retire.{side}", kept, "levels other than the control's")
        if ever > MAX_KEPT:
            expected = f"levels of at most {MAX_KEPT:,} arms, with those retired"
            raise InputError("add", change.added, expected, got=f"{ever:,}")
        named = dict(zip(self.labels, sizes, strict=True))
        check_floor(spec.floor, {s: n for s, n in named.items() if s not in spec.given})

    def change(self, change: Change) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Add and retire levels; return the added and the retired ones as (side, level) numbers."""
        added, retired = [], []
        for place, (side, names) in enumerate(self.labels.items()):
            living = self.living[side]
            for name in change.retired.get(side, ()):
                living.remove(names.index(name))
                retired.append((place, names.index(name)))
            for name in change.added.get(side, ()):
                if name not in names:
                    names.append(name)
                living.append(names.index(name))
                added.append((place, names.index(name)))
            living.sort()
        self.revision += 1
        self._number()
        return added, retired
