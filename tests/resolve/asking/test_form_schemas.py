"""Forms: from a type to the flat schema that the client is shown (design 5)."""

import dataclasses
import math
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NewType, NotRequired, cast
from uuid import UUID

import pytest
from pydantic import AliasChoices, AnyUrl, BaseModel, ConfigDict, Field, RootModel, create_model
from typing_extensions import TypeAliasType, TypedDict

from bespeak.resolve.asking.form_schemas import FormError, form_of


class Colour(Enum):
    RED = "r"
    BLUE = "b"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Size(StrEnum):
    S = "small"
    L = "large"


class Inner(BaseModel):
    x: int


SizeAlias = TypeAliasType("SizeAlias", Literal["S", "M"])
OrderId = NewType("OrderId", int)


def shown(wanted: Any) -> dict[str, Any]:
    """The one property of a form that asks for one value, without its title."""
    schema = form_of(wanted).schema
    assert schema.keys() <= {"type", "properties", "required"}
    assert schema["type"] == "object"
    assert schema["properties"].keys() == {"value"}
    return {key: value for key, value in schema["properties"]["value"].items() if key != "title"}


def field_shown(annotation: Any, **field: Any) -> dict[str, Any]:
    """The property of one model field, without its title."""
    model = cast(
        "type[BaseModel]", type("Model", (BaseModel,), {"__annotations__": {"x": annotation}, "x": Field(**field)})
    )
    schema = form_of(model).schema
    return {key: value for key, value in schema["properties"]["x"].items() if key != "title"}


# Single values


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (Decimal, {"type": "number"}),
        (str, {"type": "string"}),
        (date, {"type": "string", "format": "date"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (AnyUrl, {"type": "string", "format": "uri", "minLength": 1}),
        (UUID, {"type": "string"}),
        (OrderId, {"type": "integer"}),
        (RootModel[int], {"type": "integer"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "string", "enum": ["1", "2"]}),
        (SizeAlias, {"type": "string", "enum": ["S", "M"]}),
        (Colour, {"type": "string", "enum": ["r", "b"]}),
        (Size, {"type": "string", "enum": ["small", "large"]}),
        (Level, {"type": "string", "enum": ["LOW", "HIGH"]}),
        (list[Literal["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
        (list[Literal[1, 2]], {"type": "array", "items": {"type": "string", "enum": ["1", "2"]}}),
        (set[Level], {"type": "array", "items": {"type": "string", "enum": ["LOW", "HIGH"]}}),
        (tuple[Colour, ...], {"type": "array", "items": {"type": "string", "enum": ["r", "b"]}}),
        (
            Annotated[int, Field(ge=1, le=3, description="d")],
            {"type": "integer", "minimum": 1, "maximum": 3, "description": "d"},
        ),
    ],
)
def test_one_value_is_asked_for_in_a_property_named_value(wanted: Any, expected: dict[str, Any]) -> None:
    assert shown(wanted) == expected
    assert form_of(wanted).schema["required"] == ["value"]
    assert form_of(wanted).single


def test_another_name_for_the_same_member_is_not_another_choice() -> None:
    class Shade(Enum):
        RED = "r"
        CRIMSON = "r"
        ONE = 1
        UNO = 1

    assert shown(Shade)["enum"] == ["r", "ONE"]


def test_a_choice_of_none_does_not_become_a_default_nobody_gave() -> None:
    assert "default" not in shown(Literal["a", None])


def test_an_optional_value_is_not_required_and_has_no_null_arm() -> None:
    assert form_of(int | None).schema == {
        "type": "object",
        "properties": {"value": {"title": "Value", "type": "integer"}},
    }


def test_choices_known_at_run_time_are_titled_by_one_of() -> None:
    form = form_of(str, {"ord-1": "Order 1", "ord-2": "Order 2"})
    assert form.schema == {
        "type": "object",
        "properties": {
            "value": {
                "title": "Value",
                "type": "string",
                "oneOf": [{"const": "ord-1", "title": "Order 1"}, {"const": "ord-2", "title": "Order 2"}],
            }
        },
        "required": ["value"],
    }


# Fields


@pytest.mark.parametrize(
    ("annotation", "field", "expected"),
    [
        (str, {"min_length": 2, "max_length": 9}, {"type": "string", "minLength": 2, "maxLength": 9}),
        (str, {"pattern": "a+"}, {"type": "string"}),
        (str, {"json_schema_extra": {"format": "email"}}, {"type": "string", "format": "email"}),
        (str, {"json_schema_extra": {"format": "time"}}, {"type": "string"}),
        (str, {"description": "Why?"}, {"type": "string", "description": "Why?"}),
        (int, {"ge": 1, "le": 5}, {"type": "integer", "minimum": 1, "maximum": 5}),
        (int, {"gt": 0, "lt": 6}, {"type": "integer", "minimum": 1, "maximum": 5}),
        (float, {"ge": 0.5, "le": 1.5}, {"type": "number", "minimum": 0.5, "maximum": 1.5}),
        (float, {"gt": 0, "lt": 1}, {"type": "number"}),
        (Decimal, {"ge": 0, "le": Decimal("9.5")}, {"type": "number", "minimum": 0, "maximum": 9.5}),
        (Decimal, {"gt": 0, "decimal_places": 2}, {"type": "number"}),
        (
            list[Literal["a", "b"]],
            {"min_length": 1, "max_length": 2},
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
        ),
        (int | None, {"ge": 1}, {"type": "integer", "minimum": 1}),
        (Literal["a", "b"] | None, {}, {"type": "string", "enum": ["a", "b"]}),
    ],
)
def test_bounds_and_formats_reach_the_schema_within_the_grammar(
    annotation: Any, field: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert field_shown(annotation, **field) == expected


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (bool, False, False),
        (float, 0.5, 0.5),
        (Decimal, Decimal("1.5"), 1.5),
        (date, date(2026, 7, 28), "2026-07-28"),
        (Literal[1, 2], 2, "2"),
        (Colour, Colour.BLUE, "b"),
        (Level, Level.HIGH, "HIGH"),
        (list[Literal[1, 2]], [1], ["1"]),
        (set[Level], {Level.LOW}, ["LOW"]),
        (int | None, 5, 5),
        (Colour | None, Colour.RED, "r"),
    ],
)
def test_a_default_reaches_the_schema_as_the_client_would_send_it(annotation: Any, default: Any, expected: Any) -> None:
    assert field_shown(annotation, default=default)["default"] == expected


@pytest.mark.parametrize(("annotation", "default"), [(int | None, None), (float, math.inf), (int, "not checked")])
def test_a_default_the_form_could_not_hold_is_left_out(annotation: Any, default: Any) -> None:
    assert "default" not in field_shown(annotation, default=default)


def test_a_stricter_inclusive_bound_beside_an_exclusive_one_stands() -> None:
    assert field_shown(int, ge=5, gt=3, le=7, lt=9) == {"type": "integer", "minimum": 5, "maximum": 7}


def test_a_bound_that_json_cannot_carry_is_left_out() -> None:
    assert field_shown(float, ge=0, le=math.inf) == {"type": "number", "minimum": 0}


def test_titles_of_choices_travel_by_one_of_and_any_of() -> None:
    red, blue = {"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}
    assert field_shown(Colour, json_schema_extra={"oneOf": [red, blue]}) == {"type": "string", "oneOf": [red, blue]}
    assert field_shown(list[Colour], json_schema_extra={"items": {"anyOf": [red, blue]}}) == {
        "type": "array",
        "items": {"anyOf": [red, blue]},
    }


def test_a_choice_of_numbers_given_by_hand_does_not_become_an_integer_enum() -> None:
    try:
        property_ = field_shown(int, json_schema_extra={"enum": [1, 2]})
    except FormError:
        return
    assert "enum" not in property_


def test_titles_and_aliases_of_a_model_reach_the_schema() -> None:
    class Order(BaseModel):
        model_config = ConfigDict(title="not shown")
        copies: int = Field(title="How many", alias="howMany")
        note: str = Field("", validation_alias="noteIn", serialization_alias="noteOut")
        where: str = Field("here", validation_alias=AliasChoices("place", "spot"))

    assert form_of(Order).schema == {
        "type": "object",
        "properties": {
            "howMany": {"title": "How many", "type": "integer"},
            "noteIn": {"title": "Notein", "type": "string", "default": ""},
            "place": {"title": "Place", "type": "string", "default": "here"},
        },
        "required": ["howMany"],
    }


def test_a_dataclass_is_a_form() -> None:
    @dataclasses.dataclass
    class Order:
        title: str
        copies: int = 1

    assert form_of(Order).schema == {
        "type": "object",
        "properties": {
            "title": {"title": "Title", "type": "string"},
            "copies": {"title": "Copies", "type": "integer", "default": 1},
        },
        "required": ["title"],
    }


def test_a_dataclass_field_that_is_not_filled_from_outside_is_not_asked_for() -> None:
    @dataclasses.dataclass
    class Order:
        title: str
        made: int = dataclasses.field(init=False, default=0)

    assert form_of(Order).schema["properties"].keys() == {"title"}


def test_a_typed_dict_is_a_form() -> None:
    class Order(TypedDict):
        title: str
        note: NotRequired[str]

    assert form_of(Order).schema == {
        "type": "object",
        "properties": {"title": {"title": "Title", "type": "string"}, "note": {"title": "Note", "type": "string"}},
        "required": ["title"],
    }


class Defaults(BaseModel):
    sure: bool = True
    made: bool = Field(default_factory=bool)
    size: Literal["S", "M"] = "M"
    level: Level = Level.LOW
    perhaps: bool | None = False
    days: list[Literal["Mon", "Tue"]] = ["Mon"]
    extras: list[Literal["card"]] = Field(default_factory=list[Literal["card"]])
    copies: int = 1
    note: str = ""
    gift: bool | None = None
    wrap: Literal["paper", None] = None


def test_choices_with_a_default_are_required_and_show_it() -> None:
    schema = form_of(Defaults).schema
    assert schema["required"] == ["sure", "made", "size", "level", "perhaps", "days"]
    shown = {name: one["default"] for name, one in schema["properties"].items() if "default" in one}
    assert shown == {
        "sure": True,
        "size": "M",
        "level": "LOW",
        "perhaps": False,
        "days": ["Mon"],
        "copies": 1,
        "note": "",
    }


def test_a_lenient_form_requires_only_what_has_no_default() -> None:
    lenient = form_of(Defaults, lenient=True)
    assert "required" not in lenient.schema
    assert lenient.schema["properties"] == form_of(Defaults).schema["properties"]
    assert "required" in form_of(Defaults).schema


def test_a_choice_that_a_typed_dict_does_not_require_is_required_in_its_form() -> None:
    class Extras(TypedDict, total=False):
        gift: bool
        colour: Literal["red", "blue"]
        wrapped: bool | None
        note: str

    form = form_of(Extras)
    assert form.schema["required"] == ["gift", "colour"]
    assert not form.is_left_empty({})
    assert "required" not in form_of(Extras, lenient=True).schema


@pytest.mark.parametrize(("default", "empty"), [(None, False), ("", True), ("one", True)])
def test_a_form_is_left_empty_only_if_it_has_a_default_other_than_none(default: Any, empty: bool) -> None:
    form = form_of(create_model("Order", copies=(str | None, default), note=(str | None, None)))
    assert form.is_left_empty({}) is empty


def test_a_model_without_fields_is_a_form_that_asks_for_consent_only() -> None:
    class Nothing(BaseModel):
        pass

    assert form_of(Nothing).schema == {"type": "object", "properties": {}}


# Rendered once, and always the same


def test_a_schema_is_rendered_once_per_type() -> None:
    assert form_of(Inner) is form_of(Inner)


def test_choices_are_shown_in_their_own_order_whatever_was_rendered_before() -> None:
    # The two are equal for Python, and a worker that has seen only one of them must render the same question.
    assert shown(Literal["one", "two"])["enum"] == ["one", "two"]
    assert shown(Literal["two", "one"])["enum"] == ["two", "one"]


def test_a_type_that_cannot_be_hashed_is_rendered_all_the_same() -> None:
    assert shown(Annotated[int, Field(ge=1), ["a list has no hash"]]) == {"type": "integer", "minimum": 1}
