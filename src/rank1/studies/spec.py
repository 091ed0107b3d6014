"""The specification of a study: its grid, its policy, its rewards and when they are overdue."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rank1 import checks
from rank1.design.options import control_of, range_of
from rank1.errors import DamagedError, FormatError, InputError, InputTypeError, shown
from rank1.grid import MAX_KEPT, MAX_SIDES, Grid
from rank1.policies import DEFAULT_POLICY, BetElim, Known, Policy, State
from rank1.policies.base import has_counts
from rank1.policies.mistakes import start
from rank1.settings import find_policy, make_policy, parse_policy
from rank1.studies.design_options import design_options, no_design_options
from rank1.studies.events import Expiry, check_text

__all__ = [
    "MAX_LEVELS",
    "Spec",
    "labels_of",
    "make_spec",
    "policy_of",
    "read_spec",
    "sides_of",
]

#: The maximum number of levels of a side.
MAX_LEVELS = 4096
#: The side names of a study created with rows and columns.
ROW, COLUMN = "row", "column"
#: What to do when a reward is overdue.
ON_EXPIRY = {"drop": Expiry.DROPPED, "default": Expiry.DEFAULT, "wait": Expiry.WAITING}
#: The default horizon, in steps.
HORIZON = 1_000_000
#: The relative growth in reports after which a new version of the design begins.
GROWTH = 0.02
#: Whether later visits of a unit count as evidence.
REPEATS = ("once", "each")

#: Increase this when a specification has a new setting that older releases must not ignore. A
#: setting that they may ignore is simply added to `Spec`: older releases skip it, and old logs get
#: its default.
_FORMAT = 4


@dataclasses.dataclass(frozen=True)
class Spec:
    """The settings passed to `Study.create`, as stored in the log; they are explained there."""

    #: The names of the sides and their initial levels.
    sides: dict[str, tuple[str, ...]]
    goal: str
    policy: str
    settings: dict[str, Any]
    horizon: int | None = None
    reward_window: float | None = None
    on_expiry: str = "drop"
    default_reward: float = 0.0
    reward_range: tuple[float, float] = (0.0, 1.0)
    confidence: float = 0.95
    tolerance: float = 0.0
    forgetting: float | None = None
    seed: int = 0
    #: The maximum number of levels each side can ever have, including retired ones. The log numbers
    #: arms on this grid.
    room: tuple[int, ...] = (MAX_LEVELS, MAX_LEVELS)
    #: Whether levels are drawn from the shares of a design instead of chosen by a policy.
    design: bool = False
    control: dict[str, str] | None = None
    floor: float = 0.0
    holdout: float = 0.0
    min_lift: float = 0.0
    given: tuple[str, ...] = ()
    new_levels: str = "refuse"
    guardrails: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    repeat: str = "each"
    #: Makes this study assign units differently from other studies; derived from seed and sides.
    salt: str = ""
    #: Whether a study that draws by shares bets on a reward only when its window has closed.
    by_window: bool = False

    def made_policy(self) -> Policy:
        """Create the policy with its settings."""
        try:
            return make_policy(self.policy, dict(self.settings))
        except InputError as error:
            raise FormatError(
                f"the study's policy {self.policy!r} can't be loaded: {error}",
                "install the package that has it, or upgrade rank1",
            ) from None

    @property
    def text(self) -> str:
        """The specification as ASCII JSON."""
        # Older releases would count such a study's rewards too early; they can read all others.
        return json.dumps({"format": 4 if self.by_window else 3, **dataclasses.asdict(self)})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values; with rows and columns if there are two sides."""
        fields = json.loads(json.dumps(dataclasses.asdict(self)))
        del fields["room"]
        if len(self.sides) == 2:
            fields["rows"], fields["columns"] = fields["sides"].values()
        return dict(fields)


def read_spec(text: str | None) -> Spec:
    """Read the specification at the beginning of a log.

    Unknown fields from newer releases that may be ignored are skipped, and fields missing in older
    logs get their defaults. Format 1 had rows and columns in place of sides.
    """
    try:
        fields = json.loads(text or "")
        if fields["format"] > _FORMAT:
            raise FormatError(
                f"the study has a specification of format {fields['format']}, and this version of "
                f"rank1 knows up to {_FORMAT}",
                "a later version made it; upgrade rank1",
            )
        if fields["format"] == 1:
            fields["sides"] = {ROW: fields["rows"], COLUMN: fields["columns"]}
        fields["sides"] = {side: tuple(labels) for side, labels in fields["sides"].items()}
        for name in ("reward_range", "room", "given"):
            if name in fields:
                fields[name] = tuple(fields[name])
        known = {field.name for field in dataclasses.fields(Spec)}
        return Spec(**{name: value for name, value in fields.items() if name in known})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedError(f"the study's specification can't be read: {error!r}") from None


def labels_of(name: str, labels: Any) -> tuple[str, ...]:
    """Check the names of levels, which must not contain duplicates, and return them.

    >>> labels_of("rows", ["18-24", "25-34", "18-24"])
    Traceback (most recent call last):
    ...
    rank1.InputError: rows must be names that differ, got '18-24' twice
    """
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InputTypeError(name, labels, "a list of names")
    found = tuple(labels)
    if not 1 <= len(found) <= MAX_LEVELS:
        raise InputError(name, labels, f"1 to {MAX_LEVELS:,} names", got=f"{len(found):,}")
    seen: set[str] = set()
    for place, label in enumerate(found):
        check_text(f"{name}[{place}]", label)
        if label in seen:
            raise InputError(name, label, "names that differ", got=f"{shown(label)} twice")
        seen.add(label)
    return found


def sides_of(rows: Any, columns: Any, sides: Any) -> dict[str, tuple[str, ...]]:
    """Return the sides of a study, from rows and columns or from named sides.

    >>> sides_of(None, None, {"image": ["x", "y"], "button": []})
    Traceback (most recent call last):
    ...
    rank1.InputError: sides.button must be 1 to 4,096 names, got 0
    """
    if sides is None:
        if rows is None or columns is None:
            got = (
                "neither"
                if rows is columns
                else "rows alone"
                if columns is None
                else "columns alone"
            )
            raise InputError("sides", None, "given, or both rows and columns", got=got)
        return {ROW: labels_of("rows", rows), COLUMN: labels_of("columns", columns)}
    if rows is not None or columns is not None:
        raise InputError("sides", sides, "None if rows and columns are given")
    if not isinstance(sides, Mapping):
        raise InputTypeError("sides", sides, "a mapping from names of sides to names of levels")
    if not 1 <= len(sides) <= MAX_SIDES:
        raise InputError("sides", sides, f"1 to {MAX_SIDES} sides", got=f"{len(sides)}")
    for side in sides:
        check_text("sides", side)
        if side == "reward":  # files have a column with this name
            raise InputError("sides", side, "sides that aren't called reward")
    return {side: labels_of(f"sides.{side}", labels) for side, labels in sides.items()}


def room_for(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return the most levels each side can ever have: 4,096 on up to four sides, fewer on more.

    >>> room_for([2, 3]), room_for([4, 100, 2, 2, 2, 2, 2, 2])
    ((4096, 4096), (64, 128, 64, 64, 64, 64, 64, 32))
    """
    bits = [(size - 1).bit_length() for size in sizes]
    while sum(bits) < 48 and min(bits) < 12:
        bits[bits.index(min(bits))] += 1
    return tuple(2**each for each in bits)


def make_spec(
    *,
    goal: str,
    rows: Any = None,
    columns: Any = None,
    sides: Any = None,
    policy: Policy | str | None = None,
    horizon: int | None = None,
    reward_window: float | datetime.timedelta | None = None,
    on_expiry: str = "drop",
    default_reward: float | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
    tolerance: float = 0.0,
    forgetting: float | None = None,
    seed: int | None = None,
    control: Mapping[str, str] | None = None,
    repeat: str = "once",
    **told: Any,
) -> Spec:
    """Create a specification, after checking that a study can run with it.

    `told` holds the options of `design_options`.
    """
    checks.one_of("goal", goal, tuple(DEFAULT_POLICY))
    checks.one_of("on_expiry", on_expiry, tuple(ON_EXPIRY))
    low, high = range_of(reward_range)
    if isinstance(reward_window, datetime.timedelta):
        reward_window = reward_window.total_seconds()
    if reward_window is not None:
        reward_window = checks.number("reward_window", reward_window, 0, 1e10, above=True)
    elif on_expiry == "default":
        raise InputError(
            "reward_window", None, "given with on_expiry='default'",
            "it is the number of seconds after which a missing reward counts as the default",
        )  # fmt: skip
    default = (
        low
        if default_reward is None
        else checks.number("default_reward", default_reward, low, high)
    )
    if horizon is not None:
        horizon = checks.integer("horizon", horizon, 1)
    if forgetting is not None:
        forgetting = checks.number("forgetting", forgetting, 1, 1e12)
    checks.number("confidence", confidence, 0, 1, above=True, below=True)
    checks.number("tolerance", tolerance, 0, high - low, below=True)
    checks.one_of("repeat", repeat, REPEATS)
    seed = int.from_bytes(os.urandom(6)) if seed is None else checks.integer("seed", seed, 0)
    grid, design = sides_of(rows, columns, sides), goal == "find" and policy is None
    sizes = [len(labels) for labels in grid.values()]
    told = {name: value for name, value in told.items() if value is not None}
    if design:
        told = design_options(grid, control, **told)
        _check_design(sizes, forgetting, tolerance)
        policy = BetElim(
            float(confidence), growth=GROWTH, floor=told["floor"], min_lift=told["min_lift"]
        )
    else:
        no_design_options(**told)
        told = {}
    chosen = policy_of(policy, goal)
    spec = Spec(
        sides=grid,
        goal=goal,
        policy=name_of_policy(chosen),
        settings=chosen.settings,
        horizon=horizon,
        reward_window=reward_window,
        on_expiry=on_expiry,
        default_reward=default,
        reward_range=(low, high),
        confidence=float(confidence),
        tolerance=float(tolerance),
        forgetting=forgetting,
        seed=seed,
        room=room_for(sizes),
        design=design,
        control=control_of(grid, told.get("given", ()), control),
        repeat=repeat,
        by_window=design and reward_window is not None and (low, high) != (0.0, 1.0),
        salt=hashlib.blake2b(repr((seed, grid)).encode(), digest_size=8).hexdigest(),
        **told,
    )
    if not design and not has_counts(started(spec, sizes)) and forgetting is not None:
        raise InputError(
            "forgetting", forgetting, f"None for {spec.policy}",
            "its state isn't counts and sums, as those of uts, top_two, ucb1 and thompson are",
        )  # fmt: skip
    return spec


def _check_design(sizes: Sequence[int], forgetting: float | None, tolerance: float) -> None:
    """Refuse settings that a study that draws by shares doesn't support."""
    if forgetting is not None:
        raise InputError(
            "forgetting", forgetting, 'None for goal="find" without a policy',
            "its bets hold while means rise and fall, as long as the order of the levels stays",
        )  # fmt: skip
    if tolerance:
        raise InputError(
            "tolerance", tolerance, '0 for goal="find" without a policy',
            "min_lift says which differences don't matter",
        )  # fmt: skip
    if math.prod(sizes) > MAX_KEPT:
        raise InputError(
            "sides", sizes, f"of at most {MAX_KEPT:,} arms", got=f"{math.prod(sizes):,}"
        )


def started(spec: Spec, sizes: Iterable[int]) -> State:
    """Return the policy's initial state, checking that it can play the grid; rewards are scaled."""
    policy, grid = spec.made_policy(), Grid(sizes)
    policy.check(grid, spec.horizon)
    return start(policy, Known(n=spec.horizon or HORIZON, sides=grid))


def name_of_policy(policy: Policy) -> str:
    """Return the name by which the policy's class is found when the study is reopened."""
    cls = type(policy)
    for name in (policy.name, f"{cls.__module__}:{cls.__qualname__}"):
        with contextlib.suppress(InputError, InputTypeError):
            if cls.__module__ != "__main__" and find_policy(name) is cls:
                return name
    raise InputError(
        "policy", policy, "one whose class can be imported",
        "put the class at the top level of a module",
    )  # fmt: skip


def policy_of(policy: Policy | str | None, goal: str) -> Policy:
    """Return the policy that was named or passed, or the goal's default policy."""
    if policy is None:
        policy = DEFAULT_POLICY[goal]
    if isinstance(policy, str):
        return parse_policy(policy)
    if not isinstance(policy, Policy):
        raise InputTypeError("policy", policy, "a policy or its name")
    name_of_policy(policy)  # raises if the study couldn't be reopened with it
    return policy
