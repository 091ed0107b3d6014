"""The documents that studies and services return; the client reads the same classes.

A study makes these documents, the service sends them as JSON, and the client reads them. This
module imports only the standard library; NumPy is loaded to read a `Best`, which has arrays.
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


class _Document:
    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; NaN and infinity become None."""
        found: dict[str, Any] = to_document(self)
        return found


class _OfArm:
    """A document with the `levels` of an arm; with two sides, also as `row` and `column`."""

    levels: dict[str, str]

    @property
    def row(self) -> str:
        """The level of the first side, if there are two."""
        return _pair(self.levels)[0]

    @property
    def column(self) -> str:
        """The level of the second side, if there are two."""
        return _pair(self.levels)[1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; row and column are included only if there are two sides."""
        fields = dict(vars(self))
        if len(self.levels) == 2:
            fields["row"], fields["column"] = _pair(self.levels)
        return fields


@dataclass(frozen=True)
class Suggestion(_OfArm):
    """An arm to show, with an id for reporting its reward."""

    id: str
    #: The level of each side.
    levels: dict[str, str] = field(hash=False)
    #: When it was asked for: seconds since 1970, by the storage's clock.
    asked_at: float
    #: When its reward becomes overdue; None if never.
    expires_at: float | None = None
    unit: str | None = None
    key: str | None = None
    #: The data that the caller stored with it.
    data: dict[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Report(_OfArm):
    """A stored report."""

    id: str
    levels: dict[str, str] = field(hash=False)
    reward: float
    told_at: float
    #: Whether it arrived after its suggestion had expired.
    late: bool


@dataclass(frozen=True)
class Recorded(_OfArm):
    """A stored exposure that was drawn elsewhere."""

    unit: str
    #: The version that its levels were drawn under; None for a held-out unit.
    version: int | None
    levels: dict[str, str] = field(hash=False)
    recorded_at: float
    #: None until the reward is reported.
    reward: float | None = None
    #: Whether this call stored it; False if it was stored before.
    new: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Replayed(_Document):
    """How another policy would have done on the rewards of a log, from `Study.replay`."""

    policy: str
    #: The pulls before the policy asked for an arm without rewards left, and their average reward.
    steps: int
    rate: float
    #: The number of rewards in the log, and their average.
    rewards: int
    logged_rate: float
    #: The labels of the best arm, in the order of the sides.
    best: tuple[str, ...]
    #: The arm that had no reward left; None if the policy made as many pulls as there are rewards.
    exhausted: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Personalised(_Document):
    """Whether it pays to choose a side's level by that of another, from `Study.personalise`."""

    side: str
    by: str
    #: Whether no level of the side is best in every segment, at the study's confidence.
    pays: bool
    #: The level to show to everyone, and the leader in each segment; None and empty before the
    #: first report.
    common: str | None
    leaders: dict[str, str] = field(hash=False)
    #: The segments whose own evidence supports personalising.
    segments: list[str] = field(hash=False)
    #: The relative gain: `estimate`, `low`, `high`. `method` is how it was estimated.
    gain: dict[str, float] = field(hash=False)
    method: str | None
    statement: str


@dataclass(frozen=True)
class Forecast(_Document):
    """How much longer a study will take, from `Study.forecast`."""

    #: The number of rewards so far that count.
    reports: int
    #: How many more rewards it takes to tell the levels apart in 10%, 50% and 90% of the continued
    #: studies; infinite if beyond the search limit.
    more: dict[str, float] = field(hash=False)
    per_day: float | None
    #: `more` in days.
    days: dict[str, float] | None = field(hash=False)
    statement: str


@dataclass(frozen=True)
class Verified(_Document):
    """The result of `Study.verify`."""

    ok: bool
    suggestions: int
    reports: int
    pending: int
    expired: int
    cancelled: int
    #: The problems found, one sentence each.
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; problems are included only if there are any."""
        fields = super().to_dict()
        if not self.problems:
            del fields["problems"]
        return fields


@dataclass(frozen=True)
class Imported(_Document):
    """The result of `Study.import_history`."""

    #: The number of rewards in the history.
    rewards: int
    #: The number of lines without a reward, which were skipped.
    skipped: int = 0
    #: Whether all of this was imported before, so that nothing has changed.
    already_imported: bool = False


@dataclass(frozen=True)
class Best(_Document):
    """What a study has found so far, from `Study.best`.

    Tables have a dimension for each side, with the living levels; they are empty with
    `Study.best(tables=False)`. Means, intervals, rates and costs are in the units of the rewards.
    """

    #: The living levels, by side.
    sides: dict[str, list[str]]
    #: The arm with the largest mean, as labels in the order of the sides; None before the first
    #: report.
    leader: tuple[str, ...] | None
    mean: float
    counts: Floats
    means: Floats
    #: Intervals for the mean of each arm; all of them hold together, at any time.
    mean_lower: Floats
    mean_upper: Floats
    #: Comparison of each arm with the leader: an arm is out if its `upper` is at most `mark`. The
    #: rule that assumes rank one says "stop" exactly when all other arms are out.
    lower: Floats
    upper: Floats
    mark: float
    out: NDArray[np.bool_]
    #: The same comparison without assuming rank one.
    any_grid_upper: Floats
    any_grid_out: NDArray[np.bool_]
    #: For each side and level, its factor relative to the leader's level: estimate, lower and upper
    #: end.
    effects: dict[str, Floats]
    #: The average reward so far, and an estimate of it had all arms been played equally.
    rate: float
    equal_split: float
    #: Whether to stop; see `statement`.
    stop: bool
    #: The verdict that assumes one order, and the one that assumes nothing about the grid.
    reason: str
    any_grid_stop: bool
    any_grid_reason: str
    confidence: float
    tolerance: float
    #: The arm that the policy recommends; it may differ from the leader.
    recommended: tuple[str, ...]
    #: The number of suggestions, in all and by what became of them.
    totals: dict[str, int]
    #: The number of pending suggestions of each arm.
    pending: NDArray[np.int64]
    #: One sentence: what leads, by how much, and whether to stop. Then the next step, and the
    #: assumptions.
    statement: str = ""
    next_step: str = ""
    assumes: list[str] = field(default_factory=list)
    #: The leader's lift over the control, or over the runner-up: `over` (labels), `is_control`,
    #: `estimate`, `low`, `high`. If the lowest possible reward isn't 0, lifts and effects compare
    #: rewards above it (`above`); `mean` and `over_mean` are average rewards as reported.
    lift: dict[str, Any] | None = None
    #: If it may stop only because one order is assumed, the arm that speaks against the order:
    #: `arm` (labels), its `mean`, the leader's (`leading`), how often it was `tried`, whether it
    #: looks better than it should (`speaks`) or was tried too rarely, and the same in words.
    doubt: dict[str, Any] | None = None
    #: `stop` and `reason` of the two verdicts, "one_order" and "any_grid".
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: For each side, every level that it ever had: `label`, `living`, `share`, `estimate` and
    #: `lift` over the control's level, or the leader's; `reports`, their `mean`, and how often it
    #: was `shown`; when it was eliminated or retired (`gone_at`: `seq`, `at`), and `why`.
    levels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    #: The ten arms with the largest means: `levels`, `mean`, `interval`, `count`, `share` of all
    #: exposures, and `state`: "leads", "out" or "".
    arms: list[dict[str, Any]] = field(default_factory=list)
    #: The number of arms that are out.
    out_arms: int = 0
    #: The confidence interval of the leader's mean.
    interval: tuple[float, float] | None = None
    #: What the study has earned compared with the held-out units: `units`, `rate`, `rest_rate`,
    #: total `earned`, with `low` and `high`; None if there is no holdout.
    holdout: dict[str, Any] | None = None
    #: The number of the current version of the shares.
    version: int | None = None
    #: Possible problems, one sentence each.
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Summarise in a few lines: verdict, confidence, next step, warnings and assumptions."""
        notes = [f"Note: {each}" for each in self.warnings]
        assumed = [f"Assumes: {each}" for each in self.assumes]
        sure = [f"Confidence: {100 * self.confidence:g}%, however often you look."]
        return "\n".join(
            [self.statement, *sure[: self.leader is not None], self.next_step, *notes, *assumed]
        )

    @property
    def rows(self) -> list[str]:
        """The levels of the first side, if there are two."""
        return _pair(self.sides)[0]

    @property
    def columns(self) -> list[str]:
        """The levels of the second side, if there are two."""
        return _pair(self.sides)[1]

    @property
    def row_effects(self) -> Floats:
        """The effects of the first side, if there are two."""
        return _pair(self.effects)[0]

    @property
    def column_effects(self) -> Floats:
        """The effects of the second side, if there are two."""
        return _pair(self.effects)[1]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; NaN and infinity become None.

        With two sides, rows and columns are included as well.
        """
        found = super().to_dict()
        if len(self.sides) == 2:
            found["rows"], found["columns"] = found["sides"].values()
            found["row_effects"], found["column_effects"] = found["effects"].values()
        return found

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Best:
        """Read what `to_dict` returned, and restore arrays and NaN."""
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

        return notebook.never_fails(Best.html)(self)

    def html(self, caption: str = "") -> str:
        """Return the leader, the verdict and the means as HTML for a notebook."""
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
        names, best = list(self.sides.values()), None
        if self.leader is not None:
            best = tuple(side.index(one) for side, one in zip(names, self.leader, strict=True))
        label = "means of the rewards reported"
        if len(names) == 2:
            picture = notebook.heat_map(
                lambda i, j: self.means[i][:, j], names[0], names[1], best, label
            )
        else:
            picture = notebook.level_map(self.means, names, best, f"{label}, by side and level")
        return notebook.beside(facts, picture)


def _pair(by_side: Mapping[str, T]) -> tuple[T, T]:
    if len(by_side) != 2:
        raise AttributeError(f"rows and columns are for two sides, not {len(by_side)}: see levels")
    first, second = by_side.values()
    return first, second


def above(low: float) -> str:
    """Say what lifts compare, if the lowest possible reward isn't 0.

    >>> above(0.0), above(100.0), above(-1.0)
    ('', ' in reward above 100', ' in reward above -1')
    """
    return f" in reward above {low:g}" if low else ""


def to_document(value: Any) -> Any:
    """Convert a value for JSON: tuples and arrays become lists, NaN and infinity become None.

    >>> to_document({"best": ("a", "x"), "rate": float("nan")})
    {'best': ['a', 'x'], 'rate': None}
    >>> import numpy as np
    >>> to_document({"means": np.array([[0.5, np.nan]]), "out": np.array([True])})
    {'means': [[0.5, None]], 'out': [True]}
    """
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if hasattr(value, "tolist"):
        import numpy as np

        known: Any = value.dtype.kind != "f" or np.isfinite(value)
        if not np.all(known):
            value = np.array(np.where(known, value, None))
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: to_document(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def read_document(kind: type[T], fields: Mapping[str, Any]) -> T:
    """Read a document from JSON: unknown names are ignored, missing ones get their defaults.

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
            f"the service's answer isn't a valid {kind.__name__.lower()}: {error}",
            "the client and the service may have different versions of rank1",
        ) from None
