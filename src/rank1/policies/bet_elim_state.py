"""The state of BetElim: counts for the fit, stored versions, and wealths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit, record
from rank1.design.bets import LEADERS, fold_reports, prepare, show, sides_of
from rank1.design.shares import FIRST_PASSES, find_leaders, fit_factors
from rank1.grid import Grid
from rank1.policies.base import Known, Records, Simple
from rank1.policies.bet_elim_versions import add_up, next_version

__all__ = ["BetElimState", "add", "draw_arm", "start_bets"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A pull's tag: the version it was drawn under, then the number of the pull if there is a window.
VERSION_BITS = 32
NUMBERS = 2**31 - 1
#: This many levels are searched one by one, which is faster than bisection.
NEAR = 8
#: The number of versions whose late reports still count for the bets, and room for their shares.
KEPT, ROOM = 256, 2**18

AT = record(
    "version",  # the number of the current version
    "prepared",  # the version whose shares the second row of `rho` and `base` is for; −1: none
    "reports",
    "next_at",  # the number of reports at which the next version begins
    "matured",  # reports that count for the fit
    "first",  # the number of matured reports that the first fit needs, ...
    "shortest",  # the smallest number of reports between two versions
    "pulls",  # handed out; counted only if there is a window
    "early",  # 1 until enough reports have matured, if there is a window; see `fit_early`
    "done",
    gained=float,  # sum of the matured rewards, which are in [0, 1]
    enough=float,  # ... or the sum of rewards that it needs instead
    hoped=float,  # sum of all rewards, matured or not, while `early`
    threshold=float,  # log E at which a level is dropped
    growth=float,
    floor=float,
    low=float,
    scale=float,  # maps rewards to [0, 1]
    lift=float,  # the smallest lift that matters
)


class _Arrays(NamedTuple):
    limits: Records  # see `Known.limits`
    at: Records  # see `AT`
    sides: Records  # see `rank1.design.bets`
    kappas: Floats
    counts: Floats  # N: matured reports of each arm
    sums: Floats  # S: of their rewards, by level
    living: NDArray[np.bool_]
    leaders: Ints
    fit: Floats
    shares: Floats
    up_to: Floats  # cumulated shares, by side
    log_e: Floats  # log E of each level when the version began
    room: Floats
    number: Ints  # of each stored version
    drawn_by: Floats  # its shares
    rho: Floats  # see `prepare`: for the shares of the current version, and of a stored one
    base: Floats
    logs: Floats  # this and the next four: as in `rank1.design.bets.Book`
    wealth: Floats
    factors: Ints
    slots: Ints
    rows: Ints
    early_sums: Floats  # see `fit_early`
    early_shares: Floats
    held_arm: Ints  # reports of the most recent pulls, as many as the window's length
    held: Floats
    shown: Ints  # the levels of the current arm


class BetElimState(_Arrays, Simple):
    """Draw by shares; bet on a report with the shares of the version in its pull's tag."""

    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draws one random number per side."""
        return draw_arm(self, rng), hand_out(self)

    def issued(self, arm: int, tag: int) -> None:
        """Record that a pull was handed out."""
        hand_out(self)

    def update(self, arm: int, tag: int, reward: float) -> None:
        """Fold the report, and start a new version when it is due."""
        at = self.at[0]
        x = (reward - at.low) * at.scale
        version = tag & (2**VERSION_BITS - 1)
        slot = version % len(self.number)
        show(self.sides, arm, self.shown)
        if at.version > 0 and self.number[slot] == version:
            row = 0 if version == at.version else prepare_late(self, version, slot)
            fold_reports(self, self.rho[row], self.base[row], self.shown, x, 1, 0, at.lift)
        window = len(self.held)
        age = 0
        if at.early == 1 and self.number[slot] == version:
            note_early(self, slot, x)
        if window > 0:
            age = (at.pulls - (tag >> VERSION_BITS)) & NUMBERS
        if 0 < age <= window and age <= at.pulls and self.held_arm[(at.pulls - age) % window] < 0:
            place = (at.pulls - age) % window
            self.held_arm[place], self.held[place] = arm, x
        else:
            add(self, arm, x, 1)
        at.reports += 1
        if at.reports >= at.next_at and is_due(self):
            next_version(self)

    def done(self) -> bool:
        """Whether every side has one level left, or none that exceeds its leader by the lift."""
        return self.at[0].done == 1

    def best(self) -> int:
        """The arm of all leaders; in the first version, of the largest factors so far."""
        leaders, arm = self.leaders, 0
        if self.at[0].version == 0:
            fit, leaders = self.fit.copy(), leaders.copy()
            for _ in range(FIRST_PASSES):
                fit_factors(self.sides, self.counts, self.sums, fit, self.room.copy())
            find_leaders(self.sides, fit, self.living, leaders)
        for side, leader in zip(self.sides, leaders, strict=True):
            arm += int(leader * side.stride)
        return arm


@inlined
def draw_arm(state: BetElimState, rng: np.random.Generator) -> int:
    """Draw a level of each side by its share, independently of the other sides."""
    arm = 0
    for d in range(len(state.sides)):
        low = state.sides[d].begin
        begin, high = low, low + state.sides[d].levels - 1
        x = rng.random()
        while high - low > NEAR:
            middle = (low + high) >> 1
            if state.up_to[middle] > x:
                high = middle
            else:
                low = middle + 1
        level = low
        for k in range(low, high):  # without an unpredictable branch
            level += state.up_to[k] <= x
        arm += (level - begin) * state.sides[d].stride
    return arm


@inlined
def hand_out(state: BetElimState) -> int:
    """The tag of the next pull. A report that reaches the window's age now counts for the fit."""
    at, window = state.at[0], len(state.held)
    if window == 0:
        return at.version
    place = at.pulls % window
    if state.held_arm[place] >= 0:
        show(state.sides, state.held_arm[place], state.shown)
        add(state, state.held_arm[place], state.held[place], 1)
        state.held_arm[place] = -1
    tag = at.version + ((at.pulls & NUMBERS) << VERSION_BITS)
    at.pulls += 1
    return tag


@inlined
def add(state: Any, arm: int, gained: float, count: int) -> None:
    """Count reports of the arm with levels `shown` for the fit."""
    state.at[0].matured += count
    state.at[0].gained += gained
    state.counts[arm] += count
    for d in range(len(state.shown)):
        state.sums[state.shown[d]] += gained


@inlined
def is_due(state: BetElimState) -> bool:
    """Whether there is enough data for a fit, once the next version may begin."""
    at = state.at[0]
    if at.version > 0 or at.reports >= at.first or at.gained >= at.enough:
        return True
    return at.early == 1 and at.hoped >= at.enough


@inlined
def prepare_late(state: BetElimState, version: int, slot: int) -> int:
    """The row of `rho` and `base` for a report that was drawn under an earlier version."""
    at = state.at[0]
    if at.prepared != version:
        at.prepared = version
        prepare(
            state.sides, state.leaders, state.drawn_by[slot], state.fit, state.rho[1], state.base[1]
        )
    return 1


@jit
def note_early(state: BetElimState, slot: int, x: float) -> None:
    """Count a reward for `fit_early`."""
    state.at[0].hoped += x
    for d in range(len(state.shown)):
        state.early_sums[state.shown[d]] += x
    for k in range(len(state.early_shares)):
        state.early_shares[k] += x * state.drawn_by[slot, k]


def start_bets(
    known: Known,
    grid: Grid,
    kappas: tuple[float, ...],
    window: int,
    settings: Mapping[str, Any],
) -> BetElimState:
    """The state before the first pull, with settings named as in `AT`."""
    sides, levels = sides_of(grid), sum(grid.sizes)
    kept = max(4, min(KEPT, ROOM // levels))
    at = np.zeros(1, AT)
    for name, value in settings.items():
        at[name] = value
    at[0].next_at, at[0].prepared, lift = 1, -1, at[0].lift
    at[0].shortest = 1 + len(sides) * grid.arms // 512 + levels // 16
    at[0].low, reach = known.low, known.high - known.low
    at[0].scale = 1 / reach if reach > 0 else 1
    at[0].done, at[0].early = grid.arms == 1, window > 0
    shares = np.concatenate([np.full(size, 1 / size) for size in grid.sizes])
    up_to = np.zeros(levels)
    add_up(sides, shares, up_to)
    led = [min(size, LEADERS) * size for size in grid.sizes] if lift > 0 else []
    pairs = sum(led)
    return BetElimState(
        known.limits,
        at,
        sides,
        np.array(kappas),
        counts=np.zeros(grid.arms),
        sums=np.zeros(levels),
        living=np.ones(levels, np.bool_),
        leaders=np.full(len(sides), -1),
        fit=np.ones(levels),
        shares=shares,
        up_to=up_to,
        log_e=np.zeros(levels),
        room=np.zeros(levels),
        number=np.zeros(kept, np.int64),
        drawn_by=np.concatenate([shares[None], np.zeros((kept - 1, levels))]),
        rho=np.zeros((2, levels)),
        base=np.zeros((2, levels)),
        logs=np.zeros((levels + pairs, len(kappas))),
        wealth=np.ones((levels + pairs, len(kappas))),
        factors=np.zeros(levels + pairs, np.int64),
        slots=np.full(levels if pairs else 0, -1),
        rows=np.cumsum([levels, *led[:-1]]) if pairs else np.zeros(0, np.int64),
        early_sums=np.zeros(levels),
        early_shares=np.zeros(levels),
        held_arm=np.full(window, -1),
        held=np.zeros(window),
        shown=np.zeros(len(sides), np.int64),
    )
