"""The document that clients draw from and `judge` extends: sides, settings, versions, counts."""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rank1 import checks
from rank1.design.counts import Counts
from rank1.design.options import check_floor, control_of, range_of
from rank1.design.values import Design, Version, checked_version
from rank1.design.versions import first_version
from rank1.errors import InputError, InputTypeError, Rank1Error, shown

__all__ = ["SharesDocument", "first_shares"]

#: Column names of tables of counts and exposures; no side may have one of these names.
TAKEN = ("version", "reward", "count", "unit", "time")


@dataclasses.dataclass(frozen=True)
class SharesDocument:
    """The contents of `shares.json`, checked."""

    sides: dict[str, list[str]]
    given: tuple[str, ...]
    control: dict[str, str] | None
    salt: str
    design: Design
    versions: dict[int, Version]
    #: All reports of the last update; arms are numbered in row-major order over `sides`.
    counts: Counts

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> SharesDocument:
        """Check a document; only sides, confidence and versions are required."""
        if not isinstance(document, Mapping):
            raise InputTypeError("shares", document, "a mapping with sides and versions")
        sides = _checked_sides(document.get("sides"))
        given = _checked_given(sides, document.get("given") or ())
        sizes = {side: len(labels) for side, labels in sides.items()}
        floor = checks.number("floor", document.get("floor", 0.0), 0, 1, below=True)
        check_floor(floor, {side: size for side, size in sizes.items() if side not in given})
        design = Design(
            list(sizes.values()), document.get("confidence", 0.95),
            *range_of(document.get("reward_range", (0, 1))), floor=floor,
            min_lift=document.get("min_lift", 0.0),
            given=[k for k, side in enumerate(sides) if side in given],
        )  # fmt: skip
        salt = document.get("salt", "")
        if not isinstance(salt, str):
            raise InputTypeError("salt", salt, "text")
        control = control_of(sides, given, document.get("control"))
        versions: dict[int, Version] = {}
        listed = document.get("versions")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            raise InputError("versions", listed, "a list of at least one version")
        for number, each in enumerate(listed, 1):
            try:
                versions[number] = _version(design, sides, given, number, each)
            except Rank1Error as error:
                raise error.within(f"version {number}") from None
        counts = _stored_counts(design, len(versions), document.get("counts") or ())
        return cls(sides, given, control, salt, design, versions, counts)

    @property
    def current(self) -> Version:
        """The newest version."""
        return self.versions[len(self.versions)]

    def extended(self, version: Version | None, counts: Counts) -> SharesDocument:
        """Return the document after an update."""
        versions = {**self.versions, **({} if version is None else {version.number: version})}
        return dataclasses.replace(self, versions=versions, counts=counts)

    def named(self, levels: Sequence[int]) -> dict[str, str]:
        """Return the labels of numbered levels, for the chosen sides."""
        return {
            side: self.sides[side][levels[k]]
            for k, side in enumerate(self.sides)
            if side not in self.given
        }

    def numbers(self, levels: Mapping[str, str]) -> tuple[int, ...]:
        """Return the numbers of labelled levels; -1 for a given side."""
        return tuple(
            -1 if side in self.given else labels.index(levels[side])
            for side, labels in self.sides.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain values."""
        return {
            "sides": self.sides,
            "given": list(self.given),
            "control": self.control,
            "confidence": self.design.confidence,
            "min_lift": self.design.min_lift,
            "floor": self.design.floor,
            "reward_range": [self.design.low, self.design.high],
            "salt": self.salt,
            "versions": [self._version_dict(each) for each in self.versions.values()],
            "counts": _counts_list(self.design, self.counts),
        }

    def _version_dict(self, version: Version) -> dict[str, Any]:
        """Return a version as plain values, for `rank1.assign` to draw from and `judge` to bet."""
        found: dict[str, Any] = {"version": version.number, "salt": self.salt, "sides": {}}
        if self.given:
            found["given"] = list(self.given)
        leaders: dict[str, str | None] = {}
        for k, (side, labels) in enumerate(self.sides.items()):
            if side not in self.given:
                found["sides"][side] = dict(zip(labels, version.shares[k].tolist(), strict=True))
                leaders[side] = labels[version.leaders[k]] if version.bets else None
        found["leaders"] = leaders
        for name, columns in (("fit", version.fit), ("living", version.living)):
            found[name] = {
                side: dict(zip(labels, columns[k].tolist(), strict=True))
                for k, (side, labels) in enumerate(self.sides.items())
            }
        return found

    def to_text(self) -> str:
        """Return the document as JSON: one line per setting, version, and row of counts."""
        fields = []
        for name, value in self.to_dict().items():
            if name in ("versions", "counts"):
                text = "[\n" + ",\n".join(_json(each) for each in value) + "\n]"
            else:
                text = _json(value)
            fields.append(f"{_json(name)}: {text}")
        return "{\n" + ",\n".join(fields) + "\n}\n"


def first_shares(
    sides: Mapping[str, Sequence[str]],
    *,
    given: Iterable[str] = (),
    control: Mapping[str, str] | None = None,
    confidence: float = 0.95,
    min_lift: float = 0.0,
    floor: float = 0.0,
    reward_range: tuple[float, float] = (0, 1),
    salt: str | None = None,
) -> dict[str, Any]:
    """Make the first version of the shares, which `rank1 judge start` writes.

    Parameters
    ----------
    sides
        The levels of each side.
    given
        Sides whose level comes with the visitor, such as a segment.
    control
        A level for each side that isn't given; with a control, lifts are over it.
    confidence
        The confidence of the verdict.
    min_lift
        The smallest lift that matters, in reward above the lowest possible reward.
    floor
        The smallest share of each level, even of an eliminated one.
    reward_range
        The smallest and the largest possible reward.
    salt
        The string that `rank1.assign` hashes with a unit; default: a random one.

    Examples
    --------
    >>> shares = first_shares({"headline": ["A", "B"]}, salt="s")
    >>> shares["versions"][0]["sides"]
    {'headline': {'A': 0.5, 'B': 0.5}}
    """
    settings: dict[str, Any] = {
        "sides": _checked_sides(sides),
        "given": list(given),
        "control": None if control is None else dict(control),
        "confidence": confidence,
        "min_lift": min_lift,
        "floor": floor,
        "reward_range": list(reward_range),
        "salt": secrets.token_hex(8) if salt is None else salt,
    }
    shares = {  # any values that add up to 1: only the names of the sides matter here
        side: {label: float(k == 0) for k, label in enumerate(labels)}
        for side, labels in settings["sides"].items()
        if side not in settings["given"]
    }
    empty = SharesDocument.of({**settings, "versions": [{"version": 1, "sides": shares}]})
    first = dataclasses.replace(first_version(empty.design), number=1)
    return empty.extended(first, empty.counts).to_dict()


def _checked_sides(sides: Any) -> dict[str, list[str]]:
    if not isinstance(sides, Mapping) or not sides:
        raise InputError("sides", sides, "the levels of each side, by its name")
    found = {}
    for side, labels in sides.items():
        if not isinstance(side, str) or not side or side.lower() in TAKEN:
            raise InputError("side", side, f"a name other than {', '.join(TAKEN)}")
        if isinstance(labels, str) or not isinstance(labels, Sequence) or not labels:
            raise InputError(f"sides.{side}", labels, "a list of at least one level")
        for label in labels:
            if not isinstance(label, str) or not label:
                raise InputError(f"sides.{side}", label, "names of levels that aren't empty")
            if list(labels).count(label) > 1:
                twice = f"{shown(label)} twice"
                raise InputError(f"sides.{side}", label, "names that differ", got=twice)
        found[side] = list(labels)
    return found


def _checked_given(sides: Mapping[str, Any], given: Any) -> tuple[str, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputTypeError("given", given, "a list of names of sides")
    for side in given:
        if not isinstance(side, str) or side not in sides:
            raise InputError("given", side, f"one of {', '.join(sides)}")
    if len(set(given)) == len(sides):
        raise InputError("given", given, "fewer sides: at least one must be chosen")
    return tuple(side for side in sides if side in given)


def _version(
    design: Design, sides: Mapping[str, list[str]], given: Sequence[str], number: int, each: Any
) -> Version:
    if not isinstance(each, Mapping) or each.get("version") != number:
        got = each.get("version") if isinstance(each, Mapping) else each
        raise InputError("version", got, f"{number}: versions are numbered 1, 2, 3 …")
    shares, fit, living, leaders = [], [], [], []
    by_side = {name: each.get(name) or {} for name in ("sides", "fit", "living", "leaders")}
    for name, values in by_side.items():
        if not isinstance(values, Mapping):
            raise InputTypeError(name, values, "a mapping with the names of sides")
    for side, labels in sides.items():
        if side in given:
            shares.append(np.full(len(labels), 1 / len(labels)))
        else:
            own = _by_label(f"shares of {side}", by_side["sides"].get(side), labels, None)
            if abs(own.sum() - 1) > 1e-9:
                expected, got = "numbers that add up to 1", f"{own.sum():.10g}"
                raise InputError(f"shares of {side}", own.tolist(), expected, got=got)
            shares.append(own)
        fit.append(_by_label(f"fit of {side}", by_side["fit"].get(side), labels, 1.0))
        lives = _by_label(f"living of {side}", by_side["living"].get(side), labels, 1.0)
        living.append(lives.astype(np.bool_))
        leader = by_side["leaders"].get(side)
        if leader is not None and leader not in labels:
            raise InputError(f"leaders.{side}", leader, f"one of {', '.join(labels)}")
        leaders.append(-1 if leader is None else labels.index(leader))
    found = Version(number, tuple(shares), tuple(leaders), tuple(fit), tuple(living))
    return checked_version(design, found)


def _by_label(name: str, values: Any, labels: Sequence[str], default: float | None) -> Any:
    """Return a number for each level; missing levels get the default."""
    if values is None and default is not None:
        return np.full(len(labels), default)
    if not isinstance(values, Mapping):
        raise InputError(name, values, f"a number for each of {', '.join(labels)}")
    for label in values:
        if label not in labels:
            raise InputError(name, label, f"for levels among {', '.join(labels)}")
    missing = 0.0 if default is None else default
    found = []
    for label in labels:
        value = values.get(label, missing)
        value = float(value) if isinstance(value, bool) else value
        found.append(checks.number(f"{name}, {label}", value, 0))
    return np.array(found)


def _stored_counts(design: Design, versions: int, listed: Any) -> Counts:
    """Return the counts of the last update."""
    rows: list[Counts] = []
    if not isinstance(listed, Sequence):
        raise InputTypeError("counts", listed, "the counts of the last update")
    for place, each in enumerate(listed, 1):
        try:
            number = checks.integer("version", each["version"], 1, versions)
            reward = checks.number("reward", each["reward"], design.low, design.high)
            pulls = checks.vector("counts", each["counts"], 0, float(checks.MAX_STEPS))
            if len(pulls) != design.grid.arms:
                raise InputError("counts", pulls, f"{design.grid.arms} numbers, one for each arm")
        except (KeyError, TypeError) as error:
            expected = "a version, a reward and its counts"
            raise InputError(f"counts[{place}]", each, expected, got=repr(error)) from None
        arm = np.flatnonzero(pulls)
        rows.append(Counts(np.full(len(arm), number), arm, np.full(len(arm), reward), pulls[arm]))
    columns: Any = [np.concatenate(each) for each in zip(*(row[:4] for row in rows), strict=True)]
    return Counts(*columns) if rows else Counts.of([])


def _counts_list(design: Design, counts: Counts) -> list[dict[str, Any]]:
    """Return a row for each version and reward, with a number for each arm."""
    found: dict[tuple[int, float], Any] = {}
    columns = (column.tolist() for column in (counts.version, counts.reward))
    for key, arm, pulls in zip(
        zip(*columns, strict=True), counts.arm.tolist(), counts.pulls.tolist(), strict=True
    ):
        row = found.setdefault(key, [0] * design.grid.arms)
        row[arm] = int(pulls) if pulls == int(pulls) else pulls
    return [
        {"version": version, "reward": reward, "counts": row}
        for (version, reward), row in sorted(found.items())
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
