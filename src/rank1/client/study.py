"""A study on a service."""

from __future__ import annotations

import math
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, overload
from urllib.parse import quote

from rank1 import atomic, checks
from rank1.client.assigning import Assigning
from rank1.client.transport import Transport, error_of, renamed, report_body, without_none
from rank1.documents import (
    Best,
    Forecast,
    Imported,
    Personalised,
    Replayed,
    Report,
    Suggestion,
    Verified,
    read_document,
)
from rank1.errors import EndedError, FileError, InputError, InputTypeError, Rank1Error, StorageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rank1.studies.history import History

__all__ = ["RemoteFit", "RemoteStudy"]


def study_path(name: str) -> str:
    """Return the address of a study."""
    return f"/v1/studies/{quote(name, safe='')}"


#: A level for each side, by the side's name; or a row and a column.
Fallback = Mapping[str, str] | tuple[str, str]
#: Seconds during which calls with a fallback send no request after the service didn't answer.
SILENCE = 1.0
#: Reports or rewards in one request.
PART = 5000
#: The number of a line in an error about a history, such as "line 3 of the history".
LINE = re.compile(r"(?<=\bline )\d+(?= of the history$| \()")


@dataclass(frozen=True)
class RemoteFit:
    """The result of `RemoteStudy.fit`; see `StudyFit`."""

    #: The living levels, by side.
    sides: dict[str, list[str]]
    #: Nested lists with one dimension for each side.
    means: list[Any]
    deviance: float
    degrees_of_freedom: int
    explained: float | None
    p_value: float | None
    repetitions: int
    #: For each side, the factors of its levels relative to the largest.
    effects: dict[str, list[float]]
    deviating: list[dict[str, Any]]
    advice: str
    leader: list[str] | None = None
    power: float | None = None
    hardly_tried: list[list[str]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return dict(vars(self))


class RemoteStudy(Assigning):
    """A study on a service, made by `Client.create` or `Client.open`; see `Study`."""

    def __init__(self, client: Transport, name: str) -> None:
        self._client, self.name = client, name
        self._path = study_path(name)

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.name!r} of {self._client!r}>"

    def about(self) -> dict[str, Any]:
        """Get the study's settings, sides and counts."""
        return self._client.get(self._path)

    @property
    def sides(self) -> dict[str, list[str]]:
        """The living levels, by side."""
        return dict(self.about()["sides"])

    @property
    def rows(self) -> list[str]:
        """The levels of the first of two sides."""
        return list(self.about()["rows"])

    @property
    def columns(self) -> list[str]:
        """The levels of the second of two sides."""
        return list(self.about()["columns"])

    @property
    def revision(self) -> int:
        """The number of times that levels were added or retired."""
        return int(self.about()["revision"])

    def counts(self) -> dict[str, int]:
        """Count the suggestions, in total and in each state."""
        return dict(self.about()["totals"])

    # Asking and telling

    @overload
    def ask(
        self,
        count: None = None,
        key: str | None = None,
        unit: str | None = None,
        data: Mapping[str, Any] | None = None,
        *,
        given: Mapping[str, str] | None = None,
        fallback: Fallback | None = None,
        timeout: float | None = None,
    ) -> Suggestion: ...

    @overload
    def ask(
        self,
        count: int,
        key: str | None = None,
        unit: str | None = None,
        data: Mapping[str, Any] | None = None,
        *,
        given: Mapping[str, str] | None = None,
        fallback: Fallback | None = None,
        timeout: float | None = None,
    ) -> list[Suggestion]: ...

    def ask(
        self,
        count: int | None = None,
        key: str | None = None,
        unit: str | None = None,
        data: Mapping[str, Any] | None = None,
        *,
        given: Mapping[str, str] | None = None,
        fallback: Fallback | None = None,
        timeout: float | None = None,
    ) -> Suggestion | list[Suggestion]:
        """Ask for the next arm to show; with a `count`, for a list of that many.

        Parameters
        ----------
        count, key, unit, data, given
            See `Study.ask`.
        fallback
            What to show if the service doesn't answer in time, or the study was retired: a row and
            a column, or a level for each side by its name. The suggestion's id is "", which `tell`
            and `cancel` ignore. For a second after a failure, calls return the fallback without
            sending a request.
        timeout
            Seconds for this call; default: the client's timeout, or 0.25 if there is a fallback.
        """
        client = self._client
        if count is not None:
            count = checks.integer("count", count, 1)
        if timeout is not None:
            timeout = checks.number("timeout", timeout, 0, above=True)
        if fallback is not None:
            levels = _levels(fallback)
            own = None if data is None else dict(data)
            instead = Suggestion("", levels, time.time(), None, unit, key, own)
            stand_in = instead if count is None else [instead] * count
            if time.monotonic() < client.silent_until:
                return stand_in
            timeout = 0.25 if timeout is None else timeout
        if key is None and unit is None:
            key = secrets.token_hex(16)  # so that a retry gets the same suggestions
        try:
            if unit is not None and count not in (None, 1):
                raise InputError("count", count, "1 if a unit is given")
            if count is None or unit is not None:
                body = without_none(unit=unit, data=data, given=given)
                one = read_document(
                    Suggestion, client.post(f"{self._path}/ask", body, key, timeout)
                )
                return one if count is None else [one]
            body = without_none(count=count, data=data, given=given)
            many = client.post(f"{self._path}/ask/batch", body, key, timeout)["results"]
            return [read_document(Suggestion, each["suggestion"]) for each in many]
        except (StorageError, EndedError) as error:
            if fallback is None:
                raise
            if isinstance(error, StorageError):
                client.silent_until = time.monotonic() + SILENCE
            return stand_in

    def tell(
        self, id: str, reward: float, guardrails: Mapping[str, float] | None = None
    ) -> Report | None:
        """Report the reward of a suggestion; returns None for a fallback's suggestion."""
        if id == "":
            return None
        body = without_none(**report_body(checks.REPORT, (id, reward, guardrails)))
        return read_document(Report, self._client.post(f"{self._path}/tell", body))

    def tell_many(
        self, reports: Mapping[str, float] | Iterable[Sequence[Any]]
    ) -> list[Report | Rank1Error | None]:
        """Report many rewards; returns a report, or the error, for each, and None for a fallback's.

        Each item is an id, a reward and optionally guardrails. Unlike `Study.tell_many`, which
        stores all or none, this stores all the valid ones.
        """
        given = reports.items() if isinstance(reports, Mapping) else reports
        pairs = checks.in_order("reports", given, checks.REPORT, 2)
        places = [k for k, (id, *_) in enumerate(pairs) if id != ""]
        answers: list[Report | Rank1Error | None] = [None] * len(pairs)
        for begin in range(0, len(places), PART):
            part = places[begin : begin + PART]
            some = [report_body(checks.REPORT, pairs[k]) for k in part]
            found = self._client.post(f"{self._path}/tell/batch", {"reports": some})
            for k, each in zip(part, found["results"], strict=True):
                told = each.get("report")
                answers[k] = (
                    read_document(Report, told)
                    if told
                    else error_of(each["status"], each["problem"])
                )
        return answers

    def cancel(self, id: str) -> None:
        """Cancel a suggestion that was never shown, so that it doesn't count."""
        if id != "":
            self._client.post(f"{self._path}/cancel", {"id": id})

    # The grid

    def revise(
        self,
        add: Mapping[str, Iterable[str]] | None = None,
        retire: Mapping[str, Iterable[str]] | None = None,
        **two_sided: Iterable[str],
    ) -> int:
        """Add and retire levels; returns the number of the revision. See `Study.revise`."""
        body, key = without_none(add=add, retire=retire, **two_sided), secrets.token_hex(16)
        return int(self._client.post(f"{self._path}/revisions", body, key)["revision"])

    def retire(self) -> None:
        """Close the study: it gives no more suggestions, but still accepts reports."""
        self._client.post(f"{self._path}/retire", {})

    def archive(self) -> None:
        """Hide the study from lists; see `Study.archive`. Requires an admin's token."""
        self._client.post(f"{self._path}/archive", {})

    def unarchive(self) -> None:
        """Show the study in lists again. Requires an admin's token."""
        self._client.post(f"{self._path}/unarchive", {})

    def note(self, text: str, key: str | None = None) -> None:
        """Add a note to the log; see `Study.note`."""
        key = secrets.token_hex(16) if key is None else key
        self._client.post(f"{self._path}/notes", {"text": text}, key)

    def forget_unit(self, unit: str) -> int:
        """Remove a unit's name; see `Study.forget_unit`. Requires an admin's token."""
        return int(self._client.post(f"{self._path}/forget", {"unit": unit})["events"])

    # Results

    def best(self) -> Best:
        """Get the leader, intervals for arms and effects, and whether the study may stop."""
        return Best.from_dict(self._client.get(f"{self._path}/best"))

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a report for readers who don't know the study; see `Study.report`."""
        with atomic.whole_file(path) as temporary, temporary.open("wb") as file:
            file.writelines(self._client.lines(f"{self._path}/report"))

    def plot(self) -> Figure:
        """Plot `best`: the lift of each level over the leader's, with its interval."""
        from rank1.plots import plot_best

        return plot_best(self.best(), self.name)

    def forecast(self, per_day: float | None = None, timeout: float = 600.0) -> Forecast:
        """Forecast how many more rewards a verdict needs; see `Study.forecast`."""
        found = self._client.get(f"{self._path}/forecast", timeout, per_day=per_day)

        def span(values: Mapping[str, float | None]) -> dict[str, float]:
            parts = {"10%": "low", "50%": "median", "90%": "high"}
            ends = {part: values[name] for part, name in parts.items()}
            return {part: math.inf if end is None else end for part, end in ends.items()}

        more, days = span(found["visitors"]), found["days"] and span(found["days"])
        return read_document(Forecast, {**found, "more": more, "per_day": per_day, "days": days})

    def fit(self, B: int = 199, seed: int = 1, timeout: float = 600.0) -> RemoteFit:
        """Test whether the grid is of rank one; the replays may take a while."""
        with renamed(repetitions="B"):
            found = self._client.get(f"{self._path}/fit", timeout, repetitions=B, seed=seed)
        return read_document(RemoteFit, found)

    def personalise(self, side: str, by: str, timeout: float = 600.0) -> Personalised:
        """Test whether it pays to choose a side's level by another side's, such as a segment."""
        found = self._client.get(f"{self._path}/personalise", timeout, side=side, by=by)
        return read_document(Personalised, found)

    def history(self, after: int | None = None, limit: int = 100, **query: Any) -> dict[str, Any]:
        """Get a page of the log: its `events`, and `next`, which continues with the next page."""
        return self._client.get(f"{self._path}/history", after=after, limit=limit, **query)

    def events(
        self,
        after: int | None = None,
        limit: int = 100,
        *,
        kinds: Sequence[str] = (),
        newest: bool = False,
    ) -> list[dict[str, Any]]:
        """Get up to 1,000 events of the log as dicts; see `Study.events`."""
        with renamed(kind="kinds"):
            page = self.history(after, limit, kind=list(kinds) or None, newest=newest)
        return list(page["events"])

    def import_history(
        self, history: History, key: str | None = None, columns: Mapping[str, str] | None = None
    ) -> Imported:
        """Import up to 10,000 lines of rewards from elsewhere; see `Study.import_history`."""
        if not isinstance(history, str | os.PathLike):
            if columns:
                expected = "None if rows are given, which have no column names"
                raise InputError("columns", columns, expected)
            return self._import(history, key, 0)
        from rank1.studies.history import history_lines

        sides, skipped = list(self.sides), 0
        told: dict[int, dict[str, Any]] = {}
        for line in history_lines(history, sides, columns):
            if line.trials is not None:
                more = {"successes": line.reward, "trials": line.trials}
            elif line.reward is not None:
                more = {"reward": line.reward, "count": line.count}
            else:
                skipped += 1
                continue
            more |= {} if line.id is None else {"id": line.id}
            told[line.number] = {**dict(zip(sides, line.labels, strict=True)), **more}
        try:
            return self._import(list(told.values()), key, skipped)
        except (InputError, InputTypeError) as error:  # it numbers the lines of the request
            own = dict(enumerate(told, 1))
            error.context, error.hint = (
                text and LINE.sub(lambda found: str(own.get(int(found[0]), found[0])), text)
                for text in (error.context, error.hint)
            )
            raise

    def _import(self, rewards: Any, key: str | None, skipped: int) -> Imported:
        with renamed(rewards="history"):
            found = self._client.post(f"{self._path}/imports", {"rewards": rewards}, key)
        return read_document(Imported, {**found, "skipped": skipped})

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write a line for each suggestion, as JSONL or CSV; returns the number of lines."""
        format = os.fspath(path).rpartition(".")[2]
        if format not in ("jsonl", "csv"):
            raise FileError(f"{os.fspath(path)!r} must end with .jsonl or .csv", where=str(path))
        lines = -1 if format == "csv" else 0  # the header doesn't count
        with atomic.whole_file(path) as temporary, temporary.open("wb") as file:
            for line in self._client.lines(f"{self._path}/export?format={format}"):
                file.write(line)
                lines += 1
        return lines

    def replay(self, policy: str, seed: int = 1, timeout: float = 600.0) -> Replayed:
        """Replay another policy on the logged rewards."""
        found = self._client.get(f"{self._path}/replay", timeout, policy=policy, seed=seed)
        for name in ("best", "exhausted"):
            found[name] = found.get(name) and tuple(found[name])
        return read_document(Replayed, found)

    def verify(self, timeout: float = 600.0) -> Verified:
        """Recompute the study from its log and compare the results. Requires an admin's token."""
        return read_document(Verified, self._client.get(f"{self._path}/verification", timeout))

    def close(self) -> None:
        """Close this thread's connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _levels(fallback: Any) -> dict[str, str]:
    """Return the level of each side, from a mapping or from a row and a column."""
    if isinstance(fallback, Sequence) and not isinstance(fallback, str) and len(fallback) == 2:
        fallback = dict(zip(("row", "column"), fallback, strict=True))
    texts = isinstance(fallback, Mapping) and [*fallback.keys(), *fallback.values()]
    if not texts or not all(isinstance(text, str) for text in texts):
        asked = "a row and a column, or a level of each side by its name"
        raise InputTypeError("fallback", fallback, asked)
    return dict(fallback)
