"""How rewards arrive: late, in batches or never; and whether means drift or the policy forgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1 import checks
from rank1.compiled import record
from rank1.errors import InputError, InputTypeError
from rank1.policies.base import Policy, Records, has_counts
from rank1.simulation.known import smallest_start

if TYPE_CHECKING:
    from rank1.problems.base import Problem

__all__ = ["AT_ONCE", "Cycle", "Feedback"]

Floats = NDArray[np.float64]

#: A policy with a half-life of h rewards forgets a little after every h/16 rewards.
FADING = 16

#: The longest reward-dependent delay, and the longest period of a drift: both need memory.
MAX_KEPT_STEPS = 10**7

SETTINGS = record(
    "batch",
    "forget_every",
    "exact",  # 1 if a reward's delay depends on its value; then the delays are:
    "success",
    "failure",
    arrives=float,
    missing=float,
)


@dataclass(frozen=True)
class Cycle:
    """Means that fall by a fraction, the amplitude, and rise again in each period."""

    amplitude: float
    period: int

    @property
    def multipliers(self) -> Floats:
        """For each step of a period: from 1 down to 1 − amplitude and back.

        >>> Cycle(0.5, 4).multipliers.tolist()
        [1.0, 0.75, 0.5, 0.75]
        """
        turn = np.arange(self.period) / self.period
        return 1 - self.amplitude * (1 - np.cos(2 * np.pi * turn)) / 2


@dataclass(frozen=True)
class Feedback:
    """How rewards arrive; see `simulate`."""

    #: The mean delay; or the exact delays of successes and failures.
    delay: float | tuple[int, int] = 0.0
    missing: float = 0.0
    batch: int = 1
    forgetting: float | None = None
    #: Multipliers of the means: a cycle, or one per step.
    drift: Cycle | tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        delay: float | Mapping[str, int] = 0.0,
        missing: float = 0.0,
        batch: int = 1,
        forgetting: float | None = None,
        drift: Mapping[str, float] | Sequence[float] | None = None,
    ) -> Feedback:
        """From the arguments of `simulate`, or from a `document`.

        >>> Feedback.of(delay={"success": 0, "failure": 2000}).delay
        (0, 2000)
        """
        late = _delay(delay)
        missing = checks.number("missing", missing, 0, 1, below=True)
        if forgetting is not None:
            forgetting = checks.number("forgetting", forgetting, 1, 1e12)
        batch = checks.integer("batch", batch, 1, 10**6)
        return cls(late, missing, batch, forgetting, _drift(drift))

    def document(self) -> dict[str, Any]:
        """As plain values, which `of` accepts."""
        plain: dict[str, Any] = asdict(self)
        if isinstance(self.delay, tuple):
            plain["delay"] = dict(zip(("success", "failure"), self.delay, strict=True))
        if isinstance(self.drift, tuple):
            plain["drift"] = list(self.drift)
        return plain

    def check(self, policy: Policy, problem: Problem) -> None:
        """Reject a policy that can't forget, and rewards that can't fade or drift."""
        if self.drift is not None and not problem.low <= 0 <= problem.high:
            rewards = f"rewards in [{problem.low:g}, {problem.high:g}]"
            raise InputError("drift", self.drift, "None unless a reward may be 0", got=rewards)
        if self.forgetting is None:
            return
        if not has_counts(smallest_start(policy, problem, 1)):
            why = f"None for {policy.label}, whose state isn't counts and sums"
            raise InputError("forgetting", self.forgetting, why)
        if not (problem.low >= 0 and problem.high <= 1):
            rewards = f"{self.forgetting:g} with rewards in [{problem.low:g}, {problem.high:g}]"
            why = "None unless rewards lie in [0, 1]"
            raise InputError("forgetting", self.forgetting, why, got=rewards)

    @property
    def settings(self) -> Records:
        """The record for the compiled loop."""
        exact = self.delay if isinstance(self.delay, tuple) else None
        delay = 0.0 if isinstance(self.delay, tuple) else self.delay
        arrives = 1 - (delay / (1 + delay)) ** self.batch
        every = 0 if self.forgetting is None else max(1, round(self.forgetting / FADING))
        by_reward = (exact is not None, *(exact or (0, 0)))
        return np.array([(self.batch, every, *by_reward, arrives, self.missing)], SETTINGS)

    @property
    def multipliers(self) -> Floats:
        """The multipliers of the means at each step, repeated; empty if there is no drift."""
        if isinstance(self.drift, Cycle):
            return self.drift.multipliers
        return np.array(self.drift or (), np.float64)

    @property
    def room(self) -> int:
        """The possible number of pending pulls; an initial guess if that is random."""
        if isinstance(self.delay, tuple):
            return max(self.delay) + self.batch + 1
        return max(64, 2 * self.batch)


def _delay(given: Any) -> float | tuple[int, int]:
    if not isinstance(given, Mapping):
        return checks.number("delay", given, 0, 1e9)
    if set(given) != {"success", "failure"}:
        expected = "a number, or a dict of success and failure"
        raise InputError("delay", dict(given), expected)
    success, failure = (
        checks.integer(f"delay of a {name}", given[name], 0, MAX_KEPT_STEPS)
        for name in ("success", "failure")
    )
    return success, failure


def _drift(given: Any) -> Cycle | tuple[float, ...] | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        if set(given) != {"amplitude", "period"}:
            expected = "a dict of amplitude and period, or a list of multipliers"
            raise InputError("drift", dict(given), expected)
        amplitude = checks.number("amplitude of a drift", given["amplitude"], 0, 1)
        return Cycle(
            amplitude, checks.integer("period of a drift", given["period"], 2, MAX_KEPT_STEPS)
        )
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise InputTypeError("drift", given, "a dict of amplitude and period, or a list")
    if not 0 < len(given) <= MAX_KEPT_STEPS:
        raise InputError("drift", given, f"a list of 1 to {MAX_KEPT_STEPS:,} multipliers")
    return tuple(checks.number("a multiplier of drift", each, 0, 1) for each in given)


#: Every reward arrives at once: the plain loop without a queue.
AT_ONCE = Feedback()
