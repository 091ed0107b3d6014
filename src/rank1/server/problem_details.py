"""Errors as problem details (RFC 9457): which field is wrong, why, and what would be valid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from rank1 import errors
from rank1.errors import InputError, InputTypeError, Rank1Error, shown

__all__ = [
    "STATUS",
    "RefusedError",
    "is_type_error",
    "item_results",
    "json_response",
    "problem_document",
    "problem_of",
    "problem_response",
    "status_of",
    "validation_problem",
]


class RefusedError(Rank1Error):
    """A request that the service refuses before the study sees it."""

    def __init__(self, status: int, problem: str, hint: str, **headers: str) -> None:
        super().__init__(problem, hint)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


#: The status of each class of errors; subclasses come before their base classes.
STATUS: dict[type[Rank1Error], int] = {
    errors.UnknownStudyError: 404,
    errors.UnknownSuggestionError: 404,
    errors.OtherStudyError: 404,
    errors.StudyExistsError: 409,
    errors.CancelledError: 409,
    errors.ConflictError: 409,
    InputTypeError: 422,
    InputError: 422,
    errors.PolicyError: 422,
    errors.DamagedError: 500,
    errors.FormatError: 500,
    errors.StorageError: 503,
    errors.Rank1Error: 500,
}

_LOG = "see the service's log"

#: Details that replace an error's own message if that names files or other studies; formatted with
#: the error's fields.
_DETAILS: dict[type[Rank1Error], str] = {
    errors.DamagedError: f"the storage is damaged: nothing was stored; {_LOG}",
    errors.StorageError: f"the storage can't be used now; {_LOG}",
    errors.FileError: f"the service can't read one of its files; {_LOG}",
    errors.OtherStudyError: "the id belongs to another study",
    errors.StudyExistsError: "the study {study!r} already exists",
}

#: Errors whose hints name files, or studies that the token may not read.
_PRIVATE_HINTS = (
    errors.FileError,
    errors.OtherStudyError,
    errors.StudyExistsError,
    errors.UnknownStudyError,
)

_REMEDIES: dict[type[Rank1Error], str] = {
    errors.UnknownStudyError: "GET /v1/studies lists the studies; create it first",
    errors.UnknownSuggestionError: "use the id that ask returned",
    errors.OtherStudyError: "report the id to the study that returned it",
    errors.StudyExistsError: "open it, or choose another name",
    errors.CancelledError: "nothing to do: a cancelled suggestion can't have a reward",
    errors.EndedError: "ship its winner, or create another study",
    errors.ConflictError: "the stored value is kept; see the study's history",
    errors.DamagedError: "the service's operator must restore a backup; the log says how",
    errors.FormatError: "the service's operator must install a newer version of rank1",
    errors.StorageError: "try again later, with the same Idempotency-Key",
}

#: How many problems of one answer are complete; the fields of the others, and the length of each.
MAX_FULL, _BRIEF, MAX_BRIEF = 20, ("type", "title", "status", "detail", "field", "value"), 100

_TITLES = {401: "Not authenticated", 403: "Not allowed", 413: "Body too large", 503: "Busy"}


def _first(table: Mapping[type[Rank1Error], Any], error: Rank1Error) -> Any:
    return next((found for kind, found in table.items() if isinstance(error, kind)), None)


def status_of(error: Rank1Error) -> int:
    """Return the HTTP status of an error."""
    status: int = error.status if isinstance(error, RefusedError) else _first(STATUS, error)
    return status


def problem_document(status: int, title: str, detail: str, **more: Any) -> dict[str, Any]:
    """Make a problem details document, leaving out what is None."""
    return {
        "type": f"urn:rank1:problem:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
        "detail": detail,
        **{name: value for name, value in more.items() if value is not None},
    }


def problem_of(error: Rank1Error) -> dict[str, Any]:
    """Make the problem details of one of the package's errors from its fields.

    >>> found = problem_of(InputError("count", 0, "a whole number of at least 1"))
    >>> found["field"], found["value"], found["remedy"]
    ('count', '0', 'count must be a whole number of at least 1')
    """
    status = status_of(error)
    if isinstance(error, RefusedError):
        title = _TITLES.get(status, HTTPStatus(status).phrase.capitalize())
        return problem_document(status, title, error.problem, remedy=error.hint)
    title = _title(type(error))
    if isinstance(error, InputError | InputTypeError):
        more = {
            name: getattr(error, name)
            for name in ("field", "remedy", "expected", "hint", "context", "part_of")
        }
        return problem_document(status, title, str(error), value=error.got, **more)
    told = _first(_DETAILS, error)
    detail = told.format(**vars(error)) if told else error.problem
    hint = None if isinstance(error, _PRIVATE_HINTS) else error.hint
    return problem_document(status, title, detail, remedy=hint or _first(_REMEDIES, error))


def item_results(found: Sequence[Any], answer: Callable[[Any], dict[str, Any]]) -> list[Any]:
    """Return a result for each item: what `answer` makes of it, or the problem of an error.

    The first problems are complete. Later ones are short, so that a small request can't make a
    huge answer.
    """
    results, full = [], MAX_FULL
    for one in found:
        if isinstance(one, Rank1Error):
            problem = problem_of(one)
            results.append(
                {"status": problem["status"], "problem": problem if full > 0 else _brief(problem)}
            )
            full -= 1
        else:
            results.append(answer(one))
    return results


def _brief(problem: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: problem[name] for name in _BRIEF if name in problem}
    return {k: v[:MAX_BRIEF] if isinstance(v, str) else v for k, v in kept.items()}


def _title(kind: type[Rank1Error]) -> str:
    """Turn a class name into a title: UnknownStudyError becomes "Unknown study"."""
    words: list[str] = re.findall("[A-Z][a-z0-9]*", kind.__name__.removesuffix("Error"))
    return " ".join(words).capitalize()


def is_type_error(fault: Mapping[str, Any]) -> bool:
    """Return whether a fault that Pydantic found is a TypeError in Python."""
    return str(fault["type"]).endswith(("_type", "_parsing", "missing", "forbidden"))


def _remedy(fault: Mapping[str, Any]) -> str:
    """Say what would be right, in the words of the library's own errors."""
    if isinstance(fault["input"], bytes):
        return "must be a JSON object, with the header Content-Type: application/json"
    if fault["type"] == "missing":
        return "is required"
    if fault["type"] == "extra_forbidden":
        return "must be left out: this request has no such field (see /docs)"
    words = str(fault["msg"]).removeprefix("Value error, ")
    words = re.sub(r" after validation, not .*", "", words)
    return re.sub("^(Input|String|List|Dictionary) should (be|have)", r"must \2", words)


def validation_problem(found: Sequence[Mapping[str, Any]], body: Any) -> dict[str, Any]:
    """Make the problem details of a body or parameter that failed validation."""
    faults = []
    for each in found[:20]:
        place = [str(part) for part in each["loc"]]
        if each["type"] == "json_invalid":
            reason = each.get("ctx", {}).get("error", each["msg"])
            each = {"type": "", "msg": f"must be JSON ({reason})", "input": body}
            place = place[:1]
        faults.append(
            {
                "field": ".".join(place[1:]) or place[0],
                "value": shown(each.get("input")),
                "remedy": _remedy(each),
            }
        )
    first = faults[0]
    colon = "" if first["remedy"].startswith(("must ", "is ")) else ":"
    detail = f"{first['field']}{colon} {first['remedy']}, got {first['value']}"
    title = "Input type" if is_type_error(found[0]) else "Input"
    return problem_document(422, title, detail, **first, errors=faults)


_encoded = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def json_response(
    document: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Make a JSON response; problem details get their own media type."""
    body = _encoded(document).encode()
    media = "application/problem+json" if status >= 400 else "application/json"
    return Response(body, status, headers, media_type=media)


def problem_response(error: Rank1Error) -> Response:
    """Make the response to a request that raised this error."""
    headers = dict(error.headers) if isinstance(error, RefusedError) else {}
    status = status_of(error)
    if status == 503:
        headers.setdefault("Retry-After", "1")
    return json_response(problem_of(error), status, headers)
