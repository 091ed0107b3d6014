"""Schemas of answers. Later versions may add fields, but keep these names."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

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


class Token(BaseModel):
    """A token, without its secret."""

    id: str
    role: Literal["browser", "reader", "writer", "admin"]
    studies: list[str] | None
    created: float
    note: str
    expires: float | None
    origins: list[str]
    rate: float | None
    link: bool


class Link(BaseModel):
    """A link to a study, without its secret."""

    id: str
    created: float
    note: str
    expires: float | None


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


class Suggestion(BaseModel):
    """An arm to show."""

    id: str
    levels: dict[str, str]
    row: str | None = None
    column: str | None = None
    asked_at: float
    expires_at: float | None
    unit: str | None
    key: str | None
    data: dict[str, Any] | None


class Report(BaseModel):
    """A stored report."""

    id: str
    levels: dict[str, str]
    row: str | None = None
    column: str | None = None
    reward: float
    told_at: float
    late: bool


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

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


class AskResult(BaseModel):
    """The answer to one ask in a batch."""

    status: int
    suggestion: Suggestion | None = None
    problem: Problem | None = None


class TellResult(BaseModel):
    """The answer to one report in a batch."""

    status: int
    report: Report | None = None
    problem: Problem | None = None


class RecordResult(BaseModel):
    """201: stored; 200: a duplicate, or a fallback; any other status comes with a problem."""

    status: int
    problem: Problem | None = None


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


class _Open(BaseModel):
    """A model with further fields that aren't described here."""

    model_config = ConfigDict(extra="allow")


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


class Totals(BaseModel):
    """The number of suggestions, and of those in each state."""

    model_config = ConfigDict(extra="allow")

    suggestions: int
    reports: int
    pending: int
    expired: int
    cancelled: int


class Study(_Open):
    """A study's settings and counts."""

    name: str
    uid: str
    created: float
    retired: float | None
    events: int
    last_at: float
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


class Best(_Open):
    """The results so far; see `rank1.documents.Best`."""

    sides: Labels
    leader: list[str] | None
    mean: float | None
    counts: Table
    means: Table
    mean_lower: Table
    mean_upper: Table
    lower: Table
    upper: Table
    out: Table
    any_grid_upper: Table
    any_grid_out: Table
    pending: Table
    mark: float | None
    effects: dict[str, list[Any]]
    rate: float | None
    equal_split: float | None
    stop: bool
    reason: str
    any_grid_stop: bool
    any_grid_reason: str
    confidence: float
    tolerance: float
    recommended: list[str]
    totals: Totals
    statement: str
    next_step: str
    assumes: list[str]
    lift: dict[str, Any] | None
    doubt: Doubt | None
    verdicts: dict[str, Saying]
    levels: dict[str, list[dict[str, Any]]]
    holdout: dict[str, Any] | None
    version: int | None
    warnings: list[str]


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


class Replayed(_Open):
    """How another policy performed on the logged rewards."""

    policy: str
    steps: int
    rate: float | None
    rewards: int
    logged_rate: float | None
    best: list[str]
    exhausted: list[str] | None


class Verified(_Open):
    """The result of recomputing the state from the log."""

    ok: bool
    suggestions: int
    reports: int
    pending: int
    expired: int
    cancelled: int
    problems: list[str] | None = None


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
