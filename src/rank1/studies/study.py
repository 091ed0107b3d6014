"""A live study: its results and its log. `running` has what creates and changes it."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rank1 import atomic, checks, notebook
from rank1.documents import Best, Forecast, Personalised, Replayed, Verified
from rank1.errors import StorageError
from rank1.policies import Policy
from rank1.studies import verification
from rank1.studies.best import best_of
from rank1.studies.events import Kind
from rank1.studies.export import EXPORTED, event_lines, export_log, page_lines, replay_log
from rank1.studies.fitting import StudyFit, fit_of, read_material
from rank1.studies.outlook import forecast_of, personalise_of
from rank1.studies.planning import is_due
from rank1.studies.report import report_page
from rank1.studies.running import RunningStudy
from rank1.studies.state import StudyState
from rank1.studies.storage import Reader
from rank1.studies.traffic import Day

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Study"]

T = TypeVar("T")

#: The largest number of arms for which a notebook shows results; above it, only the totals.
MAX_SHOWN = 100_000


class Study(RunningStudy):
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

    # Export, replay and verification

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
