"""A study's trials, read like the log of a live study.

A trial is a suggested pull; later its reward arrives, or it is lost. System attributes of a trial
store which pull of the policy it was, and when it was chosen. So nothing else needs to be stored
between processes, and each process sees what the others do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from rank1.compiled import generator
from rank1.errors import InputError, InputTypeError
from rank1.policies import Policy
from rank1.studies.events import Event, Kind, as_events
from rank1.studies.spec import MAX_LEVELS, make_spec
from rank1.studies.state import StudyState

__all__ = ["KEY", "Choice", "Settings", "Trials", "categorical"]

#: The system attribute of a trial whose arm a policy chose.
KEY = "rank1:pull"
#: Since Optuna 5 a journal stores UTC, and reading it gives the reader's time zone.
JOURNAL_CONVERTS = int(optuna.__version__.split(".")[0]) >= 5


@dataclass(frozen=True)
class Settings:
    """How to read trials; see `ArmSampler`."""

    names: tuple[str, ...]
    policy: Policy
    reward_range: tuple[float, float]
    horizon: int | None

    def scaled(self, value: float, number: int) -> float:
        """The value of this trial scaled to [0, 1]."""
        low, high = self.reward_range
        if not low <= value <= high:
            what, asked = (
                f"the value of trial {number}",
                f"in reward_range, from {low:g} to {high:g}",
            )
            hint = "with a wider range the study can continue"
            raise InputError(what, value, asked, hint, got=f"{value:g}")
        return (value - low) / (high - low)

    def started(self, sizes: Sequence[int]) -> StudyState:
        """A live study with these settings, before the first event."""
        # Sides are numbered: a parameter may have a name that a side of a study can't have.
        sides: dict[str, list[str]] = {}
        for name, size in zip(self.names, sizes, strict=True):
            if size > MAX_LEVELS:
                asked = f"a parameter with at most {MAX_LEVELS:,} choices"
                raise InputError(name, size, asked, got=f"{size:,}")
            sides[str(len(sides))] = [str(level) for level in range(size)]
        spec = make_spec(sides=sides, goal="find", policy=self.policy, horizon=self.horizon, seed=0)
        return StudyState(spec)


@dataclass(frozen=True)
class Choice:
    """A pull, as stored in a trial's system attribute."""

    #: The sampler that chose it: the parameters, the policy and the horizon. Its tag means nothing
    #: to other samplers.
    by: list[Any]
    #: The trial. In a copy of the trial, such as a retry, the attribute is ignored.
    number: int
    levels: list[int]
    tag: int
    #: When it was chosen, in seconds since 1970; later than everything its chooser knew about.
    at: float
    #: How many pulls its chooser knew about, and how many of them had ended.
    after: int
    ended: int = 0

    @classmethod
    def read(cls, written: dict[str, Any]) -> Choice:
        """From plain values, as `asdict` returns them; before 0.2 there was a row and a column."""
        former = written.get("pull")
        if former:
            rest = {name: value for name, value in written.items() if name != "pull"}
            return cls(levels=former[:2], tag=former[2], **rest)
        return cls(**written)


class TrialEvent(NamedTuple):
    """An event. Entries are folded in their order, first by time."""

    at: float
    #: At equal times, suggestions come first.
    late: bool
    number: int
    kind: Kind
    #: The arm's number in a study.
    arm: int
    tag: int
    #: The reward; for a suggestion, how much its chooser knew, see `_known`.
    value: float


def categorical(name: str, distribution: BaseDistribution) -> CategoricalDistribution:
    """Return the distribution, or raise an error if it isn't categorical."""
    if not isinstance(distribution, CategoricalDistribution):
        raise InputTypeError(name, distribution, "a categorical parameter", got=str(distribution))
    return distribution


class Trials:
    """A study's trials, folded so far.

    Entries are folded in the order of their times, whenever each was seen: two workers that have
    seen the same trials know the same. When an earlier entry is seen late, for example from another
    worker, all entries are folded again.
    """

    def __init__(self, settings: Settings, study: Study) -> None:
        self.storage, self.study = study._storage, study._study_id
        self.settings = settings
        self.by = [*settings.names, settings.policy.label, settings.horizon]
        self.maximise = study.direction == StudyDirection.MAXIMIZE
        self.grid: tuple[CategoricalDistribution, ...] = ()
        self.entries: list[TrialEvent] = []
        self.begin = 0  # all trials before this one have ended
        self.issued: set[int] = set()  # later trials whose pull is in the entries
        self.ended: set[int] = set()
        self._state: StudyState | None = None

    @property
    def state(self) -> StudyState:
        """What the trials have taught; raises an error until the grid is known."""
        if self._state is None:
            trials = self.storage.get_all_trials(self.study, deepcopy=False)
            seen = sorted({name for trial in trials for name in trial.params})
            asked = f"one in which a trial has suggested {' and '.join(self.settings.names)}"
            raise InputError("study", None, asked, got=f"one with {', '.join(seen) or 'nothing'}")
        return self._state

    def read(self, space: Sequence[BaseDistribution] = ()) -> None:
        """Read what has happened since the last time; `space` has the distributions, if known."""
        # Not `study.get_trials`: with some pruners it leaves out trials, different ones each time.
        trials = self.storage.get_all_trials(self.study, deepcopy=False)
        if not self.grid:
            self._learn_grid(trials, space)
        if not self.grid:
            return
        new: list[TrialEvent] = []
        for trial in trials[self.begin :]:
            if trial.number not in self.ended and trial.state != TrialState.WAITING:
                new += self._news(trial)
        while self.begin in self.ended:
            self.ended.remove(self.begin)
            self.issued.discard(self.begin)
            self.begin += 1
        new.sort()
        if new and self.entries and new[0] < self.entries[-1]:
            self.entries = new = sorted(self.entries + new)
            self._start()
        else:
            self.entries += new
        self._fold(new)

    def choose(self, number: int, seed: int) -> Choice:
        """The policy's next pull, for this trial."""
        # Seeded by the trial's number: workers with one seed differ, and a restart changes nothing.
        with generator(np.random.SeedSequence((seed, number))) as rng:
            (pull,) = self.state.choose(rng, 1)
        at = time.time()
        if self.entries:  # another worker's clock may be ahead
            at = max(at, float(np.nextafter(self.entries[-1].at, np.inf)))
        levels = list(self.state.levels_of(pull.arm))
        choice = Choice(self.by, number, levels, pull.tag, at, self.pulls, self.endings)
        self.entries.append(self._suggested(choice))
        self.issued.add(number)
        self._fold(self.entries[-1:], chosen=True)
        return choice

    def _learn_grid(self, trials: list[FrozenTrial], space: Sequence[BaseDistribution]) -> None:
        names = self.settings.names
        for each in (dict(zip(names, space, strict=False)), *(it.distributions for it in trials)):
            if set(names) <= set(each):
                self.grid = tuple(categorical(name, each[name]) for name in names)
                self._start()
                return

    def _start(self) -> None:
        self._state = self.settings.started([len(it.choices) for it in self.grid])
        self.seq = 1  # of the next event
        self.pulls = self.endings = 0
        self.seq_of: dict[int, int] = {}  # of pending pulls, by trial

    def _news(self, trial: FrozenTrial) -> list[TrialEvent]:
        """The entries for what is new about a trial."""
        choice, found = self._choice(trial), []
        if choice and trial.number not in self.issued:
            self.issued.add(trial.number)
            found.append(self._suggested(choice))
        if not trial.state.is_finished():
            return found
        self.ended.add(trial.number)
        at = self._end_of(trial, choice)
        arm, reward = self._outcome(trial)
        chosen = None
        if choice:
            at, chosen = max(at, choice.at), self._arm(choice.levels)
            kind = Kind.REPORTED if arm == chosen else Kind.CANCELLED
            found.append(TrialEvent(at, True, trial.number, kind, chosen, 0, reward))
        if arm is not None and arm != chosen:  # another sampler or the user chose it
            found.append(TrialEvent(at, True, trial.number, Kind.HISTORY, arm, 1, reward))
        return found

    def _arm(self, levels: Sequence[int]) -> int:
        return self.state.room.arm(levels)

    def _suggested(self, choice: Choice) -> TrialEvent:
        arm = self._arm(choice.levels)
        at = choice.at, False, choice.number
        knew = self._known(choice.after, choice.ended)
        return TrialEvent(*at, Kind.SUGGESTED, arm, choice.tag, knew)

    def _known(self, pulls: int, endings: int) -> int:
        """How much of what the policy needs was known when a pull was chosen."""
        needs = self.settings.policy.needs_all
        return pulls * ("pulls" in needs) + endings * ("rewards" in needs)

    def _end_of(self, trial: FrozenTrial, choice: Choice | None) -> float:
        """When a trial ended, in seconds since 1970; the same for readers in all time zones."""
        if not trial.datetime_complete:
            return 0.0
        at = self._seconds(trial.datetime_complete)
        if choice and trial.datetime_start:
            # A trial is chosen when it starts, which reveals the clock's time zone; zones are
            # multiples of a quarter of an hour.
            at -= 900 * round((self._seconds(trial.datetime_start) - choice.at) / 900)
        return at

    def _seconds(self, local: datetime) -> float:
        """The writer's clock, in an unknown time zone, read as if it were UTC."""
        if JOURNAL_CONVERTS and isinstance(self.storage, JournalStorage):
            return local.timestamp()
        return local.replace(tzinfo=UTC).timestamp()

    def _choice(self, trial: FrozenTrial) -> Choice | None:
        written = trial.system_attrs.get(KEY)
        if not written or written["by"] != self.by or written["number"] != trial.number:
            return None
        return Choice.read(written)

    def _outcome(self, trial: FrozenTrial) -> tuple[int | None, float]:
        """The arm that was played and its reward; None if there is nothing to learn."""
        names = self.settings.names
        complete = trial.state == TrialState.COMPLETE and trial.value is not None
        if not complete or not set(names) <= set(trial.params):
            return None, 0.0
        x = self.settings.scaled(trial.values[0], trial.number)
        levels = [
            int(it.to_internal_repr(trial.params[name]))
            for name, it in zip(names, self.grid, strict=True)
        ]
        return self._arm(levels), x if self.maximise else 1.0 - x

    def _fold(self, entries: list[TrialEvent], chosen: bool = False) -> None:
        events, first = [], self.seq
        for entry in entries:
            event = self._event(entry)
            if event:
                events.append(event)
                self.seq += 1
        if events:
            self.state.fold(as_events(events, first, 0.0), issued=chosen)

    def _event(self, entry: TrialEvent) -> Event | None:
        """The entry as an event in the log of a live study; None if there is nothing to learn."""
        kind, arm = entry.kind, entry.arm
        if kind == Kind.SUGGESTED:
            unaware = entry.value < self._known(self.pulls, self.endings)
            self.pulls += 1
            if unaware:
                return None
            self.seq_of[entry.number] = self.seq
            return Event(kind, arm=arm, tag=entry.tag)
        self.endings += 1
        if kind == Kind.HISTORY:
            return Event(kind, arm=arm, tag=entry.tag, value=entry.value)
        if entry.number not in self.seq_of:
            return None
        seq = self.seq_of.pop(entry.number)
        return Event(kind, arm=arm, suggestion=seq, value=entry.value)
