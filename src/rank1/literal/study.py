"""Read a study's log in a single pass over its events, to compare with the study's own fold.

This uses nothing from `rank1.studies`. An event is any object with the fields of one.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LiteralStudy"]

SUGGESTED, REPORTED, CANCELLED, EXPIRED, REVISED, HISTORY = 2, 3, 4, 5, 6, 7
RETIRED, VERSION, RECORDED, GUARDRAIL = 8, 9, 10, 11
REPEAT, HELD_OUT = -2, -3
#: The tag of an overdue reward that is replaced by a default.
DEFAULT = 1


@dataclass
class LiteralStudy:
    """All that a study knows, except for its policy's state and its wealth.

    The first eight fields are the study's settings; `drawn` is whether it draws by shares, and
    `by_window` whether it then bets when windows close. `living` has each side's first levels.
    """

    on_expiry: str = "drop"
    window: float = math.inf
    low: float = 0.0
    high: float = 1.0
    drawn: bool = False
    forgetting: float = math.inf
    living: dict[str, set[str]] = field(default_factory=dict)
    by_window: bool = False
    #: Exposures by their seq, how many there were up to each, and the kinds of events that decided
    #: each.
    asked: dict[int, Any] = field(default_factory=dict)
    number: dict[int, int] = field(default_factory=dict)
    became: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: Number and sum of rewards by arm, less what was forgotten; rewards since it last forgot.
    known: dict[int, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    learned: int = 0
    #: Arm, time from which it counts, and scaled value of each reward; the imported ones apart.
    evidence: list[tuple[int, float, float]] = field(default_factory=list)
    imported: list[tuple[int, float]] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    #: Delays of rewards, in exposures, by whether the reward was above the average at that time.
    delays: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    #: The number of reports by (version, current version, arm, metric, value).
    rows: Counter[tuple[int, int, int, int, float]] = field(default_factory=Counter)
    #: The number and the sum of counted rewards, and how many may count before the next version.
    credited: int = 0
    gained: float = 0.0
    limit: int = 0
    #: With `by_window`, exposures that don't count yet, and their rewards.
    waiting: dict[int, float | None] = field(default_factory=dict)
    version: int = -1
    revision: int = 0
    retired: bool = False

    def take(self, events: Iterable[Any]) -> LiteralStudy:
        """Process the next events."""
        for event in events:
            self._close(event.at)
            if event.kind in (SUGGESTED, RECORDED):
                self.asked[event.seq] = event
                self.number[event.seq] = len(self.asked)
                if self.by_window:
                    self.waiting[event.seq] = None
                if event.kind == RECORDED and not math.isnan(event.value):
                    self.became[event.seq].append(REPORTED)
                    self._credit(event, event)
            elif event.kind in (REPORTED, CANCELLED, EXPIRED):
                shown, before = self.asked[event.suggestion], self.became[event.suggestion]
                if EXPIRED not in before or self.on_expiry != "default":
                    default = event.kind == EXPIRED and event.tag == DEFAULT
                    if default or event.kind == REPORTED:
                        self._credit(shown, event)
                    else:
                        self.waiting.pop(shown.seq, None)
                before.append(event.kind)
            elif event.kind == HISTORY:
                x = self._scaled(event.value)
                self.imported += [(event.arm, x)] * event.tag
                self._know(event.arm, event.tag, x)
            elif event.kind == REVISED:
                self.revision += 1
                for what, change in json.loads(event.data).items():
                    for side, levels in change.items():
                        self.living[side] -= set(levels)
                        self.living[side] |= set(levels if what == "add" else ())
            elif event.kind == GUARDRAIL and event.tag >= 0:
                self.rows[event.tag, self.version, event.arm, event.metric, event.value] += 1
            elif event.kind == VERSION:
                self.version, leaders = event.tag, json.loads(event.data)["leaders"].values()
                early = max(leaders) < 0 and self.credited < 200
                self.limit = 200 if early else self.credited + max(50, self.credited // 10)
            self.retired |= event.kind == RETIRED
            if self.learned >= max(1, round(min(self.forgetting / 16, 1e300))):
                for both in self.known.values():
                    both[:] = (0.5 ** (self.learned / self.forgetting) * x for x in both)
                self.learned = 0
        return self

    def _credit(self, shown: Any, event: Any) -> None:
        """Process the reward of an exposure."""
        x, defaults = self._scaled(event.value), self.on_expiry == "default"
        waits = self.by_window or (defaults and not self.drawn)
        if shown.tag > REPEAT:
            self._know(shown.arm, 1, x)
            self.learned += 1
            since = max(shown.at + self.window, event.at) if waits else event.at
            self.evidence.append((shown.arm, since, x))
        if shown.seq in self.waiting and shown.tag != REPEAT:
            self.waiting[shown.seq] = event.value
        else:
            self.waiting.pop(shown.seq, None)
            self._count(shown, event.value)
        if shown is not event and shown.tag != REPEAT and not (defaults and waits):
            high = x > 0 and self.credited * x >= self.gained
            delay: float = len(self.asked) - self.number[shown.seq]
            if EXPIRED in self.became[shown.seq] and self.on_expiry == "drop":  # an estimate
                delay = (event.seq - shown.seq) * len(self.asked) / event.seq
            self.delays[high].append(delay)

    def _close(self, now: float) -> None:
        """Count the rewards whose windows have closed, in the order of exposure."""
        for seq, value in list(self.waiting.items()):
            late = self.asked[seq].at + self.window > now
            if late or value is None or self.credited >= self.limit:
                return
            self._count(self.asked[seq], self.waiting.pop(seq))

    def _count(self, shown: Any, value: Any) -> None:
        if shown.tag == HELD_OUT:
            self.held_out.append(self._scaled(value))
        elif shown.tag != REPEAT:
            self.credited += 1
            self.gained += self._scaled(value)
            self.rows[shown.tag, self.version, shown.arm, 0, value] += self.drawn

    def _know(self, arm: int, count: int, x: float) -> None:
        both = self.known[arm]
        both[:] = both[0] + count, both[1] + count * x

    def _scaled(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    def totals(self) -> dict[str, int]:
        """Return the number of exposures, in all and by what became of them."""
        kinds = [self.became[seq] for seq in self.asked]
        reported, cancelled = (sum(k in each for each in kinds) for k in (REPORTED, CANCELLED))
        expired = kinds.count([EXPIRED])
        return {
            "suggestions": len(kinds), "reports": reported, "expired": expired,
            "cancelled": cancelled, "pending": len(kinds) - reported - expired - cancelled,
        }  # fmt: skip

    def pending(self) -> Counter[int]:
        """Count each arm's pending exposures, including overdue ones that may still come."""
        waits = ([], [EXPIRED]) if self.on_expiry == "wait" else ([],)
        return Counter(e.arm for seq, e in self.asked.items() if self.became[seq] in waits)
