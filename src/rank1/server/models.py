"""Schemas of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rank1.studies.events import MAX_TEXT

__all__ = ["Ask", "AskMany", "Cancel", "Create", "Import", "Revise", "Tell", "TellMany"]

#: The most items of a batch.
MAX_BATCH = 10_000
#: The most levels of a side in a body, and the most sides.
MAX_LEVELS, MAX_SIDES = 4096, 16

_STRICT = ConfigDict(extra="forbid")

Labels = Annotated[list[str], Field(max_length=MAX_LEVELS)]
Sides = Annotated[dict[str, Labels], Field(max_length=MAX_SIDES)]


class Create(BaseModel):
    """A new study; see `rank1.Study.create`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"name": "spring", "rows": ["18-24", "25-34"], "columns": ["email", "push"]}
        },
    )

    name: str = Field(min_length=1, max_length=MAX_TEXT)
    rows: Labels | None = Field(None, description="Levels of the first of two sides.")
    columns: Labels | None = Field(None, description="Levels of the second of two sides.")
    sides: Sides | None = Field(
        None, description="Levels by side, for any number of sides; instead of rows and columns."
    )
    goal: str = Field("earn", description="earn: play what pays. find: find the best arm soon.")
    policy: str | None = Field(None, max_length=1000, description="Default: the goal's policy.")
    horizon: int | None = None
    reward_window: float | None = Field(None, description="Seconds until a reward is overdue.")
    on_expiry: str = Field("drop", description="drop, default or wait")
    default_reward: float | None = None
    confidence: float = 0.95
    tolerance: float = 0.0
    seed: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    forgetting: float | None = None


class Ask(BaseModel):
    """The unit that a suggestion is for, and data to store with it."""

    model_config = _STRICT

    unit: str | None = None
    #: A JSON object of at most 4 KB.
    data: dict[str, Any] | None = None


class AskOne(Ask):
    """One of many asks, with a key of its own."""

    key: str | None = None


class AskMany(BaseModel):
    """A number of suggestions under one key; or a list of asks, each answered by itself."""

    model_config = _STRICT

    count: int | None = Field(None, ge=1, le=MAX_BATCH)
    #: Stored with each of `count`.
    data: dict[str, Any] | None = None
    asks: list[AskOne] | None = Field(None, min_length=1, max_length=MAX_BATCH)


class Tell(BaseModel):
    """A reward."""

    model_config = _STRICT

    id: str = Field(max_length=MAX_TEXT)
    reward: float


class TellMany(BaseModel):
    """Rewards, each answered by itself."""

    model_config = _STRICT

    reports: list[Tell] = Field(min_length=1, max_length=MAX_BATCH)


class Cancel(BaseModel):
    """A suggestion that was never shown."""

    model_config = _STRICT

    id: str = Field(max_length=MAX_TEXT)


class Revise(BaseModel):
    """Levels to add and to retire, by side; of rows and columns also by these words."""

    model_config = _STRICT

    add: Sides = {}
    retire: Sides = {}
    add_rows: Labels = []
    retire_rows: Labels = []
    add_columns: Labels = []
    retire_columns: Labels = []


class Import(BaseModel):
    """Rewards that are known from elsewhere: each a level of every side, then the reward."""

    model_config = _STRICT

    rewards: list[list[str | float | None]] = Field(min_length=1, max_length=MAX_BATCH)


# Answers


class Suggestion(BaseModel):
    """An arm to be shown."""

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
    """A report that is stored."""

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
    """The answer to one of many asks."""

    status: int
    suggestion: Suggestion | None = None
    problem: Problem | None = None


class TellResult(BaseModel):
    """The answer to one of many reports."""

    status: int
    report: Report | None = None
    problem: Problem | None = None


class AskResults(BaseModel):
    """The answers, in the order of the asks."""

    results: list[AskResult]


class TellResults(BaseModel):
    """The answers, in the order of the reports."""

    results: list[TellResult]
