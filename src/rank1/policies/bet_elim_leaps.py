"""The exact shortcut for BetElim: play a whole version at once, for rewards of 0 and 1.

During a version each pull is drawn by the same shares and nothing looks at the wealths. So the
number of pulls of each arm is multinomial, and their rewards are binomial; the wealths depend only
on these counts. Regret at checkpoints within a version is drawn afterwards,
given the outcome of the whole version, as in `stages`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rank1.compiled import inlined, jit
from rank1.design.bets import fold_reports
from rank1.grid import Grid
from rank1.policies.base import Leaps
from rank1.policies.bet_elim_state import add
from rank1.policies.bet_elim_versions import next_version
from rank1.policies.stages import Work, add_up, cut, place
from rank1.policies.step import gap, note, split, step, tally

__all__ = ["LEAPS"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Generator = np.random.Generator

#: A version with fewer pulls per arm than this is played pull by pull.
WORTH = 1


def room_for(law: Any, grid: Grid, *recorded: Any) -> Work:
    """Work arrays as in `stages`, with counts and, as `more`, a place for each side.

    They have room for the levels of all sides, and for all arms as levels of one side.
    """
    counts = np.zeros(max(sum(grid.sizes), grid.arms), np.int64)
    return Work.of(law, recorded, counts, np.zeros(len(grid.sizes), np.int64))


def leap_versions(
    state: Any, law: Any, rng: Generator, splitter: Generator, n: int, until_done: bool, work: Any
) -> tuple[int, int]:
    """Play steps 0 to n, or to the end of the version in which the state is done.

    Has the same law as the loop. `rng` decides what happens; `splitter` decides only when it
    happens between the checkpoints of a version.
    """
    at = state.at[0]
    arms = state.limits[0].arms
    checkpoints, curve, totals = work.checkpoints, work.curve, work.totals
    t = mark = 0
    while t < n and not (until_done and at.done == 1):
        pulls = min(at.next_at - at.reports, n - t)
        if at.version == 0 or pulls < WORTH * arms:
            inside, arm, _ = step(state, law, rng, arms, totals)
            if not inside:
                return t, arm
            t += 1
        else:
            end = t + pulls
            pieces, last = cut(t, 1, end, mark, work)
            expected, realised = totals[0], totals[1]
            play_version(state, law, rng, splitter, pulls, pieces, last, work)
            add_up(work, mark, last, expected, realised)
            mark, t = last, end
            at.reports += pulls
            if at.reports >= at.next_at:
                next_version(state)
        if t == checkpoints[mark]:
            note(curve, mark, totals)
            mark += 1
    return t, 0


def suits(policy: Any, problem: Any) -> bool:
    """Whether rewards are 0 or 1, and each counts for the fit at once."""
    return bool(problem.binary) and policy.window == 0


LEAPS = Leaps(leap_versions, room_for, suits)


@inlined
def play_version(
    state: Any,
    law: Any,
    rng: Generator,
    splitter: Generator,
    pulls: int,
    pieces: int,
    last: int,
    work: Any,
) -> None:
    """Draw the arms of many pulls, one side after another, and fold the rewards of each arm."""
    sides, plan, counts, places = state.sides, work.plan, work.counts, work.more
    curve, totals = work.curve, work.totals
    deepest = len(sides) - 1
    for k in range(pieces):
        plan[k].free = plan[k].rounds
    without = pulls  # pulls that have no arm yet
    d = arm = 0
    spread(sides[0].begin, sides[0].levels, state.shares, pulls, counts, rng)
    places[0] = -1
    while d >= 0:
        places[d] += 1
        level, stride = places[d], sides[d].stride
        if level == sides[d].levels:
            d -= 1
            if d >= 0:
                arm -= places[d] * sides[d].stride
            continue
        state.shown[d] = sides[d].begin + level
        count = counts[state.shown[d]]
        if count == 0:
            continue
        if d < deepest:
            arm += level * stride
            d += 1
            spread(sides[d].begin, sides[d].levels, state.shares, count, counts, rng)
            places[d] = -1
            continue
        pulled = arm + level * stride
        reward, regret = tally(law, pulled, count, rng, work.tallied)
        fold(state, pulled, count, int(reward + 0.5))
        loss = gap(law, pulled)
        totals[0] += count * loss
        totals[1] += regret
        if pieces > 0:
            parts = place(count, without, pieces, plan, splitter)
            without -= count
            for k in range(parts):
                part, mark = plan[k].part, plan[plan[k].where].mark
                regret = split(law, pulled, count, part, splitter, work.tallied)
                count -= part
                if mark < last:
                    curve[mark, 0] += part * loss
                    curve[mark, 1] += regret


@jit
def spread(
    begin: int, levels: int, shares: Floats, pulls: int, counts: Ints, rng: Generator
) -> None:
    """The number of pulls that show each level: a multinomial, drawn as successive binomials."""
    left, last = 1.0, begin
    for k in range(begin, begin + levels):
        counts[k] = 0
        if shares[k] > 0.0:
            last = k
    for k in range(begin, last):
        if pulls > 0 and shares[k] > 0.0:
            counts[k] = rng.binomial(pulls, min(shares[k] / left, 1.0))
            pulls -= counts[k]
            left -= shares[k]
    counts[last] = pulls


@inlined
def fold(state: Any, arm: int, count: int, ones: int) -> None:
    """Fold `count` pulls of an arm, of which `ones` had reward 1 and the others 0."""
    lift, shown = state.at[0].lift, state.shown
    fold_reports(state, state.rho[0], state.base[0], shown, 0.0, count - ones, ones, lift)
    add(state, arm, ones, count)
