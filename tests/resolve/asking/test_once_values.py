"""Values computed once per call survive until the next round, or are refused (design section 6)."""

import math
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, GetCoreSchemaHandler, SecretStr, TypeAdapter, field_serializer
from pydantic_core import CoreSchema, core_schema

from bespeak import Elicit, InvalidSignature, MCPServer, Resolve
from bespeak.resolve.asking.once_values import kept, restored, survives


class Money:
    """A class of an author's own, which pydantic can read and write, and which has no `__eq__`."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls, core_schema.int_schema(), serialization=core_schema.plain_serializer_function_ser_schema(cls._written)
        )

    def _written(self) -> int:
        return self.cents


class Slotted(Money):
    __slots__ = ("extra",)


class Rounded(Money):
    def _written(self) -> int:
        return self.cents // 100 * 100


class Price(BaseModel):
    cents: int


class Discounted(Price):
    pass


class Taxed(Price):
    rate: int


@dataclass
class Line:
    sku: str
    prices: list[Money] = field(default_factory=list[Money])


class Masked(BaseModel):
    card: str

    @field_serializer("card")
    def _mask(self, card: str) -> str:
        return "****" + card[-4:]


def round_trip(hint: Any, value: Any) -> bool:
    adapter = TypeAdapter[Any](hint)
    return survives(value, restored(adapter, kept(adapter, value)))


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Money, Money(5)),
        (list[Money], [Money(5), Money(6)]),
        (dict[str, Money], {"a": Money(5)}),
        (tuple[Money, int], (Money(5), 1)),
        (Line, Line("BULB-2", [Money(5)])),
        (list[Any], [(1, 2), [(3,)]]),
        (list[tuple[int, int]], [(1, 2)]),
        (Price, Discounted(cents=5)),
        (list[Price], [Price(cents=5), Discounted(cents=6)]),
        (float, math.nan),
        (list[float], [1.5, math.nan, math.inf]),
        (set[int], {1, 2}),
        (frozenset[str], frozenset({"a"})),
        (date, date(2026, 11, 16)),
        (Decimal, Decimal("1.10")),
        (int | None, None),
    ],
)
def test_what_survives_is_accepted(hint: Any, value: Any) -> None:
    assert round_trip(hint, value)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Rounded, Rounded(150)),
        (list[Rounded], [Rounded(150)]),
        (Price, Taxed(cents=5, rate=19)),
        (Masked, Masked(card="4111111111111111")),
        (list[Masked], [Masked(card="4111111111111111")]),
        (dict[Any, int], {1: 1}),
        (list[Any], [date(2026, 11, 16)]),
        (list[Any], [{1, 2}]),
    ],
)
def test_what_would_come_back_as_something_else_is_refused(hint: Any, value: Any) -> None:
    assert not round_trip(hint, value)


class Unequal:
    """Like an array: comparing it raises."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as in classes that define __eq__ alone


def test_a_class_whose_own_comparison_fails_does_not_survive() -> None:
    assert not survives(Unequal([1]), Unequal([1]))


def test_attributes_in_slots_are_compared_too() -> None:
    one, other = Slotted(5), Slotted(5)
    one.extra, other.extra = 1, 2
    assert not survives(one, other)
    other.extra = 1
    assert survives(one, other)


class Excluding(BaseModel):
    amount: int = Field(default=0, exclude=True)


class Wrapping(BaseModel):
    inner: Excluding


def registered(returns: Any) -> None:
    async def price() -> Any: ...

    price.__annotations__["return"] = returns

    async def sure(price: Annotated[object, Resolve(price, once=True)]) -> Elicit[bool]:
        return Elicit("Sure?", bool)

    async def pay(ok: Annotated[bool, Resolve(sure)]) -> str: ...

    MCPServer("Shop").add_tool(pay)


@pytest.mark.parametrize(
    ("returns", "what"),
    [
        (SecretStr, "the SecretStr"),
        (list[SecretStr], "the SecretStr inside a union or container"),
        (Excluding, "the excluded field 'amount' of Excluding"),
        (list[Excluding], "the excluded field 'amount' of Excluding"),
        (Wrapping, "the excluded field 'amount' of Excluding"),
    ],
)
def test_what_cannot_survive_by_its_type_is_refused_at_registration(returns: Any, what: str) -> None:
    with pytest.raises(InvalidSignature, match="would not survive until the next round") as raised:
        registered(returns)
    (fault,) = raised.value.faults
    assert f", but {what} would not survive" in fault.problem
    assert fault.fix == "remove once=True, or return a plain value, a model or a dataclass"


@pytest.mark.parametrize("returns", [Price, Line, list[Money], dict[str, int], int, Masked])
def test_what_may_survive_is_registered(returns: Any) -> None:
    registered(returns)
