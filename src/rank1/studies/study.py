"""A live study: ask for an arm, show it, and report its reward when it arrives."""

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
from rank1.errors import InputError, Rank1Error, StorageError
from rank1.policies import Policy
from rank1.policies.base import has_counts
from rank1.studies import revising, suggestions, verification
from rank1.studies.best import best_of
from rank1.studies.drawing import shares_of
from rank1.studies.events import Event, Kind, check_text, data_text
from rank1.studies.export import EXPORTED, event_lines, export_log, page_lines, replay_log
from rank1.studies.fitting import StudyFit, fit_of, read_material
from rank1.studies.history import History, import_history
from rank1.studies.keys import key_used, under_key
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

#: The largest number of arms for which a notebook shows results; above it, only the totals.
MAX_SHOWN = 100_000


def _opened(storage: Place) -> Storage:
    return storage if isinstance(storage, Storage) else open_storage(storage)


class Study:
    """A live experiment on a grid of named levels, stored in a durable event log.

    Use `Study.create` or `Study.open` to get a study. Everything that has been acknowledged is
    stored. Several processes and threads can work on the same study. Ids make it safe to retry an
    ask or a tell.

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
        #: Runs transactions on the study; `rank1.studies.group_commit` shares them between callers.
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
            1 to 256 characters; must be unique within the storage.
        rows, columns
            The level names of two sides: 1 to 4096 for each, without duplicates. Policies that keep
            data for every arm allow at most 2²⁰ arms; `rank1elim` and `rank1elim_kl` allow more.
        goal
            "earn" uses UTS, which plays the arms that pay best. "find" draws the level of each side
            with known shares, bets against each level, drops levels that are refuted, and reports
            when it has found the best arm. "find" with a policy decides when to stop from the
            reward counts instead (`rank1.stopping`).
        policy
            A policy to use instead, or its name, such as `"linucb:confidence_scale=1/3"`. For a
            policy from another package, give the name of its entry point or `"module:Class"`.
        storage
            A file, `sqlite:///…`, `postgresql://…`, or an open storage.
        horizon
            The planned number of suggestions, for policies that need it; default: 1,000,000.
        reward_window
            How long to wait for a reward before it is overdue: seconds or a timedelta. Default: no
            limit.
        on_expiry
            What to do with a suggestion whose reward is overdue. "drop": undo its pull, as if the
            reward had been lost. "default": use `default_reward` as its reward. "wait": record the
            expiry and let the policy keep waiting. Rewards that arrive later are always stored.
        default_reward
            The reward to use with `on_expiry="default"`; default: the lowest reward.
        confidence
            The confidence the study needs to declare an arm the best.
        tolerance
            How far below the best arm the recommended arm may be, in units of the reward. For
            studies with a policy: see `rank1.stopping.verdict`.
        seed
            Seed for drawing suggestions; default: random.
        reward_range
            The lowest and the highest possible reward. Lifts compare rewards above the lowest: in
            the range (100, 200), 150 is a lift of 25% over 140, just as 50 is over 40.
        forgetting
            The half-life of what the policy has learned, in reports, for traffic that drifts. Only
            for policies whose state is counts and sums. Such a study has no stopping rule.
        sides
            1 to 16 sides with their level names, instead of rows and columns, as in
            `{"headline": ["A", "B"], "image": ["x", "y", "z"]}`.
        control
            The level of each side that you show today; lifts are relative to it. Leave out given
            sides, because their level comes with the visitor. A study that draws by shares reserves
            at least 5% of each side's traffic for the control until the study may stop, even after
            the control is refuted, so that the lift can be measured.
        floor
            The minimum share of each active level. It is at least 5% if a side is given, because a
            level may be the best in only one segment (less if a side has more than 10 levels). This
            option and all those below except `repeat` are for goal="find" without a policy.
        holdout
            The fraction of units that stay on the control for the whole study.
        min_lift
            The smallest lift that matters to you: 0.05 if you don't care about differences below
            5%. The study then stops sooner, with an arm whose level on each side is within this
            lift of the best. Like all lifts, it is relative to rewards above the lowest of
            `reward_range`.
        given
            Sides whose level comes with the visitor, such as a segment: see `ask`.
        new_levels
            What to do with an unknown level of a given side: "refuse" it (default) or "add" it.
        guardrails
            Additional metrics, in [0, 1], reported together with a reward, and how much worse than
            the control each may be: `{"unsubscribed": {"worse_by": 0.02}}`. The study drops levels
            that are shown to be worse than that.
        repeat
            "once": a unit counts once, by its first exposure, even if that exposure expired without
            a reward. "each": every visit counts, as if the visits of one person were independent.
            They aren't: with ten visits each, 56 of 200 studies stopped at a wrong arm.
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
                "repeat='each' treats visits of one unit as independent: with ten visits each, 56 "
                "of 200 studies stopped at a wrong arm where at most 10 should",
                UserWarning,
                stacklevel=2,
            )
        place = _opened(storage)
        return cls(StudyAccess(place, place.create(name, spec.text)))

    @classmethod
    def open(cls, name: str, storage: Place = "rank1.db") -> Self:
        """Open an existing study; raises UnknownStudyError if there is none with this name."""
        place = _opened(storage)
        with place.reading() as log:
            row = log.study(name)
        return cls(StudyAccess(place, row))

    @staticmethod
    def delete(name: str, storage: Place = "rank1.db", *, confirm: str) -> None:
        """Delete a study and its whole log permanently; `confirm` must repeat the name."""
        if confirm != name:
            hint = "a deleted study can't be restored"
            raise InputError("confirm", confirm, f"the name of the study, {name!r}", hint)
        place = _opened(storage)
        with place.reading() as log:
            study = log.study(name).id
        with place.transaction(study) as doing:
            doing.delete(study)

    # Properties

    @property
    def name(self) -> str:
        """The study's name."""
        return self.access.study.name

    @property
    def uid(self) -> str:
        """The prefix of its suggestions' ids."""
        return self.access.study.uid

    @property
    def spec(self) -> Spec:
        """The settings passed to `create`."""
        return self.access.spec

    @property
    def policy(self) -> Policy:
        """The policy that chooses the arms."""
        return self.access.spec.made_policy()

    @property
    def sides(self) -> dict[str, list[str]]:
        """The active levels, by side."""
        return self.access.compute(
            lambda state, now: {side: state.living_labels(side) for side in state.labels}
        )

    @property
    def rows(self) -> list[str]:
        """The active rows, if the study has two sides."""
        return self._two_sides()[0]

    @property
    def columns(self) -> list[str]:
        """The active columns, if the study has two sides."""
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
        """The number of times levels were added or retired."""
        return self.access.compute(lambda state, now: state.revision)

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self.access.storage.where!r}>"

    @notebook.never_fails
    def _repr_html_(self) -> str:
        """Show the results so far, without writing anything, not even expired rewards."""
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
        """Ask for the next arm to show, or with `count`, for a list of suggestions.

        Parameters
        ----------
        count
            How many suggestions to return, 1 to 100,000. Default: a single one, not a list.
        key
            An idempotency key. A request with the same key returns the same suggestions, so you can
            retry it safely.
        unit
            The visitor (or other unit) who will see the arm. While a unit's last suggestion is
            pending, the unit gets the same suggestion again, unless a level of it was retired or
            dropped; the key of such a request isn't stored, because the unit itself makes a retry
            safe. Asking with other levels of given sides raises ConflictError. After that, the unit
            gets a new suggestion with the same arm, as long as the arm is active. Only the unit's
            first exposure counts. In a study that draws by shares, a unit's levels are those that
            `rank1.assign` returns.
        data
            A JSON object of at most 4 KB, stored with each suggestion: you find it in the
            suggestion's `data` and in the export.
        given
            The level of each given side, such as `{"segment": "18-24"}`; the others are drawn.
        """
        whole = 1 if count is None else checks.integer("count", count, 1, suggestions.MAX_COUNT)
        made = self.access.transact(
            lambda work: suggestions.suggest(work, whole, key, unit, data, given)
        )
        return made[0] if count is None else made

    def tell(self, id: str, reward: float, guardrails: Mapping[str, float] | None = None) -> Report:
        """Report the reward of a suggestion, with its guardrails.

        A duplicate returns the same answer. A different reward for the same id, or different or
        additional guardrails, raises ConflictError and changes nothing. If there is something wrong
        with the id, this raises UnknownSuggestionError, OtherStudyError or CancelledError.
        """
        return self.tell_many([(id, reward, guardrails)])[0]

    def tell_many(self, reports: Mapping[str, float] | Iterable[Sequence[Any]]) -> list[Report]:
        """Report many rewards at once; if one of them raises an error, none is stored.

        Each item is an id, a reward and, optionally, guardrails.
        """
        given = reports.items() if isinstance(reports, Mapping) else reports
        pairs = checks.in_order("reports", given, checks.REPORT, 2)
        return self._all(lambda work: suggestions.take_reports(work, pairs))

    def _all(self, job: Callable[[UnitOfWork], Sequence[T | Rank1Error]]) -> list[T]:
        """Return the job's answers, or raise the first error among them and store nothing."""

        def work(doing: UnitOfWork) -> list[T]:
            found: list[T] = []
            for answer in job(doing):
                if isinstance(answer, Rank1Error):
                    raise answer
                found.append(answer)
            return found

        return self.access.transact(work)

    def cancel(self, id: str) -> None:
        """Record that a suggestion was never shown, so nothing is learned; retries are safe."""
        self.access.transact(lambda work: suggestions.cancel(work, id))

    # Assigning without asking

    def shares(self) -> dict[str, Any]:
        """Return the current version of the shares, from which `rank1.assign` draws levels.

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
                self.access.transact(lambda work: None)  # begins the next version
            except StorageError:  # the storage is read-only: keep the current version
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
        """Store an exposure whose levels the client drew, from a version of the shares.

        A record that doesn't fit the version is refused. A duplicate returns the same answer; a
        record that contradicts a stored one raises ConflictError.

        Parameters
        ----------
        unit
            The visitor (or other unit) who saw it. Each unit can be recorded once.
        version
            The version of the shares from which the levels were drawn.
        levels
            The level of each side.
        reward
            The reward; None if you will report it later with `reward`.
        guardrails
            Additional metrics. They require a reward in the same call.
        """
        answer = self.record_many([(unit, version, levels, reward, guardrails)])[0]
        if isinstance(answer, Rank1Error):
            raise answer
        return answer

    def record_many(
        self, records: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> list[Recorded | Rank1Error]:
        """Store many exposures; each is the arguments of `record` as a sequence or a dict.

        Returns an answer for each exposure, or the error that refused it; the others are stored.
        """
        self._needs_shares()
        given = checks.in_order("records", records, checks.RECORD, 3)
        return self.access.transact(lambda work: take_records(work, given))

    def reward(
        self, unit: str, reward: float, guardrails: Mapping[str, float] | None = None
    ) -> Report:
        """Report the reward and guardrails of a unit's exposure; duplicates work as in `tell`."""
        answer = self.reward_many([(unit, reward, guardrails)])[0]
        if isinstance(answer, Rank1Error):
            raise answer
        return answer

    def reward_many(
        self, rewards: Iterable[Sequence[Any] | Mapping[str, Any]]
    ) -> list[Report | Rank1Error]:
        """Store many rewards of units; each is the arguments of `reward` as a sequence or a dict.

        Returns an answer for each reward, or the error that refused it; the others are stored.
        """
        given = checks.in_order("rewards", rewards, checks.REWARD, 2)
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
        """Add and retire levels, by side, and return the number of the revision.

        A retired level is no longer suggested, but rewards of earlier pulls are still stored. If
        you add a retired name again, it resumes with its earlier data. Policies whose state is
        counts and sums keep everything they know about active arms; other policies start over.

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
                f"{self.spec.policy} starts over after a revision: its state isn't counts and sums",
                UserWarning,
                stacklevel=2,
            )
        return number

    def retire(self) -> None:
        """Close the study: it makes no more suggestions but still accepts reports."""

        def work(doing: UnitOfWork) -> None:
            doing.ahead = True
            doing.log.retire(doing.study.id)

        try:
            self.access.transact(work)
        finally:
            self.access.forget()

    def archive(self) -> None:
        """Hide the study from lists. It keeps making suggestions; to stop those, see `retire`."""
        self.access.transact(lambda work: work.log.archive(work.study.id))

    def unarchive(self) -> None:
        """Show the study in lists again."""
        self.access.transact(lambda work: work.log.archive(work.study.id, archived=False))

    def note(self, text: str, key: str | None = None) -> None:
        """Add a timestamped note to the log, such as "new prices today"; nothing else changes.

        With an idempotency key, a retry adds no second note.
        """
        data = data_text({"text": check_text("text", text)})

        def work(doing: UnitOfWork) -> None:
            before = under_key(doing, key, Kind.NOTED)
            if any(event.data != data for event in before):
                raise key_used(key)
            if not before:
                doing.append([Event(Kind.NOTED, data=data, key=key)])

        self.access.transact(work)

    def forget_unit(self, unit: str) -> int:
        """Remove a unit's name and its data from the log; return how many events contained it.

        This also removes the `data` of its suggestions and any keys that contain the name. Its
        exposures and rewards stay in the log, anonymously.
        """
        return self.access.transact(lambda work: work.log.forget_unit(work.study.id, unit))

    # Results

    def best(self, *, tables: bool = True) -> Best:
        """Return the results: the leader, intervals for arms and effects, whether to stop, and why.

        Parameters
        ----------
        tables
            Whether to include the tables of all arms. Leave them out for speed with millions of
            arms.
        """
        return self._settled(lambda state, now: best_of(state, self.spec, now, tables))

    def forecast(self, per_day: float | None = None, *, runs: int = 200, seed: int = 1) -> Forecast:
        """Estimate how many more rewards the study needs, by simulating its continuation.

        The answer has the 10%, 50% and 90% quantiles of the number of rewards until a verdict.

        Parameters
        ----------
        per_day
            Expected rewards per day, to get the answer in days as well.
        runs, seed
            The number of simulations, and their seed.
        """
        self._needs_shares()
        return self._settled(lambda state, now: forecast_of(state.as_of(now), per_day, runs, seed))

    def personalise(self, side: str, by: str) -> Personalised:
        """Test whether choosing a side's level by another side, such as a segment, pays off."""
        self._needs_shares()
        return self._settled(lambda state, now: personalise_of(state.as_of(now), side, by))

    def fit(self, B: int = 199, seed: int = 1) -> StudyFit:
        """Test whether the grid has rank one, with a p-value from B replays of the study.

        The replays use the log's own order of asks and reports (see `rank1.studies.order`), and p
        is corrected by the fast double bootstrap. Rewards other than 0 and 1 are replayed as if
        they were 0 or 1, which makes p conservative.

        Parameters
        ----------
        B
            The number of replays; at least 19, so that p can be 0.05.
        seed
            Seed of the replays.
        """
        study = self.access.study.id
        self.counts()  # records expired rewards first
        material = self.look(lambda state, log: read_material(state, log, study))
        return fit_of(material, self.spec, B, seed)

    def days(self) -> list[Day]:
        """Return what was shown and reported and the average reward, for each day in UTC."""
        return self.access.compute(lambda state, now: state.traffic.days())

    def report_text(self) -> str:
        """Return the HTML page that `report` writes."""
        return report_page(self.name, self.spec, self.best(tables=False), self.days())

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a report for readers outside the project: a single HTML file that prints well.

        It covers what was tried, what won and by how much, the traffic over time, what the study
        has earned, its assumptions, and how to verify it.
        """
        text = self.report_text()
        with atomic.whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def plot(self) -> Figure:
        """Plot the results of `best`: each level's lift over the leader's, with its interval."""
        from rank1.plots import plot_best

        return plot_best(self.best(tables=False), self.name)

    def counts(self) -> dict[str, int]:
        """Return the number of suggestions, in total and by outcome."""
        return self._settled(lambda state, now: state.counts())

    def _settled(self, function: Callable[[StudyState, float], T]) -> T:
        """Record expired rewards and due versions, then compute something from the state."""

        def is_overdue(state: StudyState, now: float) -> bool:
            late = bool(state.overdue(now))
            return late or (self.spec.by_window and is_due(state.live, state.book, now))

        if self.spec.reward_window is not None and self.access.compute(is_overdue):
            # If the storage is read-only, show the state without the latest expiries.
            with contextlib.suppress(StorageError):
                self.access.transact(lambda work: None)
        return self.access.compute(function)

    def look(self, reader: Callable[[StudyState, Reader], T]) -> T:
        """Return what `reader(state, log)` returns for an up-to-date state; nothing is written.

        The read transaction stays open meanwhile: use `access.compute` for slow computations.
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
        """Return a page of events from the log as dicts, oldest or newest first.

        Parameters
        ----------
        after
            The `seq` of the last event on the previous page; default: start with the first page.
        limit
            The maximum number of events.
        kinds
            The kinds to return, such as "reported"; default: all.
        newest
            Whether to start at the newest event and go back.
        """
        checks.integer("limit", limit, 1)
        after = None if after is None else checks.integer("after", after, 0)
        for kind in kinds:
            checks.one_of("kinds", kind, [each.name.lower() for each in Kind])
        chosen = [Kind[kind.upper()] for kind in kinds]

        def read(state: StudyState, log: Reader) -> list[dict[str, Any]]:
            study = self.access.study
            page = log.page(study.id, after, limit, kinds=chosen, newest=newest)
            return list(event_lines(study, state, log, page))

        return self.look(read)

    def lines(self, after: int = 0, limit: int = 1000) -> tuple[list[dict[str, Any]], int]:
        """Return a page of the export, and the `after` of the next page (0 if it was the last)."""

        def read(state: StudyState, log: Reader) -> tuple[list[dict[str, Any]], int]:
            study = self.access.study
            page = log.page(study.id, after, limit, kinds=EXPORTED)
            lines = list(page_lines(study, state, log, page))
            return lines, page[-1].seq if len(page) == limit else 0

        return self.look(read)

    def last_event(self) -> int:
        """Return the seq of the last event, which changes whenever something is stored."""
        return self.access.compute(lambda state, now: state.seq)

    # Import, export and maintenance

    def import_history(
        self, history: History, key: str | None = None, columns: Mapping[str, str] | None = None
    ) -> Imported:
        """Import rewards from elsewhere; return how many, and whether they were already imported.

        In a study that draws by shares, they affect only the shares and averages, not the verdict.

        Parameters
        ----------
        history
            A CSV, JSONL or Parquet file with a column for each side (row and column, if those are
            the sides) and a column called reward. In place of reward, it can have successes and
            trials; the trials that aren't successes are failures. An optional column called count
            says how often a reward occurred. Lines without a reward, which the export can contain,
            are skipped. Or pass an iterable of lines: the levels in the order of the sides, then
            the reward, or a dict with the columns of such a file.
        key
            An idempotency key: the same key is imported only once. Default: derived from the
            history, so that the same history is imported only once.
        columns
            The file's own column names, as in `{"reward": "converted", "headline": "h"}`.
        """
        return import_history(self.access, history, key, columns)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write a line for each suggestion and imported reward, as JSONL or Parquet; count them."""
        return self.look(lambda state, log: export_log(self.access.study, state, log, path))

    def replay(self, policy: Policy | str, seed: int = 1) -> Replayed:
        """Replay another policy on the log's rewards, taking each arm's rewards in order."""
        study = self.access.study
        events = self.look(lambda state, log: log.read(study.id))
        return self.access.compute(
            lambda state, now: replay_log(state, self.spec, events, study, policy, seed)
        )

    def verify(self) -> Verified:
        """Recompute everything from the log, and compare it with what is stored."""
        return verification.verify(self.access)

    def snapshot(self) -> bool:
        """Store a snapshot to make opening faster; return whether the storage accepted it."""
        self.access.catch_up()
        return self.access.keep_snapshot()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole storage to a new file; other processes can keep writing."""
        self.access.storage.backup(path)

    def close(self) -> None:
        """Close the storage, after storing a snapshot if much has changed since the last one.

        Calling a method after that reopens the storage.
        """
        self.access.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
