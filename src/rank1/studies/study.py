"""A live study: ask for an arm, show it, tell its reward when it comes."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from rank1 import atomic, checks, notebook
from rank1.documents import (
    Best,
    Forecast,
    Imported,
    Personalised,
    Recorded,
    Replayed,
    Report,
    Suggestion,
    Verified,
)
from rank1.errors import InputError, InputTypeError, Rank1Error, StorageError
from rank1.policies import Policy
from rank1.policies.base import has_counts
from rank1.studies import revising, suggestions, verification
from rank1.studies.best import best_of
from rank1.studies.drawing import shares_of
from rank1.studies.events import Event, Kind, check_text, data_text
from rank1.studies.export import EXPORTED, event_lines, export_log, page_lines, replay_log
from rank1.studies.fitting import StudyFit, fit_of, read_material
from rank1.studies.history import History, import_history
from rank1.studies.outlook import forecast_of, personalise_of
from rank1.studies.planning import is_due
from rank1.studies.records import no_shares, take_records, take_rewards
from rank1.studies.report import report_page
from rank1.studies.spec import Spec, make_spec
from rank1.studies.state import StudyState
from rank1.studies.storage import Reader, Storage, open_storage
from rank1.studies.traffic import Day
from rank1.studies.unit_of_work import StudyAccess, UnitOfWork

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Study"]

T = TypeVar("T")

Place = str | os.PathLike[str] | Storage

#: The arguments of `record` and `reward`.
RECORD = "unit", "version", "levels", "reward", "guardrails"
REWARD = "unit", "reward", "guardrails"
REPORT = "id", "reward", "guardrails"
#: Arms of which a notebook shows what was found; of more, only how many rewards there are.
MAX_SHOWN = 100_000


def _opened(storage: Place) -> Storage:
    return storage if isinstance(storage, Storage) else open_storage(storage)


def _in_order(
    argument: str, given: Iterable[Any], names: Sequence[str], required: int
) -> list[Sequence[Any]]:
    """Arguments of a method, in its order, from sequences or dicts of them."""
    found: list[Sequence[Any]] = []
    for place, each in enumerate(given):
        if isinstance(each, Mapping) and each.keys() <= set(names):
            each = [each.get(name) for name in names]
        if not isinstance(each, tuple | list) or not required <= len(each) <= len(names):
            raise InputTypeError(f"{argument}[{place}]", each, ", ".join(names))
        found.append(each)
    return found


class Study:
    """A grid of named levels that is played live, on a durable log.

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

    def __init__(self, access: StudyAccess) -> None:
        #: Transactions on the study, for callers that share them; see `rank1.studies.group_commit`.
        self.access = access

    @classmethod
    def create(
        cls,
        name: str,
        rows: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
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
        sides: Mapping[str, Sequence[str]] | None = None,
        control: Mapping[str, str] | None = None,
        floor: float | None = None,
        holdout: float | None = None,
        min_lift: float | None = None,
        given: Sequence[str] | None = None,
        new_levels: str | None = None,
        guardrails: Mapping[str, Mapping[str, float]] | None = None,
        repeat: str = "once",
    ) -> Self:
        """Create a study.

        Parameters
        ----------
        name
            1 to 256 characters, which no other study of the storage has.
        rows, columns
            Names of the levels of two sides, 1 to 4096 each, all different. At most 2²⁰ arms for
            policies that keep something for every arm; `rank1elim` and `rank1elim_kl` take more.
        goal
            "earn" takes UTS, which plays what pays. "find" draws each side's level by known
            shares, bets against each level, drops what is refuted, and says when the best arm is
            found; with a policy, it leaves that to the counts of rewards (`rank1.stopping`).
        policy
            A policy instead, or its name, as in `"linucb:confidence_scale=1/3"`; of another
            package by the name of its entry point, or as `"module:Class"`.
        storage
            A file, `sqlite:///…`, `postgresql://…`, or an open storage.
        horizon
            How many suggestions are planned, for policies that need to know; default: 1,000,000.
        reward_window
            Seconds, or a timedelta, after which a reward is overdue; None: never.
        on_expiry
            What then becomes of a suggestion. "drop": its pull is taken back, as if the reward had
            been lost. "default": `default_reward` is taken for its reward. "wait": it is noted, and
            the policy goes on waiting. What is reported later is stored in any case.
        default_reward
            For `on_expiry="default"`; default: the lowest reward.
        confidence
            With which the study says that an arm is best.
        tolerance
            How far below the best the arm may be that a study with a policy stops at, in the units
            of the rewards: see `rank1.stopping.verdict`.
        seed
            Of the suggestions; default: random.
        reward_range
            The lowest and the largest reward there can be. Lifts compare rewards above the lowest:
            in the range (100, 200), 150 is a lift of 25% over 140, as 50 is over 40.
        forgetting
            The half-life of what is learned, in reports, for traffic that drifts. For policies
            whose state is counts and sums. Such a study has no rule for when to stop.
        sides
            1 to 16 sides instead of rows and columns: the names of the levels of each, as in
            `{"headline": ["A", "B"], "image": ["x", "y", "z"]}`.
        control
            The level of each side that is shown today; lifts are over it. Given sides are left
            out: their level comes with the visitor. In a study that draws by
            shares it keeps at least 5% of its side's traffic until the study may stop, even after
            it is refuted, so that the lift becomes known.
        floor
            The least share of each level that lives; at least 5% where a side is given, because a
            level may be best in some segment only (less where a side has more than 10 levels). From
            here on, all options but `repeat` are
            for goal="find" without a policy.
        holdout
            The part of the units that stay on the control for the whole study.
        min_lift
            The smallest lift that matters: 0.05 if differences below 5% don't. The study stops
            sooner, with an arm that is within this of the best, on each side. Like all lifts, it
            is relative to rewards above the lowest of `reward_range`.
        given
            Sides whose level comes with the visitor, such as a segment: see `ask`.
        new_levels
            What to do about a level of a given side that isn't known: "refuse" it (default) or
            "add" it.
        guardrails
            Second metrics, in [0, 1], that are told with a reward, and by how much each may be
            worse than the control's: `{"unsubscribed": {"worse_by": 0.02}}`. Levels that are shown
            to be worse are dropped.
        repeat
            "once": a unit counts once, by its first exposure, also if that one has expired
            without a reward. "each": each visit counts, as if
            visits of one person were independent. They aren't: with ten visits each, 56 of 200
            studies stopped at a wrong arm.
        """
        check_text("name", name)
        spec = make_spec(
            rows=rows, columns=columns, sides=sides, goal=goal, policy=policy, horizon=horizon,
            reward_window=reward_window, on_expiry=on_expiry, default_reward=default_reward,
            reward_range=reward_range, confidence=confidence, tolerance=tolerance,
            forgetting=forgetting, seed=seed, control=control, floor=floor, holdout=holdout,
            min_lift=min_lift, given=given, new_levels=new_levels, guardrails=guardrails,
            repeat=repeat,
        )  # fmt: skip
        if repeat == "each":
            warnings.warn(
                "repeat='each' takes visits of one unit for independent: with ten visits each, 56 "
                "of 200 studies stopped at a wrong arm where at most 10 should",
                UserWarning,
                stacklevel=2,
            )
        place = _opened(storage)
        return cls(StudyAccess(place, place.create(name, spec.text)))

    @classmethod
    def open(cls, name: str, storage: Place = "rank1.db") -> Self:
        """Open a study that is there; UnknownStudyError if it isn't."""
        place = _opened(storage)
        with place.reading() as log:
            row = log.study(name)
        return cls(StudyAccess(place, row))

    @staticmethod
    def delete(name: str, storage: Place = "rank1.db", *, confirm: str) -> None:
        """Delete a study with its whole log, for good; `confirm` is its name once more."""
        if confirm != name:
            hint = "what is deleted can't be had back"
            raise InputError("confirm", confirm, f"the name of the study, {name!r}", hint)
        place = _opened(storage)
        with place.reading() as log:
            study = log.study(name).id
        with place.transaction(study) as doing:
            doing.delete(study)

    # What it is

    @property
    def name(self) -> str:
        """Its name."""
        return self.access.study.name

    @property
    def uid(self) -> str:
        """What the ids of its suggestions begin with."""
        return self.access.study.uid

    @property
    def spec(self) -> Spec:
        """What `create` was told."""
        return self.access.spec

    @property
    def policy(self) -> Policy:
        """The policy that chooses."""
        return self.access.spec.made_policy()

    @property
    def sides(self) -> dict[str, list[str]]:
        """The levels that live, by side."""
        return self.access.compute(
            lambda state, now: {side: state.living_labels(side) for side in state.labels}
        )

    @property
    def rows(self) -> list[str]:
        """The rows that live, of a study with two sides."""
        return self._two_sides()[0]

    @property
    def columns(self) -> list[str]:
        """The columns that live, of a study with two sides."""
        return self._two_sides()[1]

    def _two_sides(self) -> list[list[str]]:
        sides = [*self.sides.values()]
        if len(sides) != 2:
            raise AttributeError(
                f"rows and columns are for two sides: {self.name!r} has {len(sides)}"
            )
        return sides

    @property
    def revision(self) -> int:
        """How often levels were added or retired."""
        return self.access.compute(lambda state, now: state.revision)

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self.access.storage.where!r}>"

    @notebook.never_fails
    def _repr_html_(self) -> str:
        """What was found so far; looking writes nothing, not even what is overdue."""
        caption = f"{self.name}: {self.policy.label}, to {self.spec.goal}"
        sides = {side: len(labels) for side, labels in self.sides.items()}
        if math.prod(sides.values()) > MAX_SHOWN:
            totals = self.access.compute(lambda state, now: state.counts())
            size = " × ".join(f"{count:,}" for count in sides.values())
            return notebook.facts([(" × ".join(sides), size), *totals.items()], caption)
        best = self.access.compute(lambda state, now: best_of(state, self.spec, now))
        return best.html(caption)

    # Asking and telling

    @overload
    def ask(
        self,
        count: None = None,
        key: str | None = None,
        unit: str | None = None,
        data: Mapping[str, Any] | None = None,
        given: Mapping[str, str] | None = None,
    ) -> Suggestion: ...

    @overload
    def ask(
        self,
        count: int,
        key: str | None = None,
        unit: str | None = None,
        data: Mapping[str, Any] | None = None,
        given: Mapping[str, str] | None = None,
    ) -> list[Suggestion]: ...

    def ask(
        self,
        count: int | None = None,
        key: str | None = None,
        unit: str | None = None,
        data: Mapping[str, Any] | None = None,
        given: Mapping[str, str] | None = None,
    ) -> Suggestion | list[Suggestion]:
        """Ask for the next arm to show; with a `count`, for a list of as many.

        Parameters
        ----------
        count
            1 to 100,000. Default: one suggestion, and no list.
        key
            Of this request. The same key gives the same suggestions again, so that it may be
            retried.
        unit
            Whom the arm is for: a visitor, say. While its last suggestion waits for a reward,
            the same unit is given the same suggestion (and ConflictError if it asks with other
            levels of given sides); after that, a new one of the same arm, as long as the arm
            lives. Only its first exposure counts. In a study that draws by shares, its levels are
            those that `rank1.assign` gives.
        data
            A JSON object of at most 4 KB that is kept with each suggestion: its `data`, and in
            the export.
        given
            The level of each given side, such as `{"segment": "18-24"}`: the others are drawn.
        """
        whole = 1 if count is None else checks.integer("count", count, 1, suggestions.MAX_COUNT)
        made = self.access.transact(
            lambda work: suggestions.suggest(work, whole, key, unit, data, given)
        )
        return made[0] if count is None else made

    def tell(self, id: str, reward: float, guardrails: Mapping[str, float] | None = None) -> Report:
        """Report the reward of a suggestion, and the guardrails that came with it.

        A duplicate gets the same answer. Another reward for the same id, or other or additional
        guardrails, raise ConflictError and change nothing. UnknownSuggestionError,
        OtherStudyError and CancelledError say what else may be wrong with an id.
        """
        return self.tell_many([(id, reward, guardrails)])[0]

    def tell_many(self, reports: Mapping[str, float] | Iterable[Sequence[Any]]) -> list[Report]:
        """Many rewards at once: all are stored, or after an error none of them.

        Each is an id, a reward and, if there are any, guardrails.
        """
        given = reports.items() if isinstance(reports, Mapping) else reports
        pairs = _in_order("reports", given, REPORT, 2)
        return self._all(lambda work: suggestions.take_reports(work, pairs))

    def _all(self, job: Callable[[UnitOfWork], Sequence[T | Rank1Error]]) -> list[T]:
        """What a job has stored, unless something is wrong with a part of it."""

        def work(doing: UnitOfWork) -> list[T]:
            found: list[T] = []
            for answer in job(doing):
                if isinstance(answer, Rank1Error):
                    raise answer
                found.append(answer)
            return found

        return self.access.transact(work)

    def cancel(self, id: str) -> None:
        """Note that a suggestion was never shown: it teaches nothing. Twice is the same as once."""
        self.access.transact(lambda work: suggestions.cancel(work, id))

    # Assigning without asking

    def shares(self) -> dict[str, Any]:
        """The current version of the shares, by which `rank1.assign` draws a unit's levels.

        Examples
        --------
        >>> import tempfile, rank1
        >>> place = tempfile.mkdtemp() + "/rank1.db"
        >>> study = rank1.Study.create("a", sides={"image": ["x", "y"]}, goal="find", storage=place)
        >>> shares = study.shares()
        >>> shares["version"], shares["sides"]
        (0, {'image': {'x': 0.5, 'y': 0.5}})
        >>> levels = rank1.assign(shares, "visitor-1")
        >>> study.record("visitor-1", shares["version"], levels, reward=1.0).reward
        1.0
        >>> study.close()
        """
        self._needs_shares()
        if self.access.compute(lambda state, now: is_due(state.live, state.book)):
            try:
                self.access.transact(lambda work: None)  # the next version begins
            except StorageError:  # where nothing may be written, the current one goes on
                if not self.access.compute(lambda state, now: state.live.versions):
                    raise
        return self.access.compute(lambda state, now: shares_of(state))

    def record(
        self,
        unit: str,
        version: int,
        levels: Mapping[str, str],
        reward: float | None = None,
        guardrails: Mapping[str, float] | None = None,
    ) -> Recorded:
        """Store an exposure whose levels were drawn elsewhere, by a version of the shares.

        What doesn't fit the version is refused. The same record again gives the same answer; one
        that contradicts it is a ConflictError.

        Parameters
        ----------
        unit
            Whom it was shown to. A unit is recorded once.
        version
            The version of the shares.
        levels
            A level of each side.
        reward
            None if it comes later: see `reward`.
        guardrails
            Second metrics. They are told with the reward, and refused without one.
        """
        answer = self.record_many([(unit, version, levels, reward, guardrails)])[0]
        if isinstance(answer, Rank1Error):
            raise answer
        return answer

    def record_many(
        self, records: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> list[Recorded | Rank1Error]:
        """Store many exposures, each as the arguments of `record`: in order, or by name in a dict.

        An answer for each, or the error with which it was refused; the others are stored.
        """
        self._needs_shares()
        given = _in_order("records", records, RECORD, 3)
        return self.access.transact(lambda work: take_records(work, given))

    def reward(
        self, unit: str, reward: float, guardrails: Mapping[str, float] | None = None
    ) -> Report:
        """Report the reward of a unit's exposure, and its guardrails; duplicates as in `tell`."""
        answer = self.reward_many([(unit, reward, guardrails)])[0]
        if isinstance(answer, Rank1Error):
            raise answer
        return answer

    def reward_many(
        self, rewards: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> list[Report | Rank1Error]:
        """Store many rewards of units, each as the arguments of `reward`: in order, or by name.

        An answer for each, or the error with which it was refused; the others are stored.
        """
        given = _in_order("rewards", rewards, REWARD, 2)
        return self.access.transact(lambda work: take_rewards(work, given))

    def _needs_shares(self) -> None:
        if not self.spec.design:
            raise no_shares(self.name, self.spec)

    # The grid

    def revise(
        self,
        add: Mapping[str, Iterable[str]] | None = None,
        retire: Mapping[str, Iterable[str]] | None = None,
        *,
        add_rows: Iterable[str] = (),
        retire_rows: Iterable[str] = (),
        add_columns: Iterable[str] = (),
        retire_columns: Iterable[str] = (),
    ) -> int:
        """Add and retire levels, by side; the number of the revision.

        A retired level is not suggested any more; rewards of earlier pulls are still stored. A
        retired name that is added again lives on with what was known of it. Policies whose state
        is counts and sums go on with all they know of arms that live; the others start anew.

        Examples
        --------
        >>> import tempfile, rank1
        >>> place = tempfile.mkdtemp() + "/rank1.db"
        >>> sides = {"headline": ["A", "B"], "image": ["x", "y"], "button": ["buy"]}
        >>> study = rank1.Study.create("home", sides=sides, storage=place)
        >>> study.revise(add={"button": ["go"]}, retire={"image": ["y"]})
        1
        >>> study.sides
        {'headline': ['A', 'B'], 'image': ['x'], 'button': ['buy', 'go']}
        >>> study.close()
        """
        change = revising.change_of(
            self.spec.sides, add, retire, add_rows=add_rows, retire_rows=retire_rows,
            add_columns=add_columns, retire_columns=retire_columns,
        )  # fmt: skip

        def work(doing: UnitOfWork) -> tuple[int, bool]:
            return revising.revise(doing, change), has_counts(doing.state.state)

        number, goes_on = self.access.transact(work)
        if (change.added or change.retired) and not goes_on:
            warnings.warn(
                f"{self.spec.policy} starts anew after a revision: its state isn't counts and sums",
                UserWarning,
                stacklevel=2,
            )
        return number

    def retire(self) -> None:
        """Close the study: it gives no suggestions any more, and still takes reports."""

        def work(doing: UnitOfWork) -> None:
            doing.ahead = True
            doing.log.retire(doing.study.id)

        try:
            self.access.transact(work)
        finally:
            self.access.forget()

    def archive(self) -> None:
        """Hide the study from lists. It still gives suggestions and takes reports: see `retire`."""
        self.access.transact(lambda work: work.log.archive(work.study.id))

    def unarchive(self) -> None:
        """Show the study in lists again."""
        self.access.transact(lambda work: work.log.archive(work.study.id, archived=False))

    def note(self, text: str) -> None:
        """Add a remark to the log, as of now: "new prices since today". It changes nothing else."""
        data = data_text({"text": check_text("text", text)})
        self.access.transact(lambda work: work.append([Event(Kind.NOTED, data=data)]))

    def forget_unit(self, unit: str) -> int:
        """Remove a unit's name from the log, and what was stored with it; how many events had it.

        The `data` of its suggestions goes, too, and so do keys in which the name is. What it was
        shown and what that brought stays, as that of nobody in particular.
        """
        return self.access.transact(lambda work: work.log.forget_unit(work.study.id, unit))

    # What was found

    def best(self, *, tables: bool = True) -> Best:
        """What was found: the leader, intervals for arms and effects, whether to stop, and why.

        Parameters
        ----------
        tables
            Whether to include the tables of all arms. A look at millions of arms is quick without.
        """
        return self._settled(lambda state, now: best_of(state, self.spec, now, tables))

    def forecast(self, per_day: float | None = None, *, runs: int = 200, seed: int = 1) -> Forecast:
        """How many more rewards it takes until a verdict, at 10, 50 and 90%, by continuing.

        Parameters
        ----------
        per_day
            Rewards a day, for an answer in days.
        runs, seed
            How often the study is continued from what is known, and from which seed.
        """
        self._needs_shares()
        return self._settled(lambda state, log: forecast_of(state, per_day, runs, seed))

    def personalise(self, side: str, by: str) -> Personalised:
        """Does it pay to choose a side's level by the level of another, such as a segment?"""
        self._needs_shares()
        return self._settled(lambda state, log: personalise_of(state, side, by))

    def fit(self, B: int = 199, seed: int = 1) -> StudyFit:
        """Is the grid of rank one? With a p-value by playing the study again B times.

        The replay has the log's own order of asks and reports, see `rank1.studies.order`; p is
        corrected by the fast double bootstrap. Rewards that aren't 0 or 1 are replayed as if they
        were; then p is on the safe side.

        Parameters
        ----------
        B
            At least 19, so that p can be 0.05.
        seed
            Of the replays.
        """
        study = self.access.study.id
        self.counts()  # what is overdue is noted
        material = self.look(lambda state, log: read_material(state, log, study))
        return fit_of(material, self.spec, B, seed)

    def days(self) -> list[Day]:
        """The study day by day, in UTC: what was shown and reported, and the average reward."""
        return self.access.compute(lambda state, now: state.traffic.days())

    def report_text(self) -> str:
        """What `report` writes."""
        return report_page(self.name, self.spec, self.best(tables=False), self.days())

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page for people who weren't there: one HTML file, which can be printed.

        It says what was tried, what won and by how much, the traffic over time, what the study
        has earned, what is assumed, and how to verify it.
        """
        text = self.report_text()
        with atomic.whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def plot(self) -> Figure:
        """A picture of `best`: each level's lift over the leader's, with its interval."""
        from rank1.plots import plot_best

        return plot_best(self.best(tables=False), self.name)

    def counts(self) -> dict[str, int]:
        """How many suggestions there are, and what became of them."""
        return self._settled(lambda state, now: state.counts())

    def _settled(self, function: Callable[[StudyState, float], T]) -> T:
        """Look at the study, once what is overdue is noted."""

        def is_overdue(state: StudyState, now: float) -> bool:
            return bool(state.overdue(now))

        if self.spec.reward_window is not None and self.access.compute(is_overdue):
            # Where the storage is read-only, the look shows what was noted so far.
            with contextlib.suppress(StorageError):
                self.access.transact(lambda work: None)
        return self.access.compute(function)

    def look(self, reader: Callable[[StudyState, Reader], T]) -> T:
        """What `reader(state, log)` returns, of a state that is up to date; nothing is written.

        The storage is being read until then: `access.compute` is for what takes long.
        """
        return self.access.look(reader)

    # The log

    def events(
        self,
        after: int | None = None,
        limit: int = 100,
        *,
        kinds: Sequence[str] = (),
        newest: bool = False,
    ) -> list[dict[str, Any]]:
        """Some events of the log as dicts, from the oldest on or from the newest back.

        Parameters
        ----------
        after
            The `seq` of the last event of the page before; default: from the first, or the newest.
        limit
            How many at most.
        kinds
            Names of kinds, such as "reported"; default: all.
        newest
            Whether to go from the newest event back.
        """
        checks.integer("limit", limit, 1)
        for kind in kinds:
            checks.one_of("kinds", kind, [each.name.lower() for each in Kind])
        chosen = [Kind[kind.upper()] for kind in kinds]

        def read(state: StudyState, log: Reader) -> list[dict[str, Any]]:
            study = self.access.study
            page = log.page(study.id, after, limit, kinds=chosen, newest=newest)
            return list(event_lines(study, state, log, page))

        return self.look(read)

    def lines(self, after: int = 0, limit: int = 1000) -> tuple[list[dict[str, Any]], int]:
        """Some lines of the export, and the `after` of the next ones, 0 if there are none."""

        def read(state: StudyState, log: Reader) -> tuple[list[dict[str, Any]], int]:
            study = self.access.study
            page = log.page(study.id, after, limit, kinds=EXPORTED)
            lines = list(page_lines(study, state, log, page))
            return lines, page[-1].seq if len(page) == limit else 0

        return self.look(read)

    def last_event(self) -> int:
        """The seq of the last event: it changes with everything that is stored."""
        return self.access.compute(lambda state, now: state.seq)

    # In and out

    def import_history(
        self, history: History, key: str | None = None, columns: Mapping[str, str] | None = None
    ) -> Imported:
        """Add rewards that are known from elsewhere; how many, and whether they were there already.

        A study that draws by shares isn't surer for them: they move its shares and averages only.

        Parameters
        ----------
        history
            A CSV, JSONL or Parquet file with a column for each side (row and column, if these are
            the sides) and one called reward, or successes and trials in its place, of which the
            others are failures; a column called count says how often a reward was seen. Or lines of
            the levels, in the order of the sides, and the reward. A line of a file without a
            reward, as the export has them, is skipped.
        key
            The same key is imported once. Default: the same history is.
        columns
            The file's own names of columns, as in `{"reward": "converted", "headline": "h"}`.
        """
        return import_history(self.access, history, key, columns)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write a line for each suggestion, as JSONL or Parquet; how many."""
        return self.look(lambda state, log: export_log(self.access.study, state, log, path))

    def replay(self, policy: Policy | str, seed: int = 1) -> Replayed:
        """How another policy fares on the rewards of the log, each arm's in their order."""
        study = self.access.study
        events = self.look(lambda state, log: log.read(study.id))
        return self.access.compute(
            lambda state, now: replay_log(state, self.spec, events, study, policy, seed)
        )

    def verify(self) -> Verified:
        """Recompute all from the log, and compare."""
        return verification.verify(self.access)

    def snapshot(self) -> bool:
        """Keep a snapshot, so that the study is opened sooner; whether the storage took it."""
        self.access.catch_up()
        return self.access.keep_snapshot()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole storage to a new file, while others write."""
        self.access.storage.backup(path)

    def close(self) -> None:
        """Keep a snapshot if much has happened since the last, and close the storage.

        A call after that opens the storage again.
        """
        self.access.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
