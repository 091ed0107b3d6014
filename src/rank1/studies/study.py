"""A live study: ask for a pair, show it, tell its reward when it comes."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, overload

from rank1 import checks, notebook
from rank1.errors import Rank1Error, StorageError
from rank1.policies import Policy
from rank1.studies import asking, checking
from rank1.studies.asking import Report, Suggestion
from rank1.studies.best import Best, best_of
from rank1.studies.desk import Desk, Work
from rank1.studies.export import Replayed, export_log, replay_log
from rank1.studies.fitting import StudyFit, fit_of
from rank1.studies.history import History, import_history
from rank1.studies.log import Event, Kind, check_text
from rank1.studies.memory import Memory
from rank1.studies.spec import Spec, labels_of, make_spec
from rank1.studies.storage import Reader, Storage, open_storage

__all__ = ["Study"]

Place = str | os.PathLike[str] | Storage

#: Pairs of which a notebook shows what was found; of more, only how many rewards there are.
MAX_SHOWN = 100_000


def _opened(storage: Place) -> Storage:
    return storage if isinstance(storage, Storage) else open_storage(storage)


class Study:
    """A grid of named rows and columns that is played live, on a durable log.

    Made by `Study.create` or `Study.open`. All that is acknowledged is stored; several processes
    and threads may work on one study. Ids make a retried ask or tell harmless.

    Examples
    --------
    >>> import tempfile, rank1
    >>> place = tempfile.mkdtemp() + "/rank1.db"
    >>> study = rank1.Study.create(
    ...     "spring", rows=["18-24", "25-34"], columns=["email", "push"], storage=place, seed=1
    ... )
    >>> suggestion = study.ask()
    >>> suggestion.row, suggestion.column
    ('18-24', 'email')
    >>> study.tell(suggestion.id, reward=1.0).late
    False
    >>> study.best().leader
    ('18-24', 'email')
    >>> study.close()
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @classmethod
    def create(
        cls,
        name: str,
        rows: Sequence[str],
        columns: Sequence[str],
        goal: str = "earn",
        policy: Policy | str | None = None,
        storage: Place = "rank1.db",
        horizon: int | None = None,
        reward_window: float | datetime.timedelta | None = None,
        on_expiry: str = "drop",
        default_reward: float | None = None,
        confidence: float = 0.95,
        tolerance: float = 0.0,
        seed: int | None = None,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        forgetting: float | None = None,
    ) -> Self:
        """A new study.

        Parameters
        ----------
        name
            1 to 256 characters, which no other study of the storage has.
        rows, columns
            Names, 1 to 4096 a side, each once. At most 2²⁰ pairs for policies that keep something
            for every pair; `rank1elim` and `rank1elim_kl` take more.
        goal
            "earn" takes UTS, which plays what pays; "find" takes TopTwo, which plays what tells
            most about which pair is best.
        policy
            A policy of the package instead, or its name, as in `"linucb:confidence_scale=1/3"`.
        storage
            A file, `sqlite:///…`, `postgresql://…`, or an open storage.
        horizon
            How many suggestions are planned, for policies that need to know; 1,000,000 unless told.
        reward_window
            Seconds, or a timedelta, after which a reward is overdue; None: never.
        on_expiry
            What then becomes of a suggestion. "drop": its pull is taken back, as if the reward had
            been lost. "default": `default_reward` is taken for its reward. "wait": it is noted, and
            the policy goes on waiting. What is reported later is stored in any case.
        default_reward
            For `on_expiry="default"`; the lowest reward unless told.
        confidence, tolerance
            Of the stopping rule: see `rank1.stopping.verdict`. The tolerance is in the units of
            the rewards.
        seed
            Of the suggestions; random unless told.
        reward_range
            The lowest and the largest reward there can be.
        forgetting
            The half-life of what is learned, in reports, for traffic that drifts. For policies
            whose state is counts and sums. Such a study has no rule for when to stop.
        """
        check_text("name", name)
        spec = make_spec(
            rows=rows, columns=columns, goal=goal, policy=policy, horizon=horizon,
            reward_window=reward_window, on_expiry=on_expiry, default_reward=default_reward,
            reward_range=reward_range, confidence=confidence, tolerance=tolerance,
            forgetting=forgetting, seed=seed,
        )  # fmt: skip
        place = _opened(storage)
        return cls(Desk(place, place.create(name, spec.text)))

    @classmethod
    def open(cls, name: str, storage: Place = "rank1.db") -> Self:
        """A study that is there; UnknownStudyError if it isn't."""
        place = _opened(storage)
        with place.reading() as log:
            row = log.study(name)
        return cls(Desk(place, row))

    # What it is

    @property
    def name(self) -> str:
        """Its name."""
        return self._desk.study.name

    @property
    def spec(self) -> Spec:
        """What `create` was told."""
        return self._desk.spec

    @property
    def policy(self) -> Policy:
        """Who chooses."""
        return self._desk.spec.made_policy()

    @property
    def rows(self) -> list[str]:
        """The rows that live."""
        return self._desk.look(lambda memory, log: memory.living_labels("rows"))

    @property
    def columns(self) -> list[str]:
        """The columns that live."""
        return self._desk.look(lambda memory, log: memory.living_labels("columns"))

    @property
    def revision(self) -> int:
        """How often rows or columns were added or retired."""
        return self._desk.look(lambda memory, log: memory.revision)

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self._desk.storage.where!r}>"

    @notebook.never_fails
    def _repr_html_(self) -> str:
        """What was found so far; looking writes nothing, not even what is overdue."""
        caption = f"{self.name}: {self.policy.label}, to {self.spec.goal}"
        sides = len(self.rows), len(self.columns)
        if sides[0] * sides[1] > MAX_SHOWN:
            totals = self._desk.look(lambda memory, log: asking.counts_of(memory))
            size = "{:,} × {:,}".format(*sides)
            return notebook.facts([("rows × columns", size), *totals.items()], caption)
        best = self._desk.look(lambda memory, log: best_of(memory, self.spec, self._now(log)))
        return best.html(caption)

    # Asking and telling

    @overload
    def ask(
        self, count: None = None, key: str | None = None, unit: str | None = None
    ) -> Suggestion: ...

    @overload
    def ask(
        self, count: int, key: str | None = None, unit: str | None = None
    ) -> list[Suggestion]: ...

    def ask(
        self, count: int | None = None, key: str | None = None, unit: str | None = None
    ) -> Suggestion | list[Suggestion]:
        """The next pair to show; with a `count`, a list of so many.

        Parameters
        ----------
        count
            1 to 100,000. One suggestion, and no list, unless told.
        key
            Of this request. The same key gives the same suggestions again, so that it may be
            retried.
        unit
            Whom the pair is for: a visitor, say. While its last suggestion waits for a reward,
            the same unit is given the same suggestion; after that, a new one of the same pair, as
            long as the pair lives.
        """
        whole = 1 if count is None else checks.integer("count", count, 1, asking.MAX_COUNT)
        made = self._desk.transact(lambda work: asking.suggest(work, self.spec, whole, key, unit))
        return made[0] if count is None else made

    def tell(self, id: str, reward: float) -> Report:
        """The reward of a suggestion has come in.

        The same report again gives the same answer. Another reward for the same id is a
        ConflictError and changes nothing. UnknownSuggestionError, OtherStudyError and
        CancelledError say what else may be wrong with an id.
        """
        return self.tell_many([(id, reward)])[0]

    def tell_many(self, reports: Mapping[str, float] | Iterable[tuple[str, float]]) -> list[Report]:
        """Many rewards at once: all are stored, or after an error none of them."""
        pairs = list(reports.items() if isinstance(reports, Mapping) else reports)

        def work(doing: Work) -> list[Report]:
            answers = asking.take_reports(doing, self.spec, pairs)
            for answer in answers:
                if isinstance(answer, Rank1Error):
                    raise answer
            return [answer for answer in answers if isinstance(answer, Report)]

        return self._desk.transact(work)

    def cancel(self, id: str) -> None:
        """A suggestion was never shown: it teaches nothing. Again is as good as once."""
        self._desk.transact(lambda work: asking.cancel(work, self.spec, id))

    # The grid

    def revise(
        self,
        *,
        add_rows: Iterable[str] = (),
        retire_rows: Iterable[str] = (),
        add_columns: Iterable[str] = (),
        retire_columns: Iterable[str] = (),
    ) -> int:
        """Add and retire rows and columns; the number of the revision.

        A retired line is not suggested any more; rewards of pulls that are out are still stored.
        A retired name that is added again lives on with what was known of it. Policies whose state
        is counts and sums go on with all they know of pairs that live; the others start anew.
        """
        given = {
            "add_rows": add_rows, "retire_rows": retire_rows,
            "add_columns": add_columns, "retire_columns": retire_columns,
        }  # fmt: skip
        change = {name: list(labels_of(name, labels)) for name, labels in given.items() if labels}

        def work(doing: Work) -> int:
            text = json.dumps(change)
            if change:
                doing.memory.check_revision(text)
                number = doing.memory.revision + 1
                doing.append([Event(Kind.REVISED, tag=number, data=text)])
            return doing.memory.revision

        if change and not self.policy.counts:
            warnings.warn(
                f"{self.spec.policy} starts anew after a revision: its state isn't counts and sums",
                UserWarning,
                stacklevel=2,
            )
        return self._desk.transact(work)

    def retire(self) -> None:
        """Close the study: it gives no suggestions any more, and still takes reports."""

        def work(doing: Work) -> None:
            doing.ahead = True
            doing.log.retire(doing.study.id)

        try:
            self._desk.transact(work)
        finally:
            self._desk.forget()

    # What was found

    def best(self) -> Best:
        """The leader, intervals for pairs and effects, and whether one may stop, and why."""
        return self._settled(lambda memory, log: best_of(memory, self.spec, self._now(log)))

    def fit(self, B: int = 199, seed: int = 1) -> StudyFit:
        """Is the grid of rank one? With a p-value by replaying the study's own policy B times.

        Rewards that aren't 0 or 1 are replayed as if they were; then p is on the safe side.
        """
        return self._settled(lambda memory, log: fit_of(memory, self.spec, self._now(log), B, seed))

    def totals(self) -> dict[str, int]:
        """How many suggestions there are, and what became of them."""
        return self._settled(lambda memory, log: asking.counts_of(memory))

    def _now(self, log: Reader) -> float:
        return log.now(self._desk.study.id)

    def _settled(self, reader: Any) -> Any:
        """Look at the study, once what is overdue is noted."""

        def is_overdue(memory: Memory, log: Reader) -> bool:
            return bool(memory.overdue(self._now(log)))

        if self.spec.reward_window is not None and self._desk.look(is_overdue):
            with contextlib.suppress(StorageError):  # who may only read sees what was noted so far
                self._desk.transact(lambda work: None)
        return self._desk.look(reader)

    # In and out

    def import_history(self, history: History, key: str | None = None) -> int:
        """Add rewards that are known from elsewhere; how many.

        Parameters
        ----------
        history
            A CSV, JSONL or Parquet file with the columns row, column and reward; or rows of these.
        key
            The same key is imported once. Unless told, the same history is.
        """
        return import_history(self._desk, history, key)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write a line for each suggestion, as JSONL or Parquet; how many."""
        return self._desk.look(lambda memory, log: export_log(self._desk.study, memory, log, path))

    def replay(self, policy: Policy | str, seed: int = 1) -> Replayed:
        """How another policy fares on the rewards of the log, each pair's in their order."""
        return self._desk.look(
            lambda memory, log: replay_log(memory, self.spec, log, self._desk.study, policy, seed)
        )

    def verify(self) -> checking.Verified:
        """Recompute all from the log, and compare."""
        return checking.verify(self._desk)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole storage to a new file, while others write."""
        self._desk.storage.backup(path)

    def close(self) -> None:
        """Keep a snapshot if much has happened, and close the storage."""
        self._desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
