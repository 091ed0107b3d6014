"""Schemas of answers. Later versions may add fields, but keep these names."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, create_model

from rank1 import documents
from rank1.studies.events import Kind

__all__ = [
    "Arms", "AskResults", "Best", "Cancelled", "Fit", "History", "Link", "LinkList",
    "NewLink", "NewToken", "Problem", "RecordResults", "Replayed", "Report", "Revised",
    "Revisions", "RewardResults", "Shares", "Study", "StudyList", "Suggestion", "TellResults",
    "Token", "TokenList", "Verified", "View",
]  # fmt: skip

#: Nested lists with one dimension for each side.
Table = Annotated[list[Any], Field(description="Nested lists, a dimension for each side.")]
Labels = dict[str, list[str]]
KindName = Literal[
    "created", "suggested", "reported", "cancelled", "expired", "revised", "history", "retired",
    "version", "recorded", "guardrail", "noted",
]  # fmt: skip
assert [kind.name.lower() for kind in Kind] == list(KindName.__args__)  # type: ignore[attr-defined]


class Shares(BaseModel):
    """The current version of a study's shares; see `rank1.assign`."""

    version: int
    salt: str
    max_age: int = Field(description="Seconds for which it may be cached.")
    sides: dict[str, dict[str, float]]
    given: dict[str, list[str]] | list[str] | None = Field(
        None, description="Given sides: with their levels, or by name if new levels are added."
    )
    holdout: float | None = None
    control: dict[str, str] | None = None


class Arm(BaseModel):
    """A living arm."""

    levels: dict[str, str]
    reports: float
    mean: float | None
    pending: int


class Arms(BaseModel):
    """A page of arms."""

    size: int = Field(description="The number of arms that aren't retired.")
    arms: list[Arm]
    next: int | None = Field(description="`after` of the next page; null at the end.")


class Link(BaseModel):
    """A link to a study, without its secret."""

    id: str
    created: float
    note: str
    expires: float | None


class Token(Link):
    """A token, without its secret."""

    role: Literal["browser", "reader", "writer", "admin"]
    studies: list[str] | None
    origins: list[str]
    rate: float | None
    link: bool


class NewLink(Link):
    """A link to a study. Its secret is shown only once."""

    token: str
    path: str = Field(description="The study's page, relative to the service's address.")


class LinkList(BaseModel):
    """The links to a study, oldest first."""

    links: list[Link]


class NewToken(Token):
    """A token with the text that requests send, which is shown only once."""

    token: str


class TokenList(BaseModel):
    """All tokens in the service's file, oldest first."""

    tokens: list[Token]


class _OfArm(BaseModel):
    """What is said of an arm; with two sides, also with its row and column."""

    id: str
    levels: dict[str, str]
    row: str | None = None
    column: str | None = None


class Suggestion(_OfArm):
    """An arm to show."""

    asked_at: float
    expires_at: float | None
    unit: str | None
    key: str | None
    data: dict[str, Any] | None


class Report(_OfArm):
    """A stored report."""

    reward: float
    told_at: float
    late: bool


class _Open(BaseModel):
    """A model with further fields that aren't described here."""

    model_config = ConfigDict(extra="allow")


class Problem(_Open):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None
    remedy: str | None = None
    expected: str | None = None
    hint: str | None = None
    context: str | None = None


class RecordResult(BaseModel):
    """201: stored; 200: a duplicate, or a fallback; any other status comes with a problem."""

    status: int
    problem: Problem | None = None


class AskResult(RecordResult):
    """The answer to one ask in a batch."""

    suggestion: Suggestion | None = None


class TellResult(RecordResult):
    """The answer to one report in a batch."""

    report: Report | None = None


class RecordResults(BaseModel):
    """The answers, in the same order as the records."""

    results: list[RecordResult]


class RewardResults(BaseModel):
    """The answers, in the same order as the rewards."""

    results: list[RecordResult]


class AskResults(BaseModel):
    """The answers, in the same order as the asks."""

    results: list[AskResult]


class TellResults(BaseModel):
    """The answers, in the same order as the reports."""

    results: list[TellResult]


class Listed(BaseModel):
    """A study in a list."""

    name: str
    uid: str = Field(description="The prefix of its suggestions' ids.")
    created: float = Field(description="Seconds since 1970, like all times.")
    retired: float | None
    archived: float | None
    events: int
    last_at: float


class StudyList(BaseModel):
    """The studies that the token can read."""

    studies: list[Listed]


class Totals(_Open):
    """The number of suggestions, and of those in each state."""

    suggestions: int
    reports: int
    pending: int
    expired: int
    cancelled: int


class Study(Listed, _Open):
    """A study's settings and counts."""

    goal: Literal["earn", "find"]
    policy: str
    sides: Labels = Field(description="The levels that aren't retired.")
    rows: list[str] | None = None
    columns: list[str] | None = None
    reward_range: tuple[float, float]
    reward_window: float | None
    confidence: float
    revision: int
    totals: Totals


class Saying(_Open):
    """Whether a rule says to stop, and why."""

    stop: bool
    reason: str


class Doubt(BaseModel):
    """An arm that may be an exception to one order: why the study stops only if that holds."""

    arm: list[str]
    mean: float | None
    leading: float | None = Field(description="The leader's mean.")
    tried: int
    speaks: bool = Field(description="Its rewards speak for it; false: it was tried too rarely.")
    statement: str


def _document(kind: type, **others: Any) -> Any:
    """Describe a class of `rank1.documents`; `others` are the fields whose type there is wider."""
    arrays = {"np": np, "Floats": Table, "NDArray": {np.bool_: Table, np.int64: Table}}
    kinds = get_type_hints(kind, localns=arrays, include_extras=True)
    named = {each.name: kinds[each.name] for each in dataclasses.fields(kind)}
    # A number that isn't known is NaN there, and null in JSON.
    fields = {name: (float | None if it is float else it, ...) for name, it in named.items()}
    return create_model(kind.__name__, __base__=_Open, __doc__=kind.__doc__, **(fields | others))


Best = _document(
    documents.Best,
    confidence=(float, ...),
    tolerance=(float, ...),
    interval=(list[float | None] | None, ...),
    doubt=(Doubt | None, ...),
    totals=(Totals, ...),
    verdicts=(dict[str, Saying], ...),
)
Replayed = _document(documents.Replayed)
Verified = _document(documents.Verified, problems=(list[str] | None, None))


class View(_Open):
    """The data of the web page; it may change when the page does."""

    name: str
    uid: str
    seq: int
    sides: list[dict[str, Any]]
    totals: Totals
    statement: str


class Fit(_Open):
    """Whether a product of factors fits the rewards."""

    sides: Labels
    deviance: float | None
    degrees_of_freedom: int
    p_value: float | None
    repetitions: int
    leader: list[str] | None
    power: float | None
    effects: dict[str, list[Any]]
    deviating: list[dict[str, Any]]
    advice: str
    explained: float | None


class LogEvent(_Open):
    """An event of the log, with the fields of its kind."""

    seq: int
    at: float
    kind: KindName
    id: str | None = None
    levels: dict[str, str] | None = None
    reward: float | None = None
    unit: str | None = None
    key: str | None = None


class History(BaseModel):
    """A page of the log."""

    events: list[LogEvent]
    next: int | None = Field(description="`after` of the next page; null at the end.")


class Revision(_Open):
    """Levels that were added and retired together."""

    revision: int
    at: float
    seq: int
    added: Labels | None = None
    retired: Labels | None = None


class Revisions(_Open):
    """All revisions of the grid."""

    revision: int
    sides: Labels
    revisions: list[Revision]


class Revised(_Open):
    """A stored revision of the grid."""

    revision: int


class Cancelled(BaseModel):
    """A cancelled suggestion, which no longer accepts a reward."""

    id: str
    state: Literal["cancelled"]
