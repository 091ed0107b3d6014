"""What studies and services answer with: the same classes at both ends.

A study makes these documents, the service sends them as JSON, and the client reads them. The module
imports the standard library only; NumPy is loaded where a `Best` is read, whose tables are arrays.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from rank1.errors import BackendError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "Best",
    "Forecast",
    "Imported",
    "Personalised",
    "Recorded",
    "Replayed",
    "Report",
    "Suggestion",
    "Verified",
]

T = TypeVar("T")


class _OfArm:
    """What has the `levels` of an arm; of two sides also as `row` and `column`."""

    levels: dict[str, str]

    @property
    def row(self) -> str:
        """The level of the first of two sides."""
        return _pair(self.levels)[0]

    @property
    def column(self) -> str:
        """The level of the second of two sides."""
        return _pair(self.levels)[1]

    def to_dict(self) -> dict[str, Any]:
        """As plain values; row and column only where there are two sides."""
        fields = dict(vars(self))
        if len(self.levels) == 2:
            fields["row"], fields["column"] = _pair(self.levels)
        return fields


@dataclass(frozen=True)
class Suggestion(_OfArm):
    """An arm to be shown, under an id by which its reward is reported."""

    id: str
    #: The level of each side.
    levels: dict[str, str] = field(hash=False)
    #: By the storage's clock, in seconds since 1970.
    asked_at: float
    #: When its reward is overdue; None if never.
    expires_at: float | None = None
    unit: str | None = None
    key: str | None = None
    #: What the caller stored with it.
    data: dict[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Report(_OfArm):
    """A report that is stored."""

    id: str
    levels: dict[str, str] = field(hash=False)
    reward: float
    told_at: float
    #: Whether it came after its suggestion had expired.
    late: bool


@dataclass(frozen=True)
class Recorded(_OfArm):
    """An exposure that was drawn elsewhere, as it is stored."""

    unit: str
    #: The version that its levels were drawn under; None for a unit that is held out.
    version: int | None
    levels: dict[str, str] = field(hash=False)
    recorded_at: float
    #: None until it is told.
    reward: float | None = None
    #: Whether it was stored just now, and not before.
    new: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Replayed:
    """How another policy would have fared on a log's rewards; what `Study.replay` returns."""

    policy: str
    #: Pulls until an arm was asked for that had no reward left, and their average reward.
    steps: int
    rate: float
    #: Rewards in the log, and their average.
    rewards: int
    logged_rate: float
    #: Labels, in the order of the sides.
    best: tuple[str, ...]
    #: The arm that had no reward left; None if the policy went through as many as there are.
    exhausted: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return to_document(self)


@dataclass(frozen=True)
class Personalised:
    """Whether it pays to choose a side's level by the level of another: `Study.personalise`."""

    side: str
    by: str
    #: Whether no level of the side is best in every segment, at the study's confidence.
    pays: bool
    #: The level that would be shown to all, and the one that leads in each segment; None and empty
    #: before the first report.
    common: str | None
    leaders: dict[str, str] = field(hash=False)
    #: The segments that speak for personalising, each by its own evidence.
    segments: list[str] = field(hash=False)
    #: What it could gain, relative: `estimate`, `low`, `high`; and how that was estimated.
    gain: dict[str, float] = field(hash=False)
    method: str | None
    statement: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return to_document(self)


@dataclass(frozen=True)
class Forecast:
    """How long a study will still take; what `Study.forecast` returns."""

    #: Rewards so far that count.
    reports: int
    #: How many more until the levels are told apart, in 10%, 50% and 90% of continued studies;
    #: infinite where that is beyond what was looked at.
    more: dict[str, float] = field(hash=False)
    per_day: float | None
    #: The same in days.
    days: dict[str, float] | None = field(hash=False)
    statement: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON; what is infinite is None."""
        return to_document(self)


@dataclass(frozen=True)
class Verified:
    """What `Study.verify` found."""

    ok: bool
    suggestions: int
    reports: int
    pending: int
    expired: int
    cancelled: int
    #: What is wrong, a sentence each.
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain values; the problems only if there are any."""
        fields = dict(vars(self))
        if not self.problems:
            fields.pop("problems")
        return fields


@dataclass(frozen=True)
class Imported:
    """What `Study.import_history` found."""

    #: How many rewards there are.
    rewards: int
    #: Lines without a reward, which were passed over.
    skipped: int = 0
    #: Whether all this was imported before, so that nothing has changed.
    already_imported: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Best:
    """What a study has found so far; what `Study.best` returns.

    Tables have a dimension for each side, over the levels that live; without tables
    (`Study.best(tables=False)`) they are empty. Means, intervals, rates and costs are in the units
    of the rewards.
    """

    #: The levels that live, by side.
    sides: dict[str, list[str]]
    #: The arm of the largest mean, as labels in the order of the sides; None before the first
    #: report.
    leader: tuple[str, ...] | None
    mean: float
    counts: Floats
    means: Floats
    #: Each mean by itself, all at once, at any time.
    mean_lower: Floats
    mean_upper: Floats
    #: Each arm beside the leader: it is out where `upper` is at most `mark`, and the rule that
    #: assumes rank one says «stop» exactly when all others are out.
    lower: Floats
    upper: Floats
    mark: float
    out: NDArray[np.bool_]
    #: The same without assuming rank one.
    any_grid_upper: Floats
    any_grid_out: NDArray[np.bool_]
    #: By side, of each level: its factor relative to the leader's level; estimate, lower and upper
    #: end.
    effects: dict[str, Floats]
    #: Average reward so far, and an estimate of what playing all arms alike would have given.
    rate: float
    equal_split: float
    #: Whether to stop; see `statement`.
    stop: bool
    #: The verdict that assumes one order, and the one that assumes nothing of the grid, in words.
    reason: str
    any_grid_stop: bool
    any_grid_reason: str
    confidence: float
    tolerance: float
    #: What the policy recommends; it may differ from the leader.
    recommended: tuple[str, ...]
    #: How many suggestions there are, and what became of them.
    totals: dict[str, int]
    #: Suggestions of each arm that wait for a reward.
    pending: NDArray[np.int64]
    #: What leads, by how much, and whether to stop, in a sentence; what to do; what is assumed.
    statement: str = ""
    next_step: str = ""
    assumes: list[str] = field(default_factory=list)
    #: The leader's lift over the control, or over the runner-up: `over` (labels), `is_control`,
    #: `estimate`, `low`, `high`. If the lowest reward isn't 0, lifts and effects compare rewards
    #: above it (`above`); `mean` and `over_mean` are average rewards as they were reported.
    lift: dict[str, Any] | None = None
    #: "one_order" and "any_grid": `stop` and `reason` of each.
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: By side, of each level that ever was: `label`, `living`, `share`, `estimate` and `lift` over
    #: the control's level, or the leader's; `reports`, their `mean`, and how often it was `shown`;
    #: when it went (`gone_at`: `seq`, `at`), and `why`.
    levels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    #: The ten arms with the largest means: `levels`, `mean`, `interval`, `count`, `share` of what
    #: was shown, and `state`: "leads", "out" or "".
    arms: list[dict[str, Any]] = field(default_factory=list)
    #: How many arms are out.
    out_arms: int = 0
    #: What holds the leader's mean.
    interval: tuple[float, float] | None = None
    #: What the study has earned over the units that are held out: `units`, `rate`, `rest_rate`,
    #: `earned` in all, with `low` and `high`; None where none are.
    holdout: dict[str, Any] | None = None
    #: The current version of the shares.
    version: int | None = None
    #: What may be wrong, a sentence each.
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """What to know in a few lines: the verdict, what to do, what may be wrong or is assumed."""
        notes = [f"Note: {each}" for each in self.warnings]
        assumed = [f"Assumes: {each}" for each in self.assumes]
        return "\n".join([self.statement, self.next_step, *notes, *assumed])

    @property
    def rows(self) -> list[str]:
        """The levels of the first of two sides."""
        return _pair(self.sides)[0]

    @property
    def columns(self) -> list[str]:
        """The levels of the second of two sides."""
        return _pair(self.sides)[1]

    @property
    def row_effects(self) -> Floats:
        """The effects of the first of two sides."""
        return _pair(self.effects)[0]

    @property
    def column_effects(self) -> Floats:
        """The effects of the second of two sides."""
        return _pair(self.effects)[1]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; NaN and infinity are None.

        Of two sides, also as rows and columns.
        """
        found: dict[str, Any] = to_document(self)
        if len(self.sides) == 2:
            found["rows"], found["columns"] = found["sides"].values()
            found["row_effects"], found["column_effects"] = found["effects"].values()
        return found

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Best:
        """Read what `to_dict` gave, with arrays and NaN again."""
        import numpy as np

        def read(kind: str, value: Any) -> Any:
            if kind.startswith("dict[str, Floats"):
                return {side: read("Floats", each) for side, each in value.items()}
            if kind == "Floats":
                return np.array(value, np.float64)
            if kind.startswith("NDArray"):
                return np.array(value, bool if "bool" in kind else np.int64)
            if kind.startswith("tuple"):
                return None if value is None else tuple(value)
            return math.nan if kind == "float" and value is None else value

        kinds = {each.name: str(each.type) for each in dataclasses.fields(cls)}
        given = {name: read(kinds[name], fields[name]) for name in kinds if name in fields}
        return read_document(cls, given)

    def _repr_html_(self) -> str | None:
        from rank1 import notebook

        def html(best: Best) -> str:
            return best.html("")

        return notebook.never_fails(html)(self)

    def html(self, caption: str) -> str:
        """The leader, the verdict and the means as a notebook shows them."""
        from rank1 import notebook

        told = [
            (" × ".join(self.sides), " × ".join(f"{len(each):,}" for each in self.sides.values())),
            ("leader", "none yet" if self.leader is None else " × ".join(self.leader)),
            ("its mean", self.mean if self.leader else math.nan),
            ("average so far", self.rate),
            ("equal split", self.equal_split),
            ("reports", self.totals["reports"]),
            ("pending", self.totals["pending"]),
            ("verdict", self.statement),
            ("next", self.next_step),
            ("assuming one order", self.reason),
            ("on any grid", self.any_grid_reason),
        ]
        facts = notebook.facts(told, caption)
        if len(self.sides) != 2:
            names, best = list(self.sides.values()), None
            if self.leader is not None:
                best = [side.index(one) for side, one in zip(names, self.leader, strict=True)]
            label = "means of the rewards reported, by side and level"
            return notebook.beside(facts, notebook.level_map(self.means, names, best, label))
        at = None
        if self.leader is not None:
            at = self.rows.index(self.leader[0]), self.columns.index(self.leader[1])
        picture = notebook.heat_map(
            lambda some, across: self.means[some][:, across],
            self.rows,
            self.columns,
            at,
            "means of the rewards reported",
        )
        return notebook.beside(facts, picture)


def _pair(by_side: Mapping[str, T]) -> tuple[T, T]:
    if len(by_side) != 2:
        raise AttributeError(f"rows and columns are for two sides, not {len(by_side)}: see levels")
    first, second = by_side.values()
    return first, second


def above(low: float) -> str:
    """What lifts compare, where the lowest reward isn't 0.

    >>> above(0.0), above(100.0), above(-1.0)
    ('', ' in reward above 100', ' in reward above -1')
    """
    return f" in reward above {low:g}" if low else ""


def to_document(value: Any) -> Any:
    """A document's value as JSON has it: lists for tuples and arrays, None for NaN and infinity.

    >>> to_document({"best": ("a", "x"), "rate": float("nan")})
    {'best': ['a', 'x'], 'rate': None}
    """
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: to_document(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def read_document(kind: type[T], fields: Mapping[str, Any]) -> T:
    """A document from JSON: names that aren't known here are ignored, missing ones have defaults.

    >>> read_document(Report, {"id": "k3", "levels": {"image": "x"}, "reward": 1.0, "told_at": 0.0,
    ...                        "late": False, "colour": "of a later version"}).reward
    1.0
    """
    known: Any = dataclasses.fields(kind)  # type: ignore[arg-type]
    given = {each.name: fields[each.name] for each in known if each.name in fields}
    try:
        return kind(**given)
    except TypeError as error:
        raise BackendError(
            f"the service's answer is no {kind.__name__.lower()}: {error}",
            "compare the versions of rank1 here and there",
        ) from None
