"""What a study is: its grid, its policy, what a reward is and when it is overdue."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
from collections.abc import Iterable
from typing import Any

from rank1 import checks
from rank1.checks import shown
from rank1.errors import DamagedError, FormatError, InputError, InputTypeError
from rank1.policies import POLICIES, Known, Policy, State
from rank1.settings import build, parse_policy
from rank1.studies.log import Expiry, check_text

__all__ = [
    "DEFAULT_POLICY",
    "MAX_LINES",
    "Spec",
    "check_grid",
    "labels_of",
    "make_spec",
    "policy_of",
    "range_of",
    "read_spec",
]

#: The most rows, and the most columns.
MAX_LINES = 4096
#: The most pairs, for policies that keep something for every pair.
MAX_PAIRS = 2**20
#: What a goal takes unless a policy is named.
DEFAULT_POLICY = {"earn": "uts", "find": "top_two"}
#: What to do about a reward that is overdue.
ON_EXPIRY = {"drop": Expiry.DROPPED, "default": Expiry.DEFAULT, "wait": Expiry.WAITING}
#: Steps that a policy is told of where no horizon was given.
HORIZON = 1_000_000

_FORMAT = 1

#: The largest reward there can be.
LARGEST = 1e100


@dataclasses.dataclass(frozen=True)
class Spec:
    """What `Study.create` was told, as the log keeps it; see there."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    goal: str
    policy: str
    settings: dict[str, Any]
    horizon: int | None
    reward_window: float | None
    on_expiry: str
    default_reward: float
    reward_range: tuple[float, float]
    confidence: float
    tolerance: float
    forgetting: float | None
    seed: int

    def made_policy(self) -> Policy:
        """The policy with its settings."""
        try:
            return build("policy", POLICIES, self.policy, dict(self.settings))
        except InputError as error:
            raise FormatError(
                f"the study's policy isn't known to this version of rank1: {error}"
            ) from None

    def known(self, K: int, L: int) -> Known:
        """What the policy is told on a grid of K rows and L columns; rewards are scaled."""
        return Known(K, L, self.horizon or HORIZON)

    def scaled(self, reward: float) -> float:
        """A reward as a number in [0, 1]."""
        low, high = self.reward_range
        return (reward - low) / (high - low)

    @property
    def text(self) -> str:
        """As JSON in ASCII."""
        return json.dumps({"format": _FORMAT, **dataclasses.asdict(self)})


def read_spec(text: str | None) -> Spec:
    """The specification that a log begins with."""
    try:
        fields = json.loads(text or "")
        if fields.pop("format") > _FORMAT:
            raise FormatError("the study was made by a later version of rank1: upgrade it")
        for name in ("rows", "columns", "reward_range"):
            fields[name] = tuple(fields[name])
        return Spec(**fields)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedError(f"the study's specification can't be read: {error!r}") from None


def labels_of(name: str, labels: Any, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of rows or columns, which must differ from each other.

    >>> labels_of("rows", ["18-24", "25-34", "18-24"])
    Traceback (most recent call last):
    ...
    rank1.InputError: rows must all be different, got '18-24' twice
    """
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InputTypeError(f"{name} must be a list of names, got {shown(labels)}")
    found = tuple(labels)
    seen = set(known)
    if not 1 <= len(found) + len(seen) <= MAX_LINES:
        raise InputError(f"{name} must be 1 to {MAX_LINES:,} names, got {len(found) + len(seen):,}")
    for place, label in enumerate(found):
        check_text(f"{name}[{place}]", label)
        if label in seen:
            raise InputError(f"{name} must all be different, got {shown(label)} twice")
        seen.add(label)
    return found


def make_spec(
    *,
    rows: Any,
    columns: Any,
    goal: str,
    policy: Policy | str | None,
    horizon: int | None,
    reward_window: float | datetime.timedelta | None,
    on_expiry: str,
    default_reward: float | None,
    reward_range: tuple[float, float],
    confidence: float,
    tolerance: float,
    forgetting: float | None,
    seed: int | None,
) -> Spec:
    """A specification, once it is sure that a study can be run by it."""
    checks.one_of("goal", goal, tuple(DEFAULT_POLICY))
    checks.one_of("on_expiry", on_expiry, tuple(ON_EXPIRY))
    low, high = range_of(reward_range)
    if isinstance(reward_window, datetime.timedelta):
        reward_window = reward_window.total_seconds()
    if reward_window is not None:
        reward_window = checks.number("reward_window", reward_window, 0, 1e10, above=True)
    elif on_expiry == "default":
        raise InputError(
            "reward_window must be given with on_expiry='default': the seconds after which a "
            "reward that hasn't come is taken to be the default"
        )
    default = (
        low
        if default_reward is None
        else checks.number("default_reward", default_reward, low, high)
    )
    if horizon is not None:
        horizon = checks.integer("horizon", horizon, 1)
    if forgetting is not None:
        forgetting = checks.number("forgetting", forgetting, 1, 1e12)
    for name, value in (("confidence", confidence), ("tolerance", tolerance)):
        checks.number(name, value, 0, 1, above=name == "confidence", below=True)
    seed = int.from_bytes(os.urandom(6)) if seed is None else checks.integer("seed", seed, 0)
    chosen = policy_of(policy, goal)
    spec = Spec(
        rows=labels_of("rows", rows),
        columns=labels_of("columns", columns),
        goal=goal,
        policy=chosen.name,
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
    )
    _check_playable(spec)
    started(spec, len(spec.rows), len(spec.columns))
    return spec


def started(spec: Spec, K: int, L: int) -> State:
    """The policy's state before the first pull, on a grid that it can play."""
    policy = spec.made_policy()
    check_grid(policy, K, L, spec.horizon)
    return policy.start(spec.known(K, L))


def check_grid(policy: Policy, K: int, L: int, horizon: int | None) -> None:
    """Refuse a grid that a policy can't keep, or won't have seen once by the horizon.

    >>> from rank1 import UTS
    >>> check_grid(UTS(), 30, 20, 500)
    Traceback (most recent call last):
    ...
    rank1.InputError: horizon must be at least 600, got 500: uts tries each of the 600 pairs first; raise it, merge rows or columns, or take a policy that needn't try every pair, like rank1elim or thompson
    """  # noqa: E501
    pairs = K * L
    if pairs > MAX_PAIRS and not policy.lines_only:
        others = [name for name, kind in POLICIES.items() if kind.lines_only]
        raise InputError(
            f"rows must be fewer, or columns: {policy.name} keeps something for every pair, and "
            f"takes at most {MAX_PAIRS:,} ({' and '.join(others)} take more), got {pairs:,}"
        )
    tries_all = policy.every_pair_first and getattr(policy, "first_round", True)
    if horizon is not None and tries_all and pairs > horizon:
        raise InputError(
            f"horizon must be at least {pairs:,}, got {horizon:,}: {policy.name} tries "
            f"each of the {pairs:,} pairs first; raise it, merge rows or columns, or take a "
            "policy that needn't try every pair, like rank1elim or thompson"
        )


def _check_playable(spec: Spec) -> None:
    policy = POLICIES[spec.policy]
    if spec.forgetting is not None and not policy.counts:
        able = ", ".join(name for name, cls in POLICIES.items() if cls.counts)
        raise InputError(
            f"forgetting must be None for {spec.policy}, whose state isn't counts and sums; "
            f"it works with {able}"
        )


def policy_of(policy: Policy | str | None, goal: str) -> Policy:
    """The policy that was named or given, or the goal's."""
    if policy is None:
        policy = DEFAULT_POLICY[goal]
    if isinstance(policy, str):
        return parse_policy(policy)
    if not isinstance(policy, Policy):
        raise InputTypeError(f"policy must be a policy or its name, got {shown(policy)}")
    if POLICIES.get(policy.name) is not type(policy):
        raise InputError(
            f"policy must be one that rank1 comes with, as others can't be opened by its name, "
            f"got {shown(policy)}"
        )
    return policy


def range_of(reward_range: Any) -> tuple[float, float]:
    """The least and the largest reward, as they were given."""
    try:
        low, high = reward_range
    except (TypeError, ValueError):
        raise InputTypeError(
            f"reward_range must be a pair of numbers, got {shown(reward_range)}"
        ) from None
    low, high = checks.number("reward_range[0]", low), checks.number("reward_range[1]", high)
    if not low < high or not math.isfinite(high - low):
        raise InputError(f"reward_range must be (low, high) with low < high, got {(low, high)}")
    if max(-low, high) > LARGEST:
        raise InputError(
            f"reward_range must lie within ±{LARGEST:g}, or sums would overflow, got {(low, high)}"
        )
    return low, high
