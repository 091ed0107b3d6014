"""A study's trials, read as the log of a live study is.

A trial is a pull that was suggested; then a reward comes back, or it comes to nothing. What a trial
doesn't say by itself stands in its system attributes: which pull of the policy it was, and when it
was chosen. So nothing else is to be kept between processes, and each sees what the others do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
from rank1.policies import Policy, Pull
from rank1.studies.log import Event, Kind, as_events
from rank1.studies.memory import Memory
from rank1.studies.spec import make_spec

__all__ = ["KEY", "Choice", "Settings", "Trials", "categorical"]

#: The system attribute of a trial whose pair a policy chose.
KEY = "rank1:pull"
#: Since Optuna 5 a journal has UTC, and what is read is in the zone of the reader.
JOURNAL_CONVERTS = int(optuna.__version__.split(".")[0]) >= 5


@dataclass(frozen=True)
class Settings:
    """How trials are to be read; see `PairSampler`."""

    names: tuple[str, str]
    policy: Policy
    reward_range: tuple[float, float]
    horizon: int | None

    def scaled(self, value: float, number: int) -> float:
        """The value of this trial as a number from 0 to 1."""
        low, high = self.reward_range
        if not low <= value <= high:
            raise InputError(
                f"the value of trial {number} must be in reward_range, from {low:g} to {high:g}, "
                f"got {value:g}; with a wider range the study can go on"
            )
        return (value - low) / (high - low)

    def memory(self, K: int, L: int) -> Memory:
        """Of a live study with these settings, before anything has happened."""
        spec = make_spec(
            rows=[str(k) for k in range(K)],
            columns=[str(k) for k in range(L)],
            goal="find",
            policy=self.policy,
            horizon=self.horizon,
            reward_window=None,
            on_expiry="drop",
            default_reward=None,
            reward_range=(0.0, 1.0),
            confidence=0.95,
            tolerance=0.0,
            forgetting=None,
            seed=0,
        )
        return Memory(spec)


@dataclass(frozen=True)
class Choice:
    """A pull, as a trial's system attribute has it."""

    #: Whose it is: the parameters, the policy and the horizon. To others its tag means nothing.
    by: list[Any]
    #: The trial. What a copy of it has, as of one that is tried again, is no pull.
    number: int
    pull: Pull
    #: When it was chosen, in seconds since 1970; later than all that its chooser knew of.
    at: float
    #: How many pulls its chooser knew of.
    after: int

    @property
    def written(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "pull": list(self.pull)}


class Entry(NamedTuple):
    """Something that happened. Entries are folded in their order, first by time."""

    at: float
    #: Of equal times: suggestions come first.
    late: bool
    number: int
    kind: Kind
    row: int
    column: int
    tag: int
    #: The reward; of a suggestion, how many its chooser knew of.
    value: float


def categorical(name: str, distribution: BaseDistribution) -> CategoricalDistribution:
    """The distribution, which must be categorical."""
    if not isinstance(distribution, CategoricalDistribution):
        raise InputTypeError(f"{name!r} must be a categorical parameter, got {distribution}")
    return distribution


class Trials:
    """A study's trials, folded so far.

    What is known is that of all entries in the order of their times, whenever each was seen: two
    workers that have seen the same trials know the same. When an earlier one is seen late, as of
    another worker, all are folded again.
    """

    def __init__(self, settings: Settings, study: Study) -> None:
        self.storage, self.study = study._storage, study._study_id
        self.settings = settings
        self.by = [*settings.names, settings.policy.label, settings.horizon]
        self.maximise = study.direction == StudyDirection.MAXIMIZE
        #: Whether the policy can't use a pull that was chosen without knowing of all before it,
        #: because it counts on as many rewards of every line in a round.
        self.strict = settings.policy.eliminates or settings.policy.has_rounds
        self.grid: tuple[CategoricalDistribution, ...] = ()
        self.entries: list[Entry] = []
        self.begin = 0  # all trials before this one have ended
        self.issued: set[int] = set()  # of those from there on: whose pull is in the entries
        self.ended: set[int] = set()
        self._memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """What the trials have taught, once the grid is known."""
        if self._memory is None:
            trials = self.storage.get_all_trials(self.study, deepcopy=False)
            seen = sorted({name for trial in trials for name in trial.params})
            names = " and ".join(self.settings.names)
            raise InputError(
                f"no trial of the study has suggested both {names} yet; "
                f"suggested so far: {', '.join(seen) or 'nothing'}"
            )
        return self._memory

    def read(self, space: Sequence[BaseDistribution] = ()) -> None:
        """Take in what has happened since; `space` has the distributions, if they are known."""
        # Not `study.get_trials`: with some pruners that leaves trials out, others each time.
        trials = self.storage.get_all_trials(self.study, deepcopy=False)
        if not self.grid:
            self._learn_grid(trials, space)
        if not self.grid:
            return
        new: list[Entry] = []
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
        # By the trial's number: so workers with one seed differ, and a restart changes nothing.
        with generator(np.random.SeedSequence((seed, number))) as rng:
            (pull,) = self.memory.choose(rng, 1)
        at = time.time()
        if self.entries:  # the clock of another worker may be ahead
            at = max(at, float(np.nextafter(self.entries[-1].at, np.inf)))
        choice = Choice(self.by, number, pull, at, self.pulls)
        self.entries.append(_suggested(choice))
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
        self._memory = self.settings.memory(*(len(it.choices) for it in self.grid))
        self.seq = 1  # of the next event
        self.pulls = 0
        self.seq_of: dict[int, int] = {}  # of pulls that wait for their reward, by trial

    def _news(self, trial: FrozenTrial) -> list[Entry]:
        """What wasn't known of a trial."""
        choice, found = self._choice(trial), []
        if choice and trial.number not in self.issued:
            self.issued.add(trial.number)
            found.append(_suggested(choice))
        if not trial.state.is_finished():
            return found
        self.ended.add(trial.number)
        at = self._end_of(trial, choice)
        pair, reward = self._outcome(trial)
        if choice:
            at, chosen = max(at, choice.at), choice.pull[:2]
            kind = Kind.REPORTED if pair == chosen else Kind.CANCELLED
            found.append(Entry(at, True, trial.number, kind, *chosen, 0, reward))
        if pair and not (choice and pair == chosen):  # another sampler or the user chose it
            found.append(Entry(at, True, trial.number, Kind.HISTORY, *pair, 1, reward))
        return found

    def _end_of(self, trial: FrozenTrial, choice: Choice | None) -> float:
        """When a trial ended, in seconds since 1970; the same for readers in all time zones."""
        if not trial.datetime_complete:
            return 0.0
        at = self._seconds(trial.datetime_complete)
        if choice and trial.datetime_start:
            # A trial is chosen when it starts: so that tells the zone of the clock, which is one
            # of quarters of an hour.
            at -= 900 * round((self._seconds(trial.datetime_start) - choice.at) / 900)
        return at

    def _seconds(self, local: datetime) -> float:
        """By the clock of the writer, in a zone that isn't told, as if it were UTC's."""
        if JOURNAL_CONVERTS and isinstance(self.storage, JournalStorage):
            return local.timestamp()
        return local.replace(tzinfo=UTC).timestamp()

    def _choice(self, trial: FrozenTrial) -> Choice | None:
        written = trial.system_attrs.get(KEY)
        if not written or written["by"] != self.by or written["number"] != trial.number:
            return None
        return Choice(**{**written, "pull": Pull(*written["pull"])})

    def _outcome(self, trial: FrozenTrial) -> tuple[tuple[int, int] | None, float]:
        """The pair that was played and its reward; None if there is nothing to learn."""
        names = self.settings.names
        complete = trial.state == TrialState.COMPLETE and trial.value is not None
        if not complete or not set(names) <= set(trial.params):
            return None, 0.0
        x = self.settings.scaled(trial.values[0], trial.number)
        row, column = (
            int(it.to_internal_repr(trial.params[name]))
            for name, it in zip(names, self.grid, strict=True)
        )
        return (row, column), x if self.maximise else 1.0 - x

    def _fold(self, entries: list[Entry], chosen: bool = False) -> None:
        events, first = [], self.seq
        for entry in entries:
            event = self._event(entry)
            if event:
                events.append(event)
                self.seq += 1
        if events:
            self.memory.fold(as_events(events, first, 0.0), lambda seq: None, chosen)

    def _event(self, entry: Entry) -> Event | None:
        """The entry as the log of a live study would have it; None if it is of no use."""
        kind, row, column = entry.kind, entry.row, entry.column
        if kind == Kind.SUGGESTED:
            unaware = entry.value < self.pulls
            self.pulls += 1
            if self.strict and unaware:
                return None
            self.seq_of[entry.number] = self.seq
            return Event(kind, row, column, entry.tag)
        if kind == Kind.HISTORY:
            return Event(kind, row, column, entry.tag, value=entry.value)
        if entry.number not in self.seq_of:
            return None
        seq = self.seq_of.pop(entry.number)
        return Event(kind, row, column, suggestion=seq, value=entry.value)


def _suggested(choice: Choice) -> Entry:
    return Entry(choice.at, False, choice.number, Kind.SUGGESTED, *choice.pull, choice.after)
