"""Reading a filled form (design section 5): the flat schema strictly, then the author's model as it is."""

import dataclasses
import math
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from bespeak.resolve.asking.form_schemas import FormError, Refused, form_of


class Colour(Enum):
    RED = "r"
    BLUE = "b"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Planet(Enum):
    EARTH = (5.97, 6.37)
    MARS = (0.64, 3.39)


class Day(Enum):
    FIRST = date(2026, 1, 1)
    SECOND = date(2026, 1, 2)


class Thing(Enum):
    ONE = object()
    TWO = object()


WHOLE = "value: must be a whole number"
NUMBER = "value: must be a number"
STRING = "value: must be a string"
CHOICE = "value: must be one of the offered choices"
CHOICES = "value: must contain only offered choices"


@pytest.mark.parametrize(
    ("wanted", "value", "fault"),
    [
        (int, "5", WHOLE),
        (int, True, WHOLE),
        (int, 5.5, WHOLE),
        (int, math.nan, WHOLE),
        (Annotated[int, Field(ge=1)], 0, "value: must be at least 1"),
        pytest.param(Annotated[int, Field(le=9)], 10**400, "value: must be at most 9", id="a number beyond floats"),
        (Annotated[int, Field(gt=1)], 1, "value: must be at least 2"),
        (float, "0.5", NUMBER),
        (float, math.nan, NUMBER),
        (float, {}, NUMBER),
        (Annotated[float, Field(ge=0.5)], 0.25, "value: must be at least 0.5"),
        (bool, "yes", "value: must be true or false"),
        (bool, 1, "value: must be true or false"),
        (str, 5, STRING),
        (date, 20260101, STRING),
        (Annotated[str, Field(min_length=2)], "a", "value: must have at least 2 characters"),
        (Annotated[str, Field(max_length=2)], "abc", "value: must have at most 2 characters"),
        (Literal["a", "b"], "c", CHOICE),
        (Literal[1, 2], 1, STRING),
        (Colour, "RED", CHOICE),
        (Level, 1, STRING),
        (Level, "1", CHOICE),
        (list[Colour], "r", "value: must be a list of choices"),
        (list[Colour], ["r", "g"], CHOICES),
        (list[Colour], {"r": 1}, "value: must be a list of choices"),
        (Annotated[list[Colour], Field(min_length=1)], [], "value: must contain at least 1 choices"),
        (Annotated[list[Colour], Field(max_length=1)], ["r", "b"], "value: must contain at most 1 choices"),
    ],
)
def test_the_flat_schema_is_read_strictly(wanted: Any, value: Any, fault: str) -> None:
    assert form_of(wanted).faults({"value": value}) == [fault]


@pytest.mark.parametrize("wanted", [int, float, Decimal])
def test_a_number_no_float_can_hold_is_read_without_a_crash(wanted: Any) -> None:
    assert all("value: must be" in fault for fault in form_of(wanted).faults({"value": 10**400}))


@pytest.mark.parametrize(
    ("wanted", "value", "expected"),
    [
        (int, 5, 5),
        (int, 5.0, 5),
        (float, 3, 3.0),
        (Decimal, 0.1, Decimal("0.1")),
        (bool, False, False),
        (str, "", ""),
        (date, "2026-07-28", date(2026, 7, 28)),
        (Literal[1, 2], "2", 2),
        (Literal[True, False], "False", False),
        (Literal[Colour.RED, Colour.BLUE], "b", Colour.BLUE),
        (Literal[Level.LOW], "1", Level.LOW),
        (Colour, "b", Colour.BLUE),
        (Level, "HIGH", Level.HIGH),
        (Planet, "MARS", Planet.MARS),
        (Day, "SECOND", Day.SECOND),
        (Thing, "TWO", Thing.TWO),
        (list[Literal[1, 2]], ["2", "1"], [2, 1]),
        (set[Level], ["LOW", "LOW"], {Level.LOW}),
        (list[Planet], ["EARTH"], [Planet.EARTH]),
        (int | None, None, None),
        (Colour | None, "r", Colour.RED),
    ],
)
def test_what_fits_becomes_the_authors_value(wanted: Any, value: Any, expected: Any) -> None:
    form = form_of(wanted)
    assert form.faults({"value": value}) == []
    read = form.value({"value": value})
    assert read == expected
    assert type(read) is type(expected)


def test_a_missing_required_field_is_a_fault() -> None:
    assert form_of(int).faults({}) == ["value: is required"]


def test_all_faults_are_listed_without_repeating_what_was_sent() -> None:
    class Order(BaseModel):
        title: str
        copies: int

    faults = form_of(Order).faults({"copies": "a lot of secret text"})
    assert faults == ["title: is required", "copies: must be a whole number"]


def test_an_optional_value_may_be_left_out_because_the_form_does_not_require_it() -> None:
    form = form_of(int | None)
    assert form.faults({}) == []
    assert form.value({}) is None


def test_an_optional_field_may_be_null_and_another_may_not() -> None:
    class Order(BaseModel):
        note: str | None = "x"
        title: str = "y"

    form = form_of(Order)
    assert form.faults({"note": None}) == []
    assert form.value({"note": None}) == Order(note=None)
    assert form.faults({"title": None}) == ["title: must be a string"]


def test_what_is_left_out_gets_the_models_default() -> None:
    class Order(BaseModel):
        copies: int = 3
        days: list[Literal["Mon"]] = Field(default_factory=list[Literal["Mon"]])

    assert form_of(Order).value({}) == Order(copies=3, days=[])


# Unknown fields


def test_an_unknown_field_is_ignored_where_the_model_ignores_it() -> None:
    class Order(BaseModel):
        title: str

    form = form_of(Order)
    assert form.faults({"title": "Dune", "more": {"deep": [1]}}) == []
    assert form.value({"title": "Dune", "more": {"deep": [1]}}) == Order(title="Dune")


def test_an_unknown_field_is_refused_where_the_model_refuses_it() -> None:
    class Order(BaseModel):
        model_config = ConfigDict(extra="forbid")
        title: str

    assert form_of(Order).faults({"title": "Dune", "more": 1}) == ["more: unknown field"]


# Aliases and settings


def test_an_answer_is_read_by_the_names_the_form_shows() -> None:
    class Order(BaseModel):
        copies: int = Field(validation_alias="howMany", serialization_alias="number")
        place: str = Field("here", validation_alias=AliasChoices("where", "spot"))

    assert form_of(Order).value({"howMany": 2, "where": "there"}).model_dump() == {"copies": 2, "place": "there"}


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    copies: int = Field(1, alias="howMany")


@pydantic_dataclass(config=ConfigDict(validate_by_alias=False, validate_by_name=True))
class ByNameToo:
    copies: int = Field(1, alias="howMany")


class FromInside(BaseModel):
    copies: int = Field(1, validation_alias=AliasPath("counts", 0))


class FromSomewhereInside(BaseModel):
    copies: int = Field(1, validation_alias=AliasChoices(AliasPath("counts", 0), AliasPath("numbers", 0)))


class FromInsideOrFlat(BaseModel):
    copies: int = Field(1, validation_alias=AliasChoices(AliasPath("counts", 0), "number"))


@pydantic_dataclass
class FromInsideToo:
    copies: int = Field(1, validation_alias=AliasPath("counts", 0))


@pytest.mark.parametrize(
    "wanted", [ByName, ByNameToo, FromInside, FromSomewhereInside, FromInsideOrFlat, FromInsideToo]
)
def test_no_alias_makes_an_answer_vanish_behind_the_default(wanted: type[Any]) -> None:
    try:
        form = form_of(wanted)
    except FormError:  # as good: what cannot be read back is not asked for
        return
    (name,) = form.schema["properties"]
    assert form.value({name: 7}).copies == 7


def test_a_strict_model_still_reads_what_json_cannot_carry() -> None:
    class Order(BaseModel):
        model_config = ConfigDict(strict=True)
        when: date
        level: Level
        price: Decimal
        colours: set[Colour]
        number: Literal[1, 2]

    content = {"when": "2026-07-28", "level": "LOW", "price": 0.1, "colours": ["r"], "number": "2"}
    form = form_of(Order)
    assert form.faults(content) == []
    assert form.value(content) == Order(
        when=date(2026, 7, 28), level=Level.LOW, price=Decimal("0.1"), colours={Colour.RED}, number=2
    )


def test_a_model_that_keeps_enum_values_gets_them() -> None:
    class Order(BaseModel):
        model_config = ConfigDict(use_enum_values=True)
        level: Level

    assert form_of(Order).value({"level": "HIGH"}).level == 2


def test_dataclasses_and_typed_dicts_are_read_as_themselves() -> None:
    @dataclasses.dataclass
    class Order:
        title: str
        copies: int = 1

    class Note(TypedDict):
        text: str

    assert form_of(Order).value({"title": "Dune"}) == Order("Dune", 1)
    assert form_of(Note).value({"text": "x", "more": 1}) == {"text": "x"}
    assert form_of(RootModel[int]).value({"value": 3}) == RootModel[int](3)


# What the author's model refuses


class Booking(BaseModel):
    seats: int = 1
    when: date = date(2026, 7, 28)
    code: str = Field("aa", pattern="^a+$")
    price: float = Field(1, gt=0)
    parts: int = Field(2, multiple_of=2)

    @field_validator("seats")
    @classmethod
    def not_thirteen(cls, seats: int) -> int:
        if seats == 13:
            raise ValueError("there is no row 13")
        if seats == 14:
            raise PydanticCustomError("row", "row {row} is closed", {"row": 14})
        return seats

    @model_validator(mode="after")
    def affordable(self) -> "Booking":
        assert self.seats * self.price < 1000, "over the limit"
        return self


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"seats": 13}, "seats: there is no row 13"),
        ({"seats": 14}, "seats: row 14 is closed"),
        ({"seats": 1000}, "over the limit"),
        ({"when": "tomorrow"}, "when: Input should be a valid date"),
        ({"code": "b"}, "code: String should match pattern"),
        ({"price": 0}, "price: Input should be greater than 0"),
        ({"parts": 3}, "parts: Input should be a multiple of 2"),
        ({"seats": 13, "code": "b"}, "seats: there is no row 13; code: String should match"),
    ],
)
def test_what_only_the_model_rejects_is_reported_in_the_words_of_the_validator(
    content: dict[str, Any], words: str
) -> None:
    form = form_of(Booking)
    assert form.faults(content) == []
    with pytest.raises(Refused) as caught:
        form.value(content)
    assert str(caught.value).startswith(words)
    assert "pydantic" not in str(caught.value)


def test_a_slip_in_a_single_value_does_not_name_the_property() -> None:
    with pytest.raises(Refused, match=r"^Input should be a valid date"):
        form_of(date).value({"value": "tomorrow"})


def test_a_slip_in_one_field_of_a_strict_model_says_nothing_of_the_others() -> None:
    class Visit(BaseModel):
        model_config = ConfigDict(strict=True)
        when: date
        level: Level

        @field_validator("level")
        @classmethod
        def is_open(cls, level: Level) -> Level:
            if level is Level.HIGH:
                raise ValueError("closed")
            return level

    with pytest.raises(Refused, match=r"^level: closed$"):
        form_of(Visit).value({"when": "2026-07-28", "level": "HIGH"})


def test_what_a_dataclass_refuses_is_a_slip_too() -> None:
    @dataclasses.dataclass
    class Order:
        copies: int

        def __post_init__(self) -> None:
            if self.copies > 5:
                raise ValueError("five at most")

    with pytest.raises(Refused, match=r"^five at most$"):
        form_of(Order).value({"copies": 6})
