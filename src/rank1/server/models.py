"""What requests and answers look like."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rank1.studies.log import MAX_TEXT

__all__ = ["Ask", "AskMany", "Cancel", "Create", "Import", "Revise", "Tell", "TellMany"]

#: The most items of a batch.
MAX_BATCH = 10_000
#: The most rows or columns of a body.
MAX_LINES = 4096

_STRICT = ConfigDict(extra="forbid")


class Create(BaseModel):
    """A new study; see `rank1.Study.create`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"name": "spring", "rows": ["18-24", "25-34"], "columns": ["email", "push"]}
        },
    )

    name: str = Field(min_length=1, max_length=MAX_TEXT)
    rows: list[str] = Field(min_length=1, max_length=MAX_LINES)
    columns: list[str] = Field(min_length=1, max_length=MAX_LINES)
    goal: str = Field("earn", description="earn: play what pays. find: find the best pair soon.")
    policy: str | None = Field(None, max_length=1000, description="Instead of the goal's own.")
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
    """Whom a suggestion is for; the Idempotency-Key is its key."""

    model_config = _STRICT

    unit: str | None = None


class AskOne(Ask):
    """One of many asks, with a key of its own."""

    key: str | None = None


class AskMany(BaseModel):
    """So many suggestions under one key; or a list of asks, each answered by itself."""

    model_config = _STRICT

    count: int | None = Field(None, ge=1, le=MAX_BATCH)
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
    """Lines that come and go."""

    model_config = _STRICT

    add_rows: list[str] = Field([], max_length=MAX_LINES)
    retire_rows: list[str] = Field([], max_length=MAX_LINES)
    add_columns: list[str] = Field([], max_length=MAX_LINES)
    retire_columns: list[str] = Field([], max_length=MAX_LINES)


class Import(BaseModel):
    """Rewards that are known from elsewhere: row, column, reward."""

    model_config = _STRICT

    rewards: list[tuple[str, str, float]] = Field(min_length=1, max_length=MAX_BATCH)


# Answers


class Suggestion(BaseModel):
    """A pair to be shown."""

    id: str
    row: str
    column: str
    asked_at: float
    expires_at: float | None
    unit: str | None
    key: str | None


class Report(BaseModel):
    """A report that is stored."""

    id: str
    row: str
    column: str
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
