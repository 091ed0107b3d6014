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

    Parameters
    ----------
    on_expiry, window, low, high, forgetting
        The study's settings: `on_expiry`, `reward_window`, `reward_range` and `forgetting`.
    drawn, by_window
        Whether the study draws by shares, and whether it then bets when windows close.
    living
        The levels of each side at the beginning; after `take`, the living ones.
    """

    on_expiry: str = "drop"
    window: float = math.inf
    low: float = 0.0
    high: float = 1.0
    drawn: bool = False
    forgetting: float = math.inf
    living: dict[str, set[str]] = field(default_factory=dict)
    by_window: bool = False
    #: Exposures by their seq, and the kinds of events that decided each.
    asked: dict[int, Any] = field(default_factory=dict)
    became: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: Number and sum of rewards by arm; these decrease over time if the study forgets.
    known: dict[int, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    #: The number of rewards since the study last forgot.
    learned: int = 0
    #: Evidence by arm: for each reward, the time from which it counts, and the scaled reward.
    evidence: dict[int, list[tuple[float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    #: The part of the evidence that was imported.
    imported: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: Delays of rewards, in events, by whether the reward was above the average at that time.
    delays: dict[bool, list[int]] = field(default_factory=lambda: {False: [], True: []})
    #: The number of reports by (version, current version, arm, metric, value).
    rows: Counter[tuple[int, int, int, int, float]] = field(default_factory=Counter)
    #: The number of rewards so far, without imported ones, and their sum.
    credited: int = 0
    gained: float = 0.0
    #: With `by_window`, exposures that aren't evidence yet, and their rewards, or None without one;
    #: and the number of rewards that may become evidence before a version begins.
    waiting: dict[int, float | None] = field(default_factory=dict)
    limit: int = 0
    held_out: list[float] = field(default_factory=list)
    version: int = -1
    revision: int = 0
    retired: bool = False

    def take(self, events: Iterable[Any]) -> LiteralStudy:
        """Process the next events."""
        for event in events:
            self._close(event.at)
            if event.kind in (SUGGESTED, RECORDED):
                self.asked[event.seq] = event
                if self.by_window:
                    self.waiting[event.seq] = None
                if event.kind == RECORDED and not math.isnan(event.value):
                    self.became[event.seq].append(REPORTED)
                    since = event.at + (self.window if self.by_window else 0.0)
                    self._credit(event, event.value, since)
            elif event.kind in (REPORTED, CANCELLED, EXPIRED):
                shown, before = self.asked[event.suggestion], self.became[event.suggestion]
                filled = EXPIRED in before and self.on_expiry == "default"
                default = event.kind == EXPIRED and event.tag == DEFAULT
                if default or (event.kind == REPORTED and not filled):
                    waits = self.by_window or (self.on_expiry == "default" and not self.drawn)
                    since = max(shown.at + self.window, event.at) if waits else event.at
                    self._credit(shown, event.value, since)
                    immediate = self.on_expiry != "default" or (self.drawn and not waits)
                    if shown.tag != REPEAT and immediate:
                        x = self._scaled(event.value)
                        high = x > 0 and self.credited * x >= self.gained
                        self.delays[high].append(event.seq - shown.seq)
                elif not filled:
                    self.waiting.pop(shown.seq, None)
                before.append(event.kind)
            elif event.kind == HISTORY:
                x = self._scaled(event.value)
                self.evidence[event.arm] += [(event.at, x)] * event.tag
                self.imported[event.arm] += [x] * event.tag
                self._know(event.arm, event.tag, x)
            elif event.kind == REVISED:
                for what, change in json.loads(event.data).items():
                    for side, levels in change.items():
                        self.living[side] -= set(levels)
                        self.living[side] |= set(levels if what == "add" else ())
            elif event.kind == GUARDRAIL and event.tag >= 0:
                self.rows[event.tag, self.version, event.arm, event.metric, event.value] += 1
            if event.kind == VERSION:
                self.version, leaders = event.tag, json.loads(event.data)["leaders"].values()
                early = max(leaders) < 0 and self.credited < 200
                self.limit = 200 if early else self.credited + max(50, self.credited // 10)
            self.revision += event.kind == REVISED
            self.retired |= event.kind == RETIRED
            if self.learned >= max(1, round(min(self.forgetting / 16, 1e300))):
                for both in self.known.values():
                    both[:] = (0.5 ** (self.learned / self.forgetting) * x for x in both)
                self.learned = 0
        return self

    def _credit(self, shown: Any, value: float, since: float) -> None:
        x = self._scaled(value)
        if shown.tag >= -1:
            self._know(shown.arm, 1, x)
            self.learned += 1
            self.evidence[shown.arm].append((since, x))
        if shown.tag == REPEAT:
            self.waiting.pop(shown.seq, None)
        elif shown.seq in self.waiting:
            self.waiting[shown.seq] = value
        else:
            self._count(shown, value)

    def _close(self, now: float) -> None:
        """Count the rewards whose windows have closed, in the order of exposure."""
        for seq, value in list(self.waiting.items()):
            late = self.asked[seq].at + self.window > now
            if late or value is None or self.credited >= self.limit:
                return
            self._count(self.asked[seq], self.waiting.pop(seq))

    def _count(self, shown: Any, value: Any) -> None:
        x = self._scaled(value)
        if shown.tag == HELD_OUT:
            self.held_out.append(x)
        elif shown.tag != REPEAT:
            self.credited += 1
            self.gained += x
            if self.drawn:
                self.rows[shown.tag, self.version, shown.arm, 0, value] += 1

    def _know(self, arm: int, count: int, x: float) -> None:
        both = self.known[arm]
        both[:] = both[0] + count, both[1] + count * x

    def _scaled(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    def own(self, now: float = math.inf) -> list[float]:
        """Return the evidence up to now, without imported rewards."""
        found = Counter(x for each in self.evidence.values() for at, x in each if at <= now)
        found -= Counter(x for each in self.imported.values() for x in each)
        return list(found.elements())

    def totals(self) -> dict[str, int]:
        """Return the number of exposures, in all and by what became of them."""
        kinds = [self.became[seq] for seq in self.asked]
        reported, cancelled = (sum(k in each for each in kinds) for k in (REPORTED, CANCELLED))
        expired = sum(each == [EXPIRED] for each in kinds)
        pending = len(kinds) - reported - cancelled - expired
        return {
            "suggestions": len(kinds), "reports": reported, "pending": pending,
            "expired": expired, "cancelled": cancelled,
        }  # fmt: skip

    def pending(self) -> Counter[int]:
        """Count each arm's pending exposures, including overdue ones that may still come."""
        waits = ([], [EXPIRED]) if self.on_expiry == "wait" else ([],)
        return Counter(e.arm for seq, e in self.asked.items() if self.became[seq] in waits)
