"""Errors as problem details (RFC 9457): what is wrong with which field, and what would be right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from rank1 import errors
from rank1.checks import shown
from rank1.errors import Rank1Error

__all__ = ["STATUS", "Refused", "answer", "problem", "problem_of", "status_of"]


class Refused(Rank1Error):  # noqa: N818
    """A request that the service doesn't take, whatever the study would say."""

    def __init__(self, status: int, detail: str, remedy: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.remedy = status, remedy
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


#: The status of each class of errors, the special before the general.
STATUS: dict[type[Exception], int] = {
    errors.UnknownStudyError: 404,
    errors.UnknownSuggestionError: 404,
    errors.OtherStudyError: 404,
    errors.StudyExistsError: 409,
    errors.CancelledError: 409,
    errors.ConflictError: 409,
    errors.InputTypeError: 422,
    errors.InputError: 422,
    errors.DamagedError: 500,
    errors.FormatError: 500,
    errors.StorageError: 503,
    errors.Rank1Error: 500,
}

REMEDIES = {
    errors.UnknownStudyError: "GET /v1/studies lists the studies; create it first",
    errors.UnknownSuggestionError: "report the id that ask gave",
    errors.OtherStudyError: "report the id to the study that gave it",
    errors.StudyExistsError: "open it, or take another name",
    errors.CancelledError: "nothing is to be done: a cancelled suggestion takes no reward",
    errors.ConflictError: "what is on record stays; look at the history of the study",
    errors.DamagedError: "who runs the service puts a backup in its place; its log says how",
    errors.FormatError: "who runs the service takes a newer version of rank1",
    errors.StorageError: "try again later, with the same Idempotency-Key",
}

_ASKED = re.compile(
    r"(?:line \d+ of the history: )?"
    r"(?P<field>[\w\[\]]+)(?P<rest> must .*?)(?:, got (?P<value>.*?))?(?P<hint> \(did you .*\))?",
    re.S,
)


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Refused):
        return error.status
    return next(status for kind, status in STATUS.items() if isinstance(error, kind))


def problem(status: int, title: str, detail: str, **more: Any) -> dict[str, Any]:
    """A document of problem details."""
    kind = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    known = {name: value for name, value in more.items() if value is not None}
    return {
        "type": f"urn:rank1:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
        **known,
    }


def problem_of(error: Rank1Error) -> dict[str, Any]:
    """Problem details of one of the package's errors.

    >>> problem_of(errors.InputError("count must be a whole number of at least 1, got 0"))["field"]
    'count'
    """
    status = status_of(error)
    name = type(error).__name__.removesuffix("Error")
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
    if isinstance(error, Refused):
        return problem(status, _TITLES.get(status, title), str(error), remedy=error.remedy)
    detail = str(error)
    if isinstance(error, errors.DamagedError):
        detail = "the storage is damaged: nothing was stored; the log of the service says more"
    elif isinstance(error, errors.StorageError):
        detail = "the storage can't be used now; the log of the service says more"
    elif isinstance(error, errors.FileError):
        detail = "the service can't read one of its files; its log says which"
    elif isinstance(error, errors.OtherStudyError):
        detail = "the id is one of another study"
    elif isinstance(error, errors.UnknownStudyError):
        detail = detail.partition("; there are: ")[0]  # a token may not be for the others
    field = value = None
    remedy = next((text for kind, text in REMEDIES.items() if isinstance(error, kind)), None)
    if status == 422 and (match := _ASKED.fullmatch(detail)):
        field, value = match["field"], match["value"]
        remedy = f"{field}{match['rest']}{match['hint'] or ''}"
    return problem(status, title, detail, field=field, value=value, remedy=remedy)


_TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    408: "Request timeout",
    413: "Body too large",
    429: "Too many requests",
    503: "Busy",
}


def validation(found: list[Mapping[str, Any]], body: Any) -> dict[str, Any]:
    """Problem details of a body or parameter that has the wrong shape."""
    faults = []
    for each in found[:20]:
        place = [str(part) for part in each["loc"]]
        if each["type"] == "json_invalid":
            reason = each.get("ctx", {}).get("error", each["msg"])
            each = {"msg": f"must be JSON ({reason})", "input": body}
            place = place[:1]
        faults.append(
            {
                "field": ".".join(place[1:]) or place[0],
                "value": shown(each.get("input")),
                "remedy": str(each["msg"]),
            }
        )
    first = faults[0]
    return problem(
        422,
        "Input",
        f"{first['field']}: {first['remedy']}, got {first['value']}",
        **first,
        errors=faults,
    )


def answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; problem details have a media type of their own."""
    body = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    media = "application/problem+json" if status >= 400 else "application/json"
    return Response(body, status, headers, media_type=media)


def refusal(error: Rank1Error) -> Response:
    """The answer to a request that met this error."""
    headers = dict(error.headers) if isinstance(error, Refused) else {}
    status = status_of(error)
    if status == 503:
        headers.setdefault("Retry-After", "1")
    return answer(problem_of(error), status, headers)
