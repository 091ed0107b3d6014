"""Requests to a service, with retries where that is safe."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import json
import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from rank1 import checks, errors
from rank1.errors import (
    BackendError,
    InputError,
    InputTypeError,
    Rank1Error,
    StorageError,
    shown,
)

__all__ = ["Transport", "encoded", "error_of", "renamed", "report_body", "without_none"]

#: Statuses after which a retry may succeed.
RETRIED = (408, 429, 500, 502, 503, 504)
#: The longest pause before the first retry, in seconds; it doubles with each retry.
FIRST_PAUSE = 0.05

_CLASSES = {
    "urn:rank1:problem:unknown-study": errors.UnknownStudyError,
    "urn:rank1:problem:unknown-suggestion": errors.UnknownSuggestionError,
    "urn:rank1:problem:other-study": errors.OtherStudyError,
    "urn:rank1:problem:study-exists": errors.StudyExistsError,
    "urn:rank1:problem:cancelled": errors.CancelledError,
    "urn:rank1:problem:conflict": errors.ConflictError,
    "urn:rank1:problem:ended": errors.EndedError,
    "urn:rank1:problem:input-type": InputTypeError,
    "urn:rank1:problem:input": InputError,
    "urn:rank1:problem:damaged": errors.DamagedError,
    "urn:rank1:problem:format": errors.FormatError,
}


def error_of(status: int, document: Any) -> Rank1Error:
    """Make the error that the service reported: the same class with the same fields.

    The value of an argument is the text that the service shows for it.

    >>> error = error_of(422, {
    ...     "type": "urn:rank1:problem:input", "field": "count", "value": "0", "expected": "above 0"
    ... })
    >>> error.argument, str(error)
    ('count', 'count must be above 0, got 0')
    """
    fields = document if isinstance(document, dict) else {}
    remedy = fields.get("remedy")
    kind: Any = _CLASSES.get(
        str(fields.get("type")), StorageError if status >= 500 else BackendError
    )
    # Whether the study refused the request, which a retry can't change.
    ours = "type" in fields and not issubclass(kind, StorageError)
    if issubclass(kind, InputError | InputTypeError):
        argument, got = str(fields.get("field", "the request")), str(fields.get("value"))
        part_of = fields.get("part_of")
        argument = argument.removeprefix(f"{part_of}.")
        expected, hint = fields.get("expected"), fields.get("hint")
        if expected is None and str(remedy).startswith("must be "):
            expected = str(remedy).removeprefix("must be ")
        elif expected is None:  # a schema checks the shape of a body, in other words
            expected, hint = "valid", remedy
        error = kind(
            argument, got, expected, hint, got=got, status=status, part_of=part_of, ours=ours
        )
        error.context = fields.get("context")
        return error
    detail = fields.get("detail", f"the service answered {status}")
    return kind(str(detail), remedy, status=status, ours=ours)


#: Errors that a retry can't fix.
_FINAL = (errors.DamagedError, errors.FormatError)


class Transport:
    """Connections to a service, one for each thread; see `Client`."""

    def __init__(self, url: str, token: str, timeout: float = 10.0) -> None:
        try:
            parts = urlsplit(url if isinstance(url, str) else "")
            port = parts.port
        except ValueError as error:  # such as a port that isn't a number
            raise InputError("url", url, "http://… or https://…", str(error)) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("url", url, "http://… or https://…")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            asked = "the text that `rank1 serve token create` printed"
            raise InputError("token", token, asked, got="something else")
        https = parts.scheme == "https"
        self._kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
        self._place = (parts.hostname, port or self._kind.default_port)
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self.timeout = checks.number("timeout", timeout, 0, 1e6, above=True)
        self._local = threading.local()
        self.silent_until = 0.0

    def __repr__(self) -> str:
        return f"<Client of {self._place[0]}:{self._place[1]}>"

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

    def get(self, path: str, timeout: float | None = None, **query: Any) -> Any:
        """Send a GET request; returns the JSON of the answer."""
        asked = without_none(**query)
        return self._call(
            "GET", path + (f"?{urlencode(asked, doseq=True)}" if asked else ""), None, {}, timeout
        )

    def post(
        self, path: str, body: Any, key: str | None = None, timeout: float | None = None
    ) -> Any:
        """Send a POST request; returns the JSON of the answer. A key makes a retry safe."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = checked_key(key)
        return self._call("POST", path, encoded(body).encode(), headers, timeout)

    def _delete(self, path: str, **query: str) -> None:
        """Send a DELETE request."""
        self._call("DELETE", f"{path}?{urlencode(query)}", None, {}, None)

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        timeout: float | None,
    ) -> Any:
        """Send a request, retrying until the timeout; returns the JSON of the answer."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        pause = FIRST_PAUSE
        while True:
            left = max(0.001, end - time.monotonic())
            try:
                status, after, data = self._once(method, path, body, headers, left)
                if status < 300:
                    found = _json(data) if data else {}
                    if isinstance(found, dict):
                        return found
                    raise StorageError("the answer isn't of a rank1 service", shown(data))
                failure = error_of(status, _json(data))
                if status not in RETRIED or isinstance(failure, _FINAL):
                    raise failure
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, Rank1Error):
                    raise
                self.close()
                host, port = self._place
                after, failure = 0.0, StorageError(f"no answer from {host}:{port}", repr(error))
            wait = max(after, random.uniform(0, pause))
            if time.monotonic() + wait >= end:
                raise failure
            time.sleep(wait)
            pause *= 2

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float
    ) -> tuple[int, float, bytes]:
        """Send a request once; returns the status, seconds to wait before a retry, and the body."""
        link = self._link(timeout)
        link.request(method, self._path + path, body, {**self._headers, **headers})
        answer = link.getresponse()
        data = answer.read()
        wait = answer.headers.get("Retry-After", "")
        return answer.status, float(wait) if wait.isdigit() else 0.0, data

    def _link(self, timeout: float) -> http.client.HTTPConnection:
        """Return this thread's connection."""
        link: http.client.HTTPConnection | None = getattr(self._local, "link", None)
        if link is None:
            link = self._local.link = self._kind(*self._place, timeout=timeout)
        link.timeout = timeout
        if link.sock is not None:
            link.sock.settimeout(timeout)
        return link

    def lines(self, path: str) -> Iterable[bytes]:
        """Yield the lines of a stream, using a separate connection."""
        link = self._kind(*self._place, timeout=self.timeout)
        try:
            link.request("GET", self._path + path, headers=self._headers)
            answer = link.getresponse()
            if answer.status >= 300:
                raise error_of(answer.status, _json(answer.read()))
            yield from answer
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, Rank1Error):
                raise
            raise StorageError("the stream broke off", repr(error)) from None
        finally:
            link.close()


def without_none(**fields: Any) -> dict[str, Any]:
    """Return the fields that aren't None: an older service refuses fields it doesn't know."""
    return {name: value for name, value in fields.items() if value is not None}


def checked_key(key: str) -> str:
    """Check that a key can be sent in a header, and return it."""
    if not isinstance(key, str):
        raise InputTypeError("key", key, "text")
    if not 1 <= len(key) <= 256:
        got = f"{len(key):,} characters" if key else "an empty text"
        raise InputError("key", key, "text of 1 to 256 characters", got=got)
    latin = all(letter < "\u0100" for letter in key)
    if not latin or not key.isprintable() or not key.strip() == key:
        raise InputError("key", key, "printable ASCII text without leading or trailing spaces")
    return key


def encoded(body: Any) -> str:
    """Return a body as JSON. The study refuses NaN by the argument's name, so it is sent."""
    try:
        return json.dumps(body, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputTypeError("the request", body, "values of JSON", str(error)) from None


def _plain(value: Any) -> Any:
    """Return a value that a `Study` accepts as one that JSON has."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return value.tolist()
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{type(value).__name__} can't be sent")


def report_body(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return fields by name, with 1 and 0 for true and false, which the service refuses."""
    body = dict(zip(names, values, strict=False))
    if "reward" in body:
        body["reward"] = _number(body["reward"])
    if isinstance(body.get("guardrails"), Mapping):
        body["guardrails"] = {name: _number(each) for name, each in body["guardrails"].items()}
    return body


def _number(value: Any) -> Any:
    return int(value) if type(value).__name__ == "bool" else value  # also NumPy's


@contextlib.contextmanager
def renamed(**names: str) -> Iterator[None]:
    """Name the arguments in errors as `Study` does, not as the service's fields."""
    try:
        yield
    except (InputError, InputTypeError) as error:
        error.argument = names.get(error.argument.partition(".")[0], error.argument)
        raise


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
