"""Schemas of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    model_validator,
)

from rank1.errors import InputError
from rank1.studies.events import MAX_TEXT

__all__ = ["Ask", "AskMany", "Cancel", "Create", "Import", "Revise", "Tell", "TellMany"]

#: The most items in a batch.
MAX_BATCH = 10_000
#: The most levels of a side, and the most sides, in a body.
MAX_LEVELS, MAX_SIDES = 4096, 16


class Body(BaseModel):
    """A request body. An unknown field is refused with an error that names it."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any, info: ValidationInfo) -> Any:
        """Report only the first unknown field: Pydantic would list all of them, even 100,000."""
        if isinstance(given, dict) and len(given) > len(cls.model_fields):
            unknown = next(name for name in given if name not in cls.model_fields)
            raise ValueError(f"there is no field {unknown[:40]!r}")
        return given


def _own_error(value: Any, handler: Callable[[Any], Any]) -> Any:
    """Validate an item of a list; returns the item, or its error."""
    try:
        return handler(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the item"
        return InputError(field, first.get("input"), f"valid: {first['msg']}")


#: Each item of a list is accepted or refused by itself.
EACH = WrapValidator(_own_error)

#: A number; true and "1e-1" are refused.
Number = Annotated[float, Field(strict=True)]

Labels = Annotated[list[str], Field(max_length=MAX_LEVELS)]
Sides = Annotated[dict[str, Labels], Field(max_length=MAX_SIDES)]


def _one_of(*names: str) -> dict[str, Any]:
    """Return the schema's enum of a field that the study itself validates."""
    return {"enum": list(names)}


class Create(Body):
    """A new study; see `rank1.Study.create`."""

    model_config = ConfigDict(
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
    goal: str = Field(
        "earn", description="earn: play what pays. find: find the best arm soon.",
        json_schema_extra=_one_of("earn", "find"),
    )  # fmt: skip
    policy: str | None = Field(None, max_length=1000, description="Default: the goal's policy.")
    horizon: int | None = None
    reward_window: float | None = Field(None, description="Seconds until a reward is overdue.")
    on_expiry: str = Field("drop", json_schema_extra=_one_of("drop", "default", "wait"))
    default_reward: float | None = None
    confidence: float = 0.95
    tolerance: float = 0.0
    seed: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    forgetting: float | None = None
    given: list[str] | None = Field(None, description="Sides whose level comes with the visitor.")
    new_levels: str = Field(
        "refuse", description="What to do about unknown levels of given sides.",
        json_schema_extra=_one_of("refuse", "add"),
    )  # fmt: skip
    control: dict[str, str] | None = Field(None, description="A level of each side.")
    floor: float = Field(0.0, description="The least share of each living level (find).")
    holdout: float = Field(0.0, description="The part of units that stay on the control (find).")
    min_lift: float = Field(
        0.0, description="The smallest lift worth having, in reward above the lowest (find)."
    )
    guardrails: dict[str, dict[str, float]] | None = None
    repeat: str = Field(
        "once",
        description="Visits of a unit that count.",
        json_schema_extra=_one_of("once", "each"),
    )


class Ask(Body):
    """The unit that a suggestion is for, and data to store with the suggestion."""

    unit: str | None = None
    #: A JSON object of up to 4 KB.
    data: dict[str, Any] | None = None
    #: The levels of given sides.
    given: dict[str, str] | None = None


class AskOne(Ask):
    """One ask in a batch, with a key of its own."""

    key: str | None = None


class AskMany(Body):
    """Either a number of suggestions under one key, or a list of asks, each answered by itself."""

    count: int | None = Field(None, ge=1, le=MAX_BATCH)
    #: Data to store with each of the `count` suggestions.
    data: dict[str, Any] | None = None
    #: The levels of given sides, for each of the `count` suggestions.
    given: dict[str, str] | None = None
    asks: list[Annotated[AskOne, EACH]] | None = Field(None, min_length=1, max_length=MAX_BATCH)


class Tell(Body):
    """A reward."""

    id: str = Field(max_length=MAX_TEXT)
    reward: Number
    guardrails: dict[str, Number] | None = None


class TellMany(Body):
    """Rewards, each answered by itself."""

    reports: list[Annotated[Tell, EACH]] = Field(min_length=1, max_length=MAX_BATCH)


class Cancel(Body):
    """A suggestion that was never shown."""

    id: str = Field(max_length=MAX_TEXT)


class Revise(Body):
    """Levels to add and to retire, by side; with two sides also as rows and columns."""

    add: Sides = {}
    retire: Sides = {}
    add_rows: Labels = []
    retire_rows: Labels = []
    add_columns: Labels = []
    retire_columns: Labels = []


class Import(Body):
    """Rewards from elsewhere; each item is a level of every side, followed by the reward."""

    rewards: list[list[str | float | None]] = Field(min_length=1, max_length=MAX_BATCH)


class Record(Body):
    """An exposure whose levels were drawn from a version's shares; or a client's fallback."""

    unit: str = Field(max_length=MAX_TEXT)
    version: int | None = None
    levels: dict[str, str]
    reward: Number | None = None
    guardrails: dict[str, Number] | None = None
    fallback: bool = False


class Records(Body):
    """Exposures, each answered by itself."""

    records: list[Record] = Field(min_length=1, max_length=MAX_BATCH)


class Reward(Body):
    """The reward of a unit."""

    unit: str = Field(max_length=MAX_TEXT)
    reward: Number
    guardrails: dict[str, Number] | None = None


class Rewards(Body):
    """Rewards by unit, each answered by itself."""

    rewards: list[Reward] = Field(min_length=1, max_length=MAX_BATCH)


class CreateToken(Body):
    """A new token; see `rank1 serve token create`."""

    role: Literal["browser", "reader", "writer", "admin"]
    studies: list[str] | None = Field(None, description="Default: all studies.", max_length=1000)
    note: str = Field("", max_length=MAX_TEXT)
    days: float | None = Field(None, description="Days until it expires; default: never.")
    origins: list[str] = Field([], description="Pages that may use it (browser).", max_length=100)
    rate: float | None = Field(None, description="Requests a second.")


class CreateLink(Body):
    """A new link that lets anyone read a study."""

    note: str = Field("", max_length=MAX_TEXT)
    days: float | None = Field(None, description="Days until it expires; default: never.")
