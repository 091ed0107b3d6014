"""Add and retire levels inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from rank1.errors import InputError, InputTypeError
from rank1.studies.events import Event, Kind
from rank1.studies.spec import labels_of
from rank1.studies.state import Change
from rank1.studies.unit_of_work import UnitOfWork, key_used, under_key

__all__ = ["change_of", "revise"]


def change_of(
    sides: Iterable[str],
    add: Mapping[str, Iterable[str]] | None = None,
    retire: Mapping[str, Iterable[str]] | None = None,
    **two_sided: Iterable[str],
) -> Change:
    """Return the levels to add and to retire, by side; with two sides also as `add_rows` etc."""
    sides = list(sides)
    made: dict[str, dict[str, tuple[str, ...]]] = {"add": {}, "retire": {}}
    for what, given in (("add", add), ("retire", retire)):
        if given is not None and not isinstance(given, Mapping):
            raise InputTypeError(what, given, "a mapping from names of sides to names of levels")
        for side, labels in (given or {}).items():
            if side not in sides:
                raise InputError(what, side, f"by sides, which are {', '.join(sides)}")
            made[what][side] = labels_of(f"{what}.{side}", labels)
    for name, labels in two_sided.items():
        what, _, side = name.partition("_")
        if labels:
            if len(sides) != 2:
                raise InputError(
                    name, labels, "left out: the study doesn't have two sides", f"use {what}"
                )
            place = sides[("rows", "columns").index(side)]
            made[what][place] = labels_of(name, labels)
    return Change(made["add"], made["retire"])


def revise(work: UnitOfWork, change: Change, key: str | None = None) -> int:
    """Add and retire levels; return the number of the revision."""
    for event in under_key(work, key, Kind.REVISED):
        if Change.read(event.data) != change:
            raise key_used(key)
        return event.tag
    if change.added or change.retired:
        work.state.check_change(change)
        number = work.state.revision + 1
        work.append([Event(Kind.REVISED, tag=number, data=json.dumps(change.to_dict()), key=key)])
    return work.state.revision
