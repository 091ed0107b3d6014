"""The results of a study in words: the statement, the next step, and the assumptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rank1.documents import above

__all__ = ["Doubt", "Finding", "Lift"]

#: Lifts above this aren't shown as a number.
LARGEST = 100.0
ORDER = "a level that is best on its side is best whatever the other sides show"
#: The same, more simply.
APART = "the sides don't influence each other"


@dataclass(frozen=True)
class Lift:
    """The lift of the leader over another arm."""

    #: The labels of the other arm.
    over: tuple[str, ...]
    is_control: bool
    estimate: float
    low: float
    high: float
    #: The lowest possible reward: the lift is relative to rewards above it.
    above: float = 0.0
    #: Average rewards of the leader and of the other arm; NaN without reports.
    mean: float = math.nan
    over_mean: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the lift as plain values."""
        return {**vars(self), "over": list(self.over)}

    def __str__(self) -> str:
        called = "the control" if self.is_control else "the runner-up"
        over = f"over {name(self.over)}, {called}"
        scale = above(self.above)
        if self.unknown:
            untried = not self.is_control and math.isnan(self.over_mean)  # so any arm may be next
            return f"leads{'' if untried else f' {over}'}; it isn't known yet by how much"
        if not self.estimate <= LARGEST:
            return f"leads by at least {percent(self.low)}{scale} {over}{self._means}"
        if self.high > LARGEST and self.low <= 0:
            by = percent(self.estimate)
            return f"leads by {by}{scale} {over}{self._means}; it is too early for an interval"
        ends = f"{percent(self.low)} to {percent(self.high)}"
        if self.high > LARGEST:
            ends = f"at least {percent(self.low)}"
        return f"leads by {percent(self.estimate)} ({ends}){scale} {over}{self._means}"

    @property
    def unknown(self) -> bool:
        """Whether nothing is known about its size."""
        return not self.estimate <= LARGEST and not self.low > 0

    @property
    def _means(self) -> str:
        """Return the average rewards in words, if the lift alone doesn't show them."""
        if not self.above or not math.isfinite(self.mean + self.over_mean):
            return ""
        return f", with {self.mean:.4g} against {self.over_mean:.4g} on average"


@dataclass(frozen=True)
class Doubt:
    """A reason to doubt the order of the levels: an arm that could be better."""

    arm: tuple[str, ...]
    #: The arm's mean, the leader's mean, and how often the arm was tried.
    mean: float
    leading: float
    tried: int
    #: True if it looks better than it should; False if it was tried too rarely to tell.
    speaks: bool

    def __str__(self) -> str:
        if self.speaks:
            return (
                f"{name(self.arm)} may be an exception: its mean is {self.mean:.3g} after "
                f"{self.tried:,} rewards, and it may be as good as the leader, whose mean is "
                f"{self.leading:.3g}"
            )
        if self.tried == 0:
            return f"{name(self.arm)} was never shown, so it may be as good"
        times = f"only {self.tried:,} times"
        return f"{name(self.arm)} was shown {times}, too rarely to tell whether it is as good"


@dataclass(frozen=True)
class Finding:
    """What is known about the leader, for `statement` and `next_step`."""

    leader: tuple[str, ...] | None
    lift: Lift | None
    #: Whether it is the best if one order holds, whether that was examined, and any doubt.
    order_stop: bool
    doubt: Doubt | None
    confidence: float
    #: Relative in a study that draws by shares; in units of the reward in one with a policy.
    min_lift: float = 0.0
    tolerance: float = 0.0
    drawn: bool = True
    #: The lowest possible reward: see `Lift`.
    above: float = 0.0
    #: Why the study has no stopping rule.
    no_rule: str = ""
    #: Whether the study is retired.
    ended: bool = False

    @property
    def stop(self) -> bool:
        """Whether the study can stop."""
        sure = self.order_stop and self.doubt is None and not self.no_rule
        return sure and self.leader is not None

    @property
    def statement(self) -> str:
        """Say what leads, by how much, and whether to stop."""
        go_on = "Ended without a verdict" if self.ended else "Keep going"
        if self.leader is None:
            return f"{go_on}: no results yet."
        if self.lift is None:
            return f"Stop: ship {name(self.leader)}. It is the only arm."
        leads = f"{name(self.leader)} {self.lift}"
        if self.stop:
            return f"Stop: ship {name(self.leader)}. It {self.lift}{self._within}."
        if self.no_rule:
            return f"{go_on}: {leads}; {self.no_rule}."
        if self.objection:
            return f"Stop only if {APART}: {self.objection['statement']}"
        return f"{go_on}: {leads}."

    @property
    def objection(self) -> dict[str, Any] | None:
        """Return why it may stop only if the order holds: the fields of `Doubt`, and in words."""
        if self.doubt is None or not self.order_stop or not self.leader or self.no_rule:
            return None
        words = f"{self.doubt}. {name(self.leader)} {self.lift}."
        return {**asdict(self.doubt), "arm": list(self.doubt.arm), "statement": words}

    @property
    def _within(self) -> str:
        if self.min_lift:
            least = f"{percent(self.min_lift)}{above(self.above)}"
            return f", and no level of a side is better by more than {least}"
        if self.tolerance:
            return f", and is at most {self.tolerance:g} below the best"
        return ""

    @property
    def next_step(self) -> str:
        """Say what to do next."""
        if self.ended:
            ship = f"Ship {name(self.leader)}. " if self.stop and self.leader else ""
            return f"{ship}The study has ended, and gives no more suggestions."
        if self.leader is None:
            return "Ask for arms, show them, and report their rewards."
        if self.stop:
            return f"Ship {name(self.leader)}, and retire the study."
        if self.doubt is not None and self.order_stop:
            if self.drawn:
                arm = name(self.doubt.arm)
                return f"Keep going until {arm} is ruled out: the study now shows it more often."
            return f"Show {name(self.doubt.arm)} more often, or stop if you know that {APART}."
        if not self.drawn:
            lever = "a tolerance: a difference that doesn't matter to you"
            return f"Keep going. If you don't have enough traffic, create the study with {lever}."
        if self.min_lift == 0:
            return (
                "Keep going. If you don't have enough traffic, and differences below "
                f"5%{above(self.above)} don't matter to you, create the study with min_lift=0.05."
            )
        return "Keep going."


def name(labels: Sequence[str]) -> str:
    """Format an arm for readers."""
    return " × ".join(labels)


def percent(part: float) -> str:
    """Format a fraction as a percentage for readers.

    >>> percent(0.1234), percent(-1.0), percent(0.0042), percent(0.05), percent(-1e-9)
    ('12%', '-100%', '0.4%', '5%', '0%')
    """
    return f"{100 * part:z,.{0 if abs(part) >= 0.0995 else 1}f}".removesuffix(".0") + "%"
