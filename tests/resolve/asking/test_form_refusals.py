"""Which models can refuse what the flat schemas of their forms allow: an answer to one of these takes a try."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict

from bespeak.resolve.asking.form_schemas import form_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Plain(BaseModel):
    """Nothing that the flat schema does not show."""

    model_config = ConfigDict(extra="forbid", title="A form")

    name: str = Field(min_length=1, max_length=9, description="Your name", title="Name")
    number: int = Field(3, ge=1, le=9)
    above: int = Field(gt=0, lt=10)
    part: float = Field(0.5, ge=0, le=1)
    sure: bool = False
    colour: Colour = Colour.RED
    size: Size | None = None
    word: Literal["a", "b"] = Field("a", alias="Word")
    words: list[Literal["a", "b"]] = Field(default_factory=list, min_length=0, max_length=2)
    note: str | None = None


@dataclass
class Record:
    name: str
    number: int = 3


class Table(TypedDict):
    name: str


@pytest.mark.parametrize(
    "wanted", [Plain, Record, Table, bool, int, float, str, Literal["a", "b"], Colour, list[Literal["a"]]]
)
def test_what_the_flat_schema_shows_takes_no_try(wanted: Any) -> None:
    assert not form_of(wanted).takes_tries


def test_a_choice_that_is_known_only_at_run_time_takes_no_try() -> None:
    assert not form_of(str, {"a": "A"}).takes_tries


def check(value: Any) -> Any:
    return value


class WithFieldValidator(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def check(cls, value: str) -> str:
        return value


class WithModelValidator(BaseModel):
    name: str

    @model_validator(mode="after")
    def check(self) -> "WithModelValidator":
        return self


class WithInit(BaseModel):
    name: str

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)


class WithPostInit(BaseModel):
    name: str

    def model_post_init(self, context: Any, /) -> None:
        raise ValueError


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    name: str = Field(min_length=1)


class Short(BaseModel):
    model_config = ConfigDict(str_max_length=3)

    name: str


@dataclass
class WithPost:
    name: str

    def __post_init__(self) -> None:
        raise ValueError


class Widened(BaseModel):
    number: int = Field(ge=1, le=9, json_schema_extra={"minimum": 0, "maximum": 9999})


class Unbounded(BaseModel):
    model_config = ConfigDict(json_schema_extra={"properties": {"name": {"type": "string"}}})

    name: str = Field(max_length=4)


class Inherits(WithFieldValidator):
    number: int = 0


@pytest.mark.parametrize(
    "wanted",
    [
        WithFieldValidator,
        WithModelValidator,
        WithInit,
        WithPostInit,
        Stripped,
        Short,
        WithPost,
        Inherits,
        Widened,
        Unbounded,
        Annotated[Literal["a", "b"], WithJsonSchema({"type": "string"})],
        Annotated[int, Field(ge=7, le=7), WithJsonSchema({"type": "integer"})],
        Annotated[bool, WithJsonSchema({"type": "string"})],
        Annotated[str, StringConstraints(pattern="^[0-9]+$")],
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)],
        Annotated[str, AfterValidator(check)],
        Annotated[bool, BeforeValidator(check)],
        Annotated[int, Field(multiple_of=2)],
        Annotated[float, Field(gt=0)],
        Annotated[int, Field(strict=True)],
        date,
        AnyUrl,
        Decimal,
    ],
)
def test_what_may_be_refused_beyond_the_flat_schema_takes_a_try(wanted: Any) -> None:
    assert form_of(wanted).takes_tries
