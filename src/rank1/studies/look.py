"""The current results of a study that draws by shares: verdicts, lifts, levels and arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1 import design, stopping
from rank1.documents import above
from rank1.stopping.rule import odds_of
from rank1.studies.any_grid import MOST_ARMS, AnyGrid
from rank1.studies.beside import beside
from rank1.studies.delays import (
    NO_RULE,
    absence_warnings,
    delay_warnings,
    needs_equal_delays,
    silence_warnings,
)
from rank1.studies.state import StudyState
from rank1.studies.words import ORDER, Doubt, Finding, Lift, name, percent

__all__ = ["Look"]

Floats = NDArray[np.float64]

#: By how many standard errors averages must contradict a lift that assumes products of factors.
CONTRADICTION = 3.0


class Look:
    """The current results of a study's design. Levels include retired ones."""

    def __init__(self, state: StudyState) -> None:
        self.state, self.spec, self.live = state, state.spec, state.settled()
        self.low, high = state.spec.reward_range
        self.width = high - self.low
        self.said = self.live.verdict()
        self.leader = state.levels_of(state.leading())
        self.names = list(state.labels.values())
        self.chosen = self.live.design.chosen
        #: An order is assumed if more than one side has a choice; without a choice, an arm is
        #: alone.
        sides = [side for side in state.labels if side not in self.spec.given]
        choices = sum(len(state.living[side]) > 1 for side in sides)
        self.ordered, self.alone = choices > 1, choices == 0
        stop = self.said.stop or self.alone
        self.order: dict[str, Any] = {"stop": stop, "reason": self._order_reason()}
        self.arms = self._arms()
        #: Warnings about delays; then the study must not stop.
        self.delays = delay_warnings(state)
        if self.delays:
            reason = f"{NO_RULE}; {name(self.called(self.leader))} leads"
            self.order = self.arms = {"stop": False, "reason": reason}

    def called(self, levels: Sequence[int]) -> tuple[str, ...]:
        """Return the labels of an arm's chosen sides, from levels of chosen sides or of all."""
        levels = self._of_chosen(levels)
        return tuple(self.names[side][k] for side, k in zip(self.chosen, levels, strict=True))

    def _of_chosen(self, levels: Sequence[int]) -> Sequence[int]:
        if len(levels) == len(self.chosen):
            return levels
        return [levels[side] for side in self.chosen]

    # Verdicts

    def _order_reason(self) -> str:
        live, best = self.live, name(self.called(self.leader))
        if self.alone:
            return f"stop: {best} is the only arm"
        if not live.current.bets:
            first = live.design.first
            return f"keep going: levels have equal shares until {first:,} rewards or 60 successes"
        level = f"at confidence {100 * self.spec.confidence:g}%"
        if self.said.stop and self.spec.min_lift:
            least = f"{percent(self.spec.min_lift)} or more{above(self.low)}"
            within = f"no level is better than its own by {least}"
            return f"stop: {best} is good enough {level}, because {within}"
        if self.said.stop:
            return f"stop: {best} is best {level}, because every other level is refuted"
        left = [
            (float(self.said.log_e[side][k]), side, int(k))
            for side in self.chosen
            for k in np.flatnonzero(self.said.living[side])
            if k != self.leader[side]
        ]
        log_e, side, k = min(left, default=(0.0, self.chosen[0], self.leader[self.chosen[0]]))
        rival = (
            f"{self.names[side][k]} may still be better than {self.names[side][self.leader[side]]}"
        )
        aside = "; imported rewards aren't evidence" if self.state.book.imported.any() else ""
        return f"keep going: {rival}: {odds_of(log_e, live.design.threshold)}{aside}"

    def _arms(self) -> dict[str, Any]:
        """Return the verdict without assumptions about the grid."""
        live, arms = self.live, math.prod(self.live.design.sizes[side] for side in self.chosen)
        self._any_out: NDArray[np.bool_] | None = None
        if not self.ordered:
            return self.order
        if not self.said.stop:
            reason = "keep going: single arms are compared once the levels of each side are decided"
            return {"stop": False, "reason": reason}
        if arms > MOST_ARMS:
            return {"stop": False, "reason": f"{arms:,} arms are too many to compare one by one"}
        live.arms = live.arms or AnyGrid(live)
        found = live.arms.verdict(live)
        self._any_out = found.out
        best = name(self.called(self.leader))
        first, weakest = (
            name(self.called(live.chosen_levels(k))) for k in (found.leader, found.weakest)
        )
        if first != best:
            return {"stop": False, "reason": f"keep going: {first} has a larger mean than {best}"}
        if found.stop:
            return {
                "stop": True,
                "reason": f"stop: {best} beats every other arm in a direct comparison",
            }
        return {"stop": False, "reason": f"keep going: {weakest} may still be better than {best}"}

    def finding(self, reported: bool) -> Finding:
        """Return what is known about the leader."""
        return Finding(
            leader=self.called(self.leader) if reported else None,
            lift=None if self.alone else self._lift(),
            order_stop=self.order["stop"],
            doubt=self._doubt() if self.order["stop"] and not self.arms["stop"] else None,
            no_rule=NO_RULE if self.delays else "",
            confidence=self.spec.confidence,
            min_lift=self.spec.min_lift,
            above=self.low,
            ended=bool(self.state.book.at[0].retired),
        )

    def _doubt(self) -> Doubt | None:
        found = self.live.suspect(self.state.book, self.leader)
        if found is None:
            return None
        (tried, mean), (_, best) = self._mean(found.arm), self._mean(self.leader)
        return Doubt(self.called(found.arm), mean, best, tried, found.speaks)

    def _mean(self, levels: Sequence[int]) -> tuple[int, float]:
        """Return the count and mean of an arm's rewards, from levels of chosen sides or of all."""
        levels = tuple(self._of_chosen(levels))
        count, total = (
            float(self.live.over_given(each)[levels])
            for each in (self.state.book.counts, self.state.book.sums)
        )
        return int(count), self.low + self.width * total / count if count else math.nan

    # Lifts

    def _compared(self, over: tuple[int, ...] | None) -> dict[str, Any]:
        """Return the arguments of `lifts` and `arm_lift`."""
        live = self.live
        return {
            "design": live.kept_design(),
            "versions": {**live.versions, live.number: live.current},
            "counts": live.evidence.counts(),
            "wealth": live.wealth,
            "over": over,
        }

    def _lift(self) -> Lift:
        base = self.live.control()
        chosen = [self.leader[side] for side in self.chosen]
        is_control = base is not None and [base[side] for side in self.chosen] != chosen
        if not self.live.current.bets:
            over = base if is_control else self._second()
            called, nan = self.called(over or self.leader), math.nan
            return Lift(called, is_control, nan, nan, nan, self.low)
        found = design.arm_lift(**self._compared(base if is_control else None))
        known = all(
            one == two or self._tried(side)[[one, two]].all()
            for side, one, two in zip(self.chosen, self._of_chosen(found.over), chosen, strict=True)
        )
        ends = found.estimate if known else math.nan, found.low, found.high
        other, lift = self._seen(found.over, ends, is_control)
        return Lift(
            self.called(other), is_control, *lift, self.low,
            self._mean(self.leader)[1], self._mean(other)[1],
        )  # fmt: skip

    def _seen(
        self, over: Sequence[int], ends: tuple[float, float, float], is_control: bool
    ) -> tuple[Sequence[int], tuple[float, float, float]]:
        """Return the arm to compare with, and the lift, from the arms' own rewards if need be.

        Both arguments assume that means are products. If the arms' own rewards contradict that, the
        lift is computed from the two arms alone, and the runner-up is the best arm by its rewards.
        """
        design, rows = self.live.design, self.live.evidence.counts()  # without imported rewards
        sizes = [design.sizes[side] for side in self.chosen]
        one, two = self._of_chosen(self.leader), self._of_chosen(over)
        if min(two) < 0:  # a side has no leader yet
            return over, ends
        leader, other = (int(np.ravel_multi_index(tuple(each), sizes)) for each in (one, two))
        arms, won = self.live.chosen_arms(rows.arm), rows.pulls * design.scaled(rows.reward)
        found = beside(rows.version, arms, rows.pulls, won, leader, math.prod(sizes))
        # Four more rewards, half of them successes, keep the error of a few rewards from being 0.
        means, own = (
            (x + 2) / (n + 4)
            for n, x in ((found.counts, found.sums), (found.leader_counts, found.leader_sums))
        )
        part = np.hypot(  # by which each ratio may be wrong
            np.sqrt((1 - means) / means / (found.counts + 4)),
            np.sqrt((1 - own) / own / (found.leader_counts + 4)),
        )
        ratios, reach = means / own, CONTRADICTION * part * means / own
        least = (ratios - reach).reshape(sizes)
        least.flat[leader] = -math.inf
        for axis, side in enumerate(self.chosen):
            np.moveaxis(least, axis, 0)[~self.live.allowed(side)] = -math.inf
        best = int(least.argmax())
        is_other = not is_control and bool(least.flat[best] > ratios[other] + reach[other])
        if is_other:
            other = best
        (count, total), (own_count, own_total) = (
            (n[other], x[other]) for n, x in (found[:2], found[2:])
        )
        if not (total and own_total):
            return over, ends
        ratio = float(own_total / own_count / (total / count))
        error = CONTRADICTION * ratio * float(part[other])
        if not is_other and ends[1] - error <= ratio - 1 <= ends[2] + error:
            return over, ends
        # The two were selected by their rewards, so the intervals of all arms must hold together.
        confidence = 1 - (1 - self.spec.confidence) * 2 / len(means)
        wins, counts = np.array([own_total, total]), np.array([own_count, count])
        lower, upper = stopping.mean_intervals(wins, np.maximum(counts - wins, 0), confidence)
        low, high = float(lower[0] / upper[1]) - 1, float(upper[0] / lower[1]) - 1
        chosen = [int(k) for k in np.unravel_index(other, sizes)]
        return chosen, (ratio - 1, low, high)

    def _tried(self, side: int) -> NDArray[np.bool_]:
        """Return which levels of a side have rewards; for others, the fit is a guess."""
        sizes = self.live.design.sizes
        others = tuple(k for k in range(len(sizes)) if k != side)
        return self.state.book.counts.reshape(sizes).sum(others) > 0

    def _second(self) -> list[int]:
        """Return the leader with one level changed, while nothing is known yet."""
        levels = list(self.leader)
        for side in self.chosen:
            for k in np.flatnonzero(self.live.living[side]):
                if k != levels[side]:
                    levels[side] = int(k)
                    return levels
        return levels

    def _lifts(self, over: tuple[int, ...] | None) -> list[Floats]:
        """Return estimate, lower and upper end of the lift, for each side and level."""
        version, found = self.live.current, []
        ends = design.lifts(**self._compared(over)) if version.bets else None
        for side, fit in enumerate(version.fit):
            table = np.tile([math.nan, -1.0, math.inf], (len(fit), 1))
            base = version.leaders[side] if over is None else over[side]
            if ends is not None and base >= 0:
                # The fit uses all rewards; the interval uses only those that were bet on.
                table[:, 0], table[:, 1:] = np.clip(fit / fit[base] - 1, *ends[side].T), ends[side]
                table[~self._tried(side), 0] = math.nan
            found.append(table)
        return found

    def effects(self) -> dict[str, Floats]:
        """Return each unretired level's factor relative to the leader's."""
        self._over_leader = self._lifts(None)
        return {
            side: 1 + table[self.state.living[side]]
            for side, table in zip(self.state.labels, self._over_leader, strict=True)
        }

    def levels(self) -> dict[str, list[dict[str, Any]]]:
        """Return the results for each level, relative to the control or the leader."""
        base, live = self.live.control(), self.live
        tables = self._over_leader if base is None else self._lifts(base)
        shares = live.current.shares
        found: dict[str, list[dict[str, Any]]] = {}
        for side, (label, names) in enumerate(self.state.labels.items()):
            found[label] = []
            for k, level in enumerate(names):
                gone = live.gone.get((side, k))
                living = bool(live.living[side][k] and self.said.living[side][k])
                found[label].append(
                    {
                        "label": level,
                        "living": living,
                        "share": float(shares[side][k]) if side in self.chosen else None,
                        "estimate": float(tables[side][k, 0]),
                        "lift": tables[side][k, 1:].tolist(),
                        "gone_at": None if gone is None else {"seq": gone.seq, "at": gone.at},
                        "why": None if living else "refuted" if gone is None else gone.why,
                    }
                )
        return found

    # Arms

    def out(self) -> NDArray[np.bool_]:
        """Return which arms of unretired levels contain a dropped level."""
        found = np.zeros((), np.bool_)
        for side, living in zip(self.state.living, self.said.living, strict=True):
            found = np.logical_or.outer(found, ~living[self.state.living[side]])
        return found

    def arms_out(self) -> NDArray[np.bool_]:
        """Return which arms can't be the best, without assumptions about the grid."""
        if not self.ordered:
            return self.out()
        if self._any_out is None:
            return np.zeros(self.state.shape, np.bool_)
        sizes = self.live.design.sizes
        whole = self._any_out.reshape(
            [sizes[d] if d in self.chosen else 1 for d in range(len(sizes))]
        )
        return np.broadcast_to(whole, sizes)[np.ix_(*self.state.living.values())].copy()

    def warnings(self) -> list[str]:
        """Return warnings about delays, missing visitors, and rewards that aren't evidence."""
        absent = absence_warnings(self.state, self.live)
        found = self.delays + absent + silence_warnings(self.state)
        imported = int(self.state.book.imported.sum())
        if not imported:
            return found
        return [
            *found,
            f"{imported:,} imported rewards count in averages and estimates of lifts, but not in "
            "intervals and the verdict: the study bets only on what it drew itself.",
        ]

    def assumed(self) -> list[str]:
        """Return the assumptions of the verdict."""
        found = [f"One order: {ORDER}."] if self.ordered or self.spec.given else []
        when = "How long a reward takes doesn't depend on the level that was shown"
        if self.spec.by_window and self.spec.on_expiry == "default":
            when = "What a level earns after the reward window doesn't matter"
        elif self.spec.by_window:
            when = "Whether a reward arrives in time doesn't depend on the level or the reward"
        elif needs_equal_delays(self.state):
            when += ", nor on the reward"
        found.append(f"{when}.")
        if self.spec.repeat == "each":
            found.append("Visits of one unit are independent.")
        if self.ordered:
            scaled = f"means above {self.low:g}" if self.low else "means"
            found.append(
                f"Lifts of arms: {scaled} are products of the levels' factors, unless "
                "rewards contradict that."
            )
        return found
