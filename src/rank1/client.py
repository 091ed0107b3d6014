"""Studies of a service, with the methods that a `Study` has."""

from __future__ import annotations

import datetime
import http.client
import json
import os
import random
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, overload
from urllib.parse import quote, urlencode, urlsplit

import numpy as np

from rank1 import atomic, checks, errors
from rank1.errors import (
    BackendError,
    ConflictError,
    FileError,
    InputError,
    Rank1Error,
    StorageError,
)
from rank1.studies import Best, Replayed, Report, Suggestion, Verified
from rank1.studies.history import History, _rows

__all__ = ["Client", "RemoteFit", "RemoteStudy"]

#: Answers after which the same request may do better.
AGAIN = (408, 429, 500, 502, 503, 504)
#: Seconds before the second try, at most; doubled with each.
FIRST_PAUSE = 0.05
#: Seconds for which a service that didn't answer isn't asked, where there is a fallback.
SILENCE = 1.0
#: Reports or rewards in one request.
PART = 5000

_CLASSES = {
    "urn:rank1:problem:unknown-study": errors.UnknownStudyError,
    "urn:rank1:problem:unknown-suggestion": errors.UnknownSuggestionError,
    "urn:rank1:problem:other-study": errors.OtherStudyError,
    "urn:rank1:problem:study-exists": errors.StudyExistsError,
    "urn:rank1:problem:cancelled": errors.CancelledError,
    "urn:rank1:problem:conflict": ConflictError,
    "urn:rank1:problem:input-type": errors.InputTypeError,
    "urn:rank1:problem:input": InputError,
}


def _error(status: int, problem: Any) -> Rank1Error:
    """The error that the service met, as its own class."""
    fields = problem if isinstance(problem, dict) else {}
    words = str(fields.get("detail", f"the service answered {status}"))
    kind = _CLASSES.get(str(fields.get("type")), StorageError if status >= 500 else BackendError)
    if kind is BackendError and fields.get("remedy"):
        words += f"; {fields['remedy']}"
    return kind(words)


class Client:
    """A service that `rank1 serve` runs.

    Requests are tried again where that is safe, with pauses that grow and are random: ids and keys
    make sure that nothing counts twice. Threads may share a client.

    Parameters
    ----------
    url
        Of the service, as in "http://127.0.0.1:8000".
    token
        As `rank1 serve token create` printed it.
    timeout
        Seconds that a call may take in all, with every try and pause.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", "r1_…")  # doctest: +SKIP
    >>> study = client.open("spring")  # doctest: +SKIP
    >>> shown = study.ask(unit="visitor 7", fallback=("18-24", "email"))  # doctest: +SKIP
    >>> study.tell(shown.id, reward=1.0)  # doctest: +SKIP
    """

    def __init__(self, url: str, token: str, timeout: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"url must be http://… or https://…, got {checks.shown(url)}")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise InputError("token must be the text that `rank1 serve token create` printed")
        self._https = parts.scheme == "https"
        self._place = (parts.hostname, parts.port or (443 if self._https else 80))
        self._path = parts.path.rstrip("/")
        self._token = token
        self._timeout = checks.number("timeout", timeout, 0, 1e6, above=True)
        self._local = threading.local()
        self._silent_until = 0.0

    def __repr__(self) -> str:
        return f"<Client of {self._place[0]}:{self._place[1]}>"

    def studies(self) -> list[str]:
        """The names of the studies that the token is for."""
        return [each["name"] for each in self._get("/v1/studies")["studies"]]

    def create(
        self, name: str, rows: Sequence[str], columns: Sequence[str], **settings: Any
    ) -> RemoteStudy:
        """A new study; see `Study.create` for the settings. The token must be an admin's."""
        window = settings.get("reward_window")
        if isinstance(window, datetime.timedelta):
            settings["reward_window"] = window.total_seconds()
        body = {"name": name, "rows": list(rows), "columns": list(columns), **settings}
        self._post("/v1/studies", body, key=secrets.token_hex(16))
        return RemoteStudy(self, name)

    def open(self, name: str) -> RemoteStudy:
        """A study that is there; UnknownStudyError if it isn't."""
        study = RemoteStudy(self, name)
        study._about()
        return study

    def close(self) -> None:
        """Close this thread's connection."""
        link = self._local.__dict__.pop("link", None)
        if link is not None:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Requests

    def _get(self, path: str, timeout: float | None = None, **query: Any) -> Any:
        asked = {name: value for name, value in query.items() if value is not None}
        return self._call(
            "GET", path + (f"?{urlencode(asked)}" if asked else ""), None, {}, timeout
        )

    def _post(
        self, path: str, body: Any, key: str | None = None, timeout: float | None = None
    ) -> Any:
        headers = {"Content-Type": "application/json"}
        if key is not None:
            try:
                headers["Idempotency-Key"] = checked_key(key)
            except UnicodeEncodeError:
                raise InputError(f"key must be Latin letters, got {checks.shown(key)}") from None
        try:
            data = json.dumps(body, allow_nan=False).encode()
        except ValueError:
            raise InputError("rewards and settings must be finite numbers") from None
        return self._call("POST", path, data, headers, timeout)

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        timeout: float | None,
    ) -> Any:
        """The JSON of an answer. What failed on its way is sent again, until time is up."""
        end = time.monotonic() + (self._timeout if timeout is None else timeout)
        pause = FIRST_PAUSE
        while True:
            left = max(0.001, end - time.monotonic())
            try:
                status, after, data = self._once(method, path, body, headers, left)
                if status < 300:
                    return json.loads(data) if data else None
                failure = _error(status, _json(data))
                if status not in AGAIN:
                    raise failure
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, Rank1Error):
                    raise
                self.close()
                host, port = self._place
                after, failure = 0.0, StorageError(f"no answer from {host}:{port}: {error!r}")
            wait = max(after, random.uniform(0, pause))
            if time.monotonic() + wait >= end:
                raise failure
            time.sleep(wait)
            pause *= 2

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float
    ) -> tuple[int, float, bytes]:
        """Status, seconds to wait before another try, and the body."""
        link = self._link(timeout)
        link.request(method, self._path + path, body, {**self._headers(), **headers})
        answer = link.getresponse()
        data = answer.read()
        wait = answer.headers.get("Retry-After", "")
        return answer.status, float(wait) if wait.isdigit() else 0.0, data

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _link(self, timeout: float) -> http.client.HTTPConnection:
        """This thread's connection."""
        link: http.client.HTTPConnection | None = getattr(self._local, "link", None)
        if link is None:
            kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
            link = self._local.link = kind(*self._place, timeout=timeout)
        link.timeout = timeout
        if link.sock is not None:
            link.sock.settimeout(timeout)
        return link

    def _lines(self, path: str) -> Iterable[bytes]:
        """The lines of a stream, on a connection of its own."""
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        link = kind(*self._place, timeout=self._timeout)
        try:
            link.request("GET", self._path + path, headers=self._headers())
            answer = link.getresponse()
            if answer.status >= 300:
                raise _error(answer.status, _json(answer.read()))
            yield from answer
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, Rank1Error):
                raise
            raise StorageError(f"the stream broke off: {error!r}") from None
        finally:
            link.close()


def checked_key(key: str) -> str:
    """A key that can be sent in a header."""
    if not isinstance(key, str) or not key.isprintable() or not key.strip() == key:
        raise InputError(f"key must be printable text, got {checks.shown(key)}")
    key.encode("latin-1")
    return key


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


@dataclass(frozen=True)
class RemoteFit:
    """What `RemoteStudy.fit` returns; see `StudyFit`."""

    rows: list[str]
    columns: list[str]
    means: list[list[float]]
    deviance: float
    degrees_of_freedom: int
    explained: float | None
    p_value: float | None
    repetitions: int
    row_effects: list[float]
    column_effects: list[float]
    deviating: list[dict[str, Any]]
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return dict(vars(self))


class RemoteStudy:
    """A study of a service; made by `Client.create` or `Client.open`. See `Study`."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name
        self._path = f"/v1/studies/{quote(name, safe='')}"

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.name!r} of {self._client!r}>"

    def _about(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client._get(self._path)
        return found

    @property
    def rows(self) -> list[str]:
        """The rows that live."""
        return list(self._about()["rows"])

    @property
    def columns(self) -> list[str]:
        """The columns that live."""
        return list(self._about()["columns"])

    @property
    def revision(self) -> int:
        """How often rows or columns were added or retired."""
        return int(self._about()["revision"])

    def totals(self) -> dict[str, int]:
        """How many suggestions there are, and what became of them."""
        return dict(self._about()["totals"])

    # Asking and telling

    @overload
    def ask(
        self,
        count: None = None,
        key: str | None = None,
        unit: str | None = None,
        *,
        fallback: tuple[str, str] | None = None,
        timeout: float | None = None,
    ) -> Suggestion: ...

    @overload
    def ask(
        self,
        count: int,
        key: str | None = None,
        unit: str | None = None,
        *,
        fallback: tuple[str, str] | None = None,
        timeout: float | None = None,
    ) -> list[Suggestion]: ...

    def ask(
        self,
        count: int | None = None,
        key: str | None = None,
        unit: str | None = None,
        *,
        fallback: tuple[str, str] | None = None,
        timeout: float | None = None,
    ) -> Suggestion | list[Suggestion]:
        """The next pair to show; with a `count`, a list of so many.

        Parameters
        ----------
        count, key, unit
            See `Study.ask`.
        fallback
            A pair to be shown when the service doesn't answer in time; its suggestion has the id
            "", and `tell` and `cancel` pass over that. After a failure the service isn't asked
            for a second, so that nobody waits for one that is down.
        timeout
            Seconds, for this call; a quarter of one where there is a fallback, unless told.
        """
        client = self._client
        if fallback is not None:
            row, column = fallback
            many = [Suggestion("", row, column, time.time(), None, unit, key)] * (count or 1)
            if time.monotonic() < client._silent_until:
                return many[0] if count is None else many
            timeout = 0.25 if timeout is None else timeout
        if key is None and unit is None:
            key = secrets.token_hex(16)  # so that a second try gives the same suggestions
        try:
            if count is None:
                return _suggestion(client._post(f"{self._path}/ask", {"unit": unit}, key, timeout))
            if unit is not None:
                raise InputError(f"count must be None where a unit is given, got {count}")
            body = {"count": count}
            given = client._post(f"{self._path}/ask/batch", body, key, timeout)["results"]
            return [_suggestion(each["suggestion"]) for each in given]
        except StorageError:
            if fallback is None:
                raise
            client._silent_until = time.monotonic() + SILENCE
            return many[0] if count is None else many

    def tell(self, id: str, reward: float) -> Report | None:
        """The reward of a suggestion has come in; None for one of a fallback."""
        if id == "":
            return None
        return Report(**self._client._post(f"{self._path}/tell", {"id": id, "reward": reward}))

    def tell_many(
        self, reports: Mapping[str, float] | Iterable[tuple[str, float]]
    ) -> list[Report | Rank1Error | None]:
        """Many rewards at once; what is wrong with one is in its place, None for a fallback's.

        Unlike `Study.tell_many`, which stores all or none, this stores all the others.
        """
        pairs = list(reports.items() if isinstance(reports, Mapping) else reports)
        places = [k for k, (id, _) in enumerate(pairs) if id != ""]
        answers: list[Report | Rank1Error | None] = [None] * len(pairs)
        for begin in range(0, len(places), PART):
            part = places[begin : begin + PART]
            some = [{"id": pairs[k][0], "reward": pairs[k][1]} for k in part]
            found = self._client._post(f"{self._path}/tell/batch", {"reports": some})
            for k, each in zip(part, found["results"], strict=True):
                told = each.get("report")
                answers[k] = Report(**told) if told else _error(each["status"], each["problem"])
        return answers

    def cancel(self, id: str) -> None:
        """A suggestion was never shown: it teaches nothing."""
        if id != "":
            self._client._post(f"{self._path}/cancel", {"id": id})

    # The grid

    def revise(
        self,
        *,
        add_rows: Iterable[str] = (),
        retire_rows: Iterable[str] = (),
        add_columns: Iterable[str] = (),
        retire_columns: Iterable[str] = (),
    ) -> int:
        """Add and retire rows and columns; the number of the revision."""
        body = {
            "add_rows": list(add_rows), "retire_rows": list(retire_rows),
            "add_columns": list(add_columns), "retire_columns": list(retire_columns),
        }  # fmt: skip
        key = secrets.token_hex(16)
        return int(self._client._post(f"{self._path}/revisions", body, key)["revision"])

    def retire(self) -> None:
        """Close the study: it gives no suggestions any more, and still takes reports."""
        self._client._post(f"{self._path}/retire", {})

    # What was found

    def best(self) -> Best:
        """The leader, intervals for pairs and effects, and whether one may stop, and why."""
        found = self._client._get(f"{self._path}/best")
        for name, kind in Best.__annotations__.items():
            if "Floats" in str(kind):
                found[name] = np.array(found[name], np.float64)
            elif "NDArray" in str(kind):
                found[name] = np.array(found[name], bool if "bool" in str(kind) else np.int64)
            elif kind == "float" and found[name] is None:
                found[name] = float("nan")
        found["leader"] = found["leader"] and tuple(found["leader"])
        found["recommended"] = tuple(found["recommended"])
        return Best(**found)

    def fit(self, B: int = 199, seed: int = 1, timeout: float = 600.0) -> RemoteFit:
        """Is the grid of rank one? The replays may take a while: `timeout` is in seconds."""
        found = self._client._get(f"{self._path}/fit", timeout, repetitions=B, seed=seed)
        return RemoteFit(**found)

    def history(self, after: int | None = None, limit: int = 100, **query: Any) -> dict[str, Any]:
        """A page of the log: `events`, and `next` for the page after it."""
        found: dict[str, Any] = self._client._get(
            f"{self._path}/history", after=after, limit=limit, **query
        )
        return found

    def import_history(self, history: History, key: str | None = None) -> int:
        """Add rewards that are known from elsewhere; how many. At most 10,000 at a time."""
        rewards = [list(each) for each in _rows(history)]
        found = self._client._post(f"{self._path}/imports", {"rewards": rewards}, key)
        return int(found["rewards"])

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write a line for each suggestion, as JSONL or CSV; how many."""
        format = os.fspath(path).rpartition(".")[2]
        if format not in ("jsonl", "csv"):
            raise FileError(f"{os.fspath(path)!r} must end with .jsonl or .csv")
        lines = -1 if format == "csv" else 0  # its head
        with atomic.whole_file(path) as temporary, temporary.open("wb") as file:
            for line in self._client._lines(f"{self._path}/export?format={format}"):
                file.write(line)
                lines += 1
        return lines

    def replay(self, policy: str, seed: int = 1, timeout: float = 600.0) -> Replayed:
        """How another policy fares on the rewards of the log."""
        found = self._client._get(f"{self._path}/replay", timeout, policy=policy, seed=seed)
        found["best"] = tuple(found["best"])
        found["exhausted"] = found["exhausted"] and tuple(found["exhausted"])
        return Replayed(**found)

    def verify(self, timeout: float = 600.0) -> Verified:
        """Recompute all from the log, and compare. The token must be an admin's."""
        return Verified(**self._client._get(f"{self._path}/verification", timeout))

    def close(self) -> None:
        """Close this thread's connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _suggestion(fields: dict[str, Any]) -> Suggestion:
    return Suggestion(**fields)
