"""Schemas of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from rank1.errors import InputError, InputTypeError, shown
from rank1.server.problem_details import is_type_error
from rank1.studies.events import MAX_TEXT

__all__ = ["Ask", "AskMany", "Cancel", "Create", "Import", "Revise", "Tell", "TellMany"]

#: The most items in a batch.
MAX_BATCH = 10_000
#: The most levels of a side, and the most sides, in a body.
MAX_LEVELS, MAX_SIDES = 4096, 16
#: The most names in a mapping, and the most cells in a row.
MAX_NAMES = 64


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


class StudyBody(Body):
    """A body whose values the study checks itself: its errors say what it expects."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _leave_types(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Accept values of any type; refuse what is too long, missing or unknown."""
        try:
            return handler(given)
        except ValidationError as error:
            if isinstance(given, dict) and all(
                each["type"].endswith("_type") for each in error.errors()
            ):
                return cls.model_construct(**given)
            raise


def _own_error(value: Any, handler: Callable[[Any], Any]) -> Any:
    """Validate an item of a list; returns the item, or its error."""
    try:
        return handler(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(map(str, first["loc"])) or "the item"
        kind = InputTypeError if is_type_error(first) else InputError
        return kind(field, first.get("input"), f"valid: {first['msg']}")


#: Each item of a list is accepted or refused by itself.
EACH = WrapValidator(_own_error)


def _no_truth(given: Any) -> Any:
    """Refuse true and false, also in lists and mappings, where a number is meant."""
    some = given.values() if isinstance(given, dict) else given
    if any(isinstance(each, bool) for each in (some if isinstance(some, Iterable) else [some])):
        raise ValueError("must be a number, not true or false")
    return given


def _whole(given: Any) -> Any:
    """Refuse true and text, which Pydantic would take for whole numbers."""
    if isinstance(given, bool | str):
        raise PydanticCustomError("int_type", "must be a whole number")
    return given


def _only(*kinds: type) -> BeforeValidator:
    """Refuse a mapping that is too long, or at its first value of another type.

    The first wrong value is enough: Pydantic would make an error for each of 100,000, which takes
    seconds in which the service answers nobody. It can fail fast in lists, but not in mappings.
    """

    def check(given: Any) -> Any:
        if isinstance(given, dict) and len(given) > MAX_NAMES:
            raise ValueError(f"must have at most {MAX_NAMES} names")
        for name, value in given.items() if isinstance(given, dict) else ():
            if type(value) not in kinds:
                words = f"{shown(name)} has an invalid value, {shown(value)}"
                raise PydanticCustomError("values_type", "{words}", {"words": words})
        return given

    return BeforeValidator(check)


Number = Annotated[float, Field(strict=True), BeforeValidator(_no_truth)]
Labels = Annotated[list[str], Field(max_length=MAX_LEVELS, fail_fast=True)]
Sides = Annotated[dict[str, Labels], Field(max_length=MAX_SIDES), _only(list)]
Names = Annotated[dict[str, str], Field(max_length=MAX_NAMES), _only(str)]
Numbers = Annotated[
    dict[str, float], Field(max_length=MAX_NAMES), BeforeValidator(_no_truth), _only(int, float)
]


def _one_of(*names: str, about: str | None = None) -> Any:
    """Describe a field that the study itself validates; its default is the first name."""
    return Field(names[0], description=about, json_schema_extra={"enum": list(names)})


class Create(StudyBody):
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
    goal: str = _one_of(
        "earn", "find", about="earn: show what pays. find: find the best arm, and say when to stop."
    )
    policy: str | None = Field(None, max_length=1000, description="Default: the goal's policy.")
    horizon: int | None = None
    reward_window: float | None = Field(None, description="Seconds until a reward is overdue.")
    on_expiry: str = _one_of("drop", "default", "wait")
    default_reward: float | None = None
    confidence: float = 0.95
    tolerance: float = 0.0
    seed: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    forgetting: float | None = None
    given: Labels | None = Field(None, description="Sides whose level comes with the visitor.")
    new_levels: str = _one_of(
        "refuse", "add", about="What to do about unknown levels of given sides."
    )
    control: Names | None = Field(None, description="A level of each side.")
    floor: float = Field(0.0, description="The smallest share of each level in the running (find).")
    holdout: float = Field(
        0.0, description="The share of units that always see the control (find)."
    )
    min_lift: float = Field(
        0.0, description="The smallest lift that matters, in reward above the lowest (find)."
    )
    guardrails: Annotated[dict[str, Numbers], _only(dict)] | None = None
    repeat: str = _one_of("once", "each", about="Visits of a unit that count.")


class Ask(StudyBody):
    """The unit that a suggestion is for, and data to store with the suggestion."""

    unit: str | None = None
    #: A JSON object of up to 4 KB.
    data: dict[str, Any] | None = None
    #: The levels of given sides.
    given: Names | None = None


class AskOne(Ask):
    """One ask in a batch, with a key of its own."""

    key: str | None = None


class AskMany(Body):
    """Either a number of suggestions under one key, or a list of asks, each answered by itself."""

    count: Annotated[int | None, BeforeValidator(_whole)] = Field(None, ge=1, le=MAX_BATCH)
    #: Data to store with each of the `count` suggestions.
    data: dict[str, Any] | None = None
    #: The levels of given sides, for each of the `count` suggestions.
    given: Names | None = None
    asks: list[Annotated[AskOne, EACH]] | None = Field(None, min_length=1, max_length=MAX_BATCH)


class Tell(StudyBody):
    """A reward."""

    id: str
    reward: Number
    guardrails: Numbers | None = None


class TellMany(Body):
    """Rewards, each answered by itself."""

    reports: list[Annotated[Tell, EACH]] = Field(min_length=1, max_length=MAX_BATCH)


class Cancel(StudyBody):
    """A suggestion that was never shown."""

    id: str


class Revise(StudyBody):
    """Levels to add and to retire, by side; with two sides also as rows and columns."""

    add: Sides = {}
    retire: Sides = {}
    add_rows: Labels = []
    retire_rows: Labels = []
    add_columns: Labels = []
    retire_columns: Labels = []


class Import(Body):
    """Rewards from elsewhere.

    Each item is a list, a level of every side followed by the reward; or an object with the levels
    by side and "reward" and "count", or "successes" and "trials".
    """

    rewards: list[
        Annotated[Any, BeforeValidator(_no_truth), WithJsonSchema({"type": ["array", "object"]})]
    ] = Field(min_length=1, max_length=MAX_BATCH, fail_fast=True)


class Record(Body):
    """An exposure whose levels were drawn from a version's shares; or a client's fallback."""

    unit: str = Field(max_length=MAX_TEXT)
    version: int | None = None
    levels: Names
    reward: Number | None = None
    guardrails: Numbers | None = None
    fallback: bool = False


class Records(Body):
    """Exposures, each answered by itself."""

    records: list[Record] = Field(min_length=1, max_length=MAX_BATCH)


class Reward(Body):
    """The reward of a unit."""

    unit: str = Field(max_length=MAX_TEXT)
    reward: Number
    guardrails: Numbers | None = None


class Rewards(Body):
    """Rewards by unit, each answered by itself."""

    rewards: list[Reward] = Field(min_length=1, max_length=MAX_BATCH)


class Forget(StudyBody):
    """A unit to forget."""

    unit: str = Field(max_length=MAX_TEXT)


class CreateToken(Body):
    """A new token; see `rank1 serve token create`."""

    role: Literal["browser", "reader", "writer", "admin"]
    studies: Labels | None = Field(None, description="Default: all studies.", max_length=1000)
    note: str = Field("", max_length=MAX_TEXT)
    days: float | None = Field(None, description="Days until it expires; default: never.")
    origins: Labels = Field([], description="Pages that may use it (browser).", max_length=100)
    rate: float | None = Field(None, description="Requests a second.")


class CreateLink(Body):
    """A new link that lets anyone read a study."""

    note: str = Field("", max_length=MAX_TEXT)
    days: float | None = Field(None, description="Days until it expires; default: never.")
