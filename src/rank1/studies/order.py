"""A study's own order of asks and reports, and how to replay it on other means.

A policy's counts depend on when it learned what: a batch of 500 asks is chosen by what was known
before it. So the replay follows the log's own events: the same number of asks before each report,
each report for the suggestion at the same position, and history, expiries, cancellations, revisions
and forgetting at the same points. Only arms and rewards are drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rank1.compiled import generator, kernel_for, record
from rank1.policies.base import Records, choose, expects, update
from rank1.policies.folding import give_up, learn_count, load_tallies
from rank1.studies.events import REPEAT, Events, Expiry, Kind
from rank1.studies.levels import Change, Levels
from rank1.studies.spec import Spec, started
from rank1.studies.state import FADING

__all__ = ["Order", "Replayer", "read_order"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Steps of an order. LEARN is for reported rewards and for defaults in their place, DROP for pulls
#: that will get no reward.
ASK, LEARN, DROP, HISTORY, REVISE = range(5)
# Why the loop stops; the caller must do the rest of the step at which it stops.
DONE, FORGET, ANEW = range(3)

AT = record(
    "learned",  # rewards the policy has learned since it last forgot some
    "asked",  # suggestions so far
    "first",  # the first suggestion that the policy's current state chose
)


class Order(NamedTuple):
    """What happened in a study, in order, without arms and rewards."""

    steps: NDArray[np.int8]
    #: The number of the step's suggestion, or of its line of history.
    which: Ints
    #: For each suggestion, the earlier one whose arm it repeats; -1 if the policy chose the arm.
    #: The log is read without units, so with repeat="each" this is the last one of the same arm,
    #: which may belong to another unit: the replay then has as many repeats of each arm, but for
    #: other units.
    repeats: Ints
    #: For each suggestion, whether its reward is evidence by now.
    counted: Bools
    #: For each line of history, its arm on the grid of all levels, and its number of rewards.
    arms: Ints
    times: Ints


class Run(NamedTuple):
    """One replay, as far as it has been played."""

    at: Records  # see `AT`
    #: For each suggestion, its arm on the grid of all levels, and its tag, or -1 without one.
    arms: Ints
    tags: Ints
    #: For each arm: number and sum of the rewards that the policy knows, and of the evidence.
    known: Floats
    known_sums: Floats
    trials: Floats
    won: Floats
    #: For each line of history, the sum of its rewards.
    drawn: Floats


class Grids(NamedTuple):
    """The grids of a study: its active levels, initially and after each revision."""

    #: The number of levels of each side, including retired ones.
    sizes: tuple[int, ...]
    #: For each revision and each side, the numbers of the active levels.
    living: list[list[list[int]]]

    def places(self, revision: int) -> Ints:
        """Return the indices of a revision's arms on the grid of all levels, in policy order."""
        found = np.ravel_multi_index(np.ix_(*self.living[revision]), self.sizes)
        return found.astype(np.int64).ravel()

    def shape(self, revision: int) -> tuple[int, ...]:
        """Return the number of active levels, by side."""
        return tuple(map(len, self.living[revision]))


def grids_of(spec: Spec, changes: Sequence[Change]) -> Grids:
    """Return all grids that a study has had."""
    levels = Levels(spec)
    living = [list(map(list, levels.living.values()))]
    for change in changes:
        levels.change(change)
        living.append(list(map(list, levels.living.values())))
    return Grids(levels.grid.sizes, living)


def read_order(events: Events, spec: Spec, grids: Grids, now: float) -> Order:
    """Return the order of a log's events, and which rewards are evidence by now."""
    kind, tag = events.kind, events.tag
    asked = kind == Kind.SUGGESTED
    number = np.searchsorted(events.seq[asked], events.suggestion)
    number[asked] = np.arange(asked.sum())
    history = kind == Kind.HISTORY
    number[history] = np.arange(history.sum())
    filled = (kind == Kind.EXPIRED) & (tag == Expiry.DEFAULT)
    told = (kind == Kind.REPORTED) & ~np.isin(number, number[filled])
    dropped = (kind == Kind.CANCELLED) | ((kind == Kind.EXPIRED) & (tag == Expiry.DROPPED))
    steps = np.full(events.size, -1, np.int8)
    for step, where in (
        (ASK, asked), (LEARN, told | filled), (DROP, dropped), (HISTORY, history),
        (REVISE, kind == Kind.REVISED),
    ):  # fmt: skip
        steps[where] = step
    # If a unit counts once, its later visits are neither learned nor evidence.
    again = np.zeros(events.size, np.bool_)
    of_pull = asked | told | filled | dropped
    again[of_pull] = (tag[asked] == REPEAT)[number[of_pull]]
    some = (steps >= 0) & ~again
    counted = np.zeros(asked.sum(), np.bool_)
    counted[number[some & (steps == LEARN)]] = True
    if spec.on_expiry == "default" and spec.reward_window is not None:
        counted &= events.at[asked] + spec.reward_window <= now
    levels = np.unravel_index(events.arm[history], spec.room)
    arms: Ints = np.atleast_1d(np.ravel_multi_index(levels, grids.sizes))
    repeats = _earlier(events.arm[asked], tag[asked] < 0)
    return Order(steps[some], number[some], repeats, counted, arms, tag[history])


def _earlier(arms: Ints, wanted: Bools) -> Ints:
    """Return the index of the previous entry with the same arm for each wanted entry, or -1."""
    order = np.argsort(arms, kind="stable")
    same = arms[order[1:]] == arms[order[:-1]]
    found = np.full(len(arms), -1)
    found[order[1:][same]] = order[:-1][same]
    return np.where(wanted, found, -1)


def _play(
    state: Any, order: Order, run: Run, begin: int, places: Ints, back: Ints, means: Floats,
    forget_every: int, rng: np.random.Generator,
) -> tuple[int, int]:  # fmt: skip
    """Play the steps from `begin` on; return where the loop stopped, and why.

    `places` has the policy's arms on the grid of all levels; `back` is the inverse, with -1 for
    arms that aren't active. A pull's reward is drawn when it is reported.
    """
    at = run.at[0]
    for e in range(begin, len(order.steps)):
        step, k = order.steps[e], order.which[e]
        if step == ASK:
            at.asked = k + 1
            earlier = order.repeats[k]
            if earlier >= 0 and back[run.arms[earlier]] >= 0:
                run.arms[k], run.tags[k] = run.arms[earlier], -1
            else:
                arm, run.tags[k] = choose(state, rng)
                run.arms[k] = places[arm]
        elif step == LEARN:
            place = run.arms[k]
            arm, tag = back[place], run.tags[k] if k >= at.first else -1
            x = 1.0 if rng.random() < means[place] else 0.0
            run.known[place] += 1.0
            run.known_sums[place] += x
            if order.counted[k]:
                run.trials[place] += 1.0
                run.won[place] += x
            if arm >= 0:
                if tag < 0:
                    learn_count(state, arm, 1, x)
                elif expects(state, arm, tag):
                    update(state, arm, tag, x)
            at.learned += 1
            if forget_every > 0 and at.learned >= forget_every:
                return e + 1, ANEW
        elif step == DROP:
            arm, tag = back[run.arms[k]], run.tags[k] if k >= at.first else -1
            if arm >= 0 and tag >= 0 and not give_up(state, arm, tag):
                return e + 1, FORGET
            run.tags[k] = -1
        elif step == HISTORY:
            place, times, total = order.arms[k], order.times[k], run.drawn[k]
            run.known[place] += times
            run.known_sums[place] += total
            run.trials[place] += times
            run.won[place] += total
            if back[place] >= 0:
                learn_count(state, back[place], times, total)
        else:
            return e + 1, ANEW
    return len(order.steps), DONE


class Replayer:
    """Replays a study, as `rank1.fit.p_value` requires.

    `means_of_all` has the means of all arms, including those of retired levels, which a fit of the
    active levels doesn't cover. `repetitions` is the approximate number of calls, to decide whether
    compiling pays off.
    """

    def __init__(
        self, spec: Spec, grids: Grids, order: Order, means_of_all: Floats, repetitions: int
    ) -> None:
        self.spec, self.grids, self.order = spec, grids, order
        self.means_of_all, self.repetitions = means_of_all.ravel(), repetitions

    def __call__(self, means: Floats, rng: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        """Return successes and failures of the active arms."""
        order, last = self.order, len(self.grids.living) - 1
        whole, living = self.means_of_all.copy(), self.grids.places(last)
        whole[living] = means.ravel()
        whole = np.clip(whole, 0.0, 1.0)
        drawn = rng.binomial(order.times, whole[order.arms]).astype(np.float64)
        arms, tags = np.zeros((2, len(order.counted)), np.int64)
        known, known_sums, trials, won = np.zeros((4, len(whole)))
        run = Run(np.zeros(1, AT), arms, tags, known, known_sums, trials, won, drawn)
        with generator(np.random.SeedSequence(int(rng.integers(2**63)))) as inner:
            self._play(run, whole, inner)
        shape, gained = self.grids.shape(last), won[living]
        return gained.reshape(shape), (trials[living] - gained).reshape(shape)

    def _play(self, run: Run, means: Floats, rng: np.random.Generator) -> None:
        order, at, half_life = self.order, run.at[0], self.spec.forgetting
        forget_every = 0 if half_life is None else max(1, round(half_life / FADING))
        begin, revision, reason = 0, 0, ANEW
        places, back = self._arms(revision)
        while reason != DONE:
            if reason == ANEW:
                state = started(self.spec, self.grids.shape(revision))
                load = kernel_for(load_tallies, state, work=self.repetitions * len(places))
                load(state, run.known[places], run.known_sums[places])
                at.first = at.asked
            work = self.repetitions * len(order.steps)
            play = kernel_for(_play, state, order, run, work=work)
            begin, reason = play(state, order, run, begin, places, back, means, forget_every, rng)
            k = order.which[begin - 1]
            if reason == FORGET:
                state = state.forget(int(back[run.arms[k]]), int(run.tags[k]))
                run.tags[k] = -1
            elif reason == ANEW and order.steps[begin - 1] == REVISE:
                revision += 1
                places, back = self._arms(revision)
            elif reason == ANEW and half_life is not None:
                factor = 0.5 ** (at.learned / half_life)
                run.known[:] *= factor
                run.known_sums[:] *= factor
                at.learned = 0

    def _arms(self, revision: int) -> tuple[Ints, Ints]:
        """Return the indices of the policy's arms on the grid of all levels, and the inverse."""
        places = self.grids.places(revision)
        back = np.full(len(self.means_of_all), -1)
        back[places] = np.arange(len(places))
        return places, back
