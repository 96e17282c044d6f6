"""What registering checks beyond signatures: forms, schemas given by hand, and all faults told at once (design 4, rule five)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, Field, SecretBytes, SecretStr

from bespeak import Elicit, InvalidSignature, MCPServer, Resolve, ToolError
from tests.resolve.positions import Position, as_tool, below_a_tool, everywhere, refusal


async def check_stock(title: str) -> int:
    return len(title)


def asking(wanted: Any) -> Callable[..., Any]:
    async def ask(title: str) -> Any: ...

    ask.__annotations__["return"] = wanted | Elicit[wanted]
    return ask


# Forms


class Inner(BaseModel):
    street: str


class Nested(BaseModel):
    address: Inner


class NestedMaybe(BaseModel):
    address: Inner | None = None


class Mapped(BaseModel):
    prices: dict[str, int]


class Tagged(BaseModel):
    tags: list[str]


@dataclass
class TaggedDataclass:
    tags: list[int]


class Either(BaseModel):
    amount: int | str


class WithMarker(BaseModel):
    stock: Annotated[int, Resolve(check_stock)]


@dataclass
class Opaque:
    event: threading.Event


class Undefined(BaseModel):
    price: "Missing"  # pyright: ignore[reportUndefinedVariable] - on purpose  # noqa: F821


@below_a_tool
@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (Nested, "field 'address' of Nested is nested, and a form must be flat"),
        (NestedMaybe, "field 'address' of NestedMaybe is nested, and a form must be flat"),
        (Mapped, "field 'prices' of Mapped is nested, and a form must be flat"),
        (dict[str, int], "is nested, and a form must be flat"),
        (Tagged, "field 'tags' of Tagged is a list without fixed choices, and a form allows only lists of choices"),
        (TaggedDataclass, "field 'tags' of TaggedDataclass is a list without fixed choices"),
        (list[str], "is a list without fixed choices, and a form allows only lists of choices"),
        (Either, "field 'amount' of Either has no single plain type"),
        (WithMarker, "WithMarker has a `Resolve` on field 'stock' of WithMarker"),
        (Opaque, "Opaque"),
        (Undefined, "Undefined"),
        (threading.Event, "Event cannot be used in a form"),
    ],
    ids=str,
)
async def test_a_form_the_protocol_does_not_allow_is_refused(position: Position, wanted: Any, problem: str) -> None:
    error = await refusal(position, asking(wanted))

    (fault,) = error.faults
    assert fault.problem.startswith("the form cannot be shown: ")
    assert problem in fault.problem
    assert fault.fix
    assert fault.place.startswith(f"{__file__}:")


class Login(BaseModel):
    password: SecretStr


class MaybeLogin(BaseModel):
    key: SecretBytes | None = None


@dataclass
class LoginDataclass:
    password: SecretStr


@below_a_tool
@pytest.mark.parametrize("wanted", [Login, MaybeLogin, LoginDataclass, SecretStr], ids=lambda wanted: wanted.__name__)
async def test_a_secret_in_a_form_is_refused_with_a_pointer_to_url_questions(position: Position, wanted: Any) -> None:
    error = await refusal(position, asking(wanted))

    (fault,) = error.faults
    assert "is a secret, and the protocol forbids secrets in forms" in fault.problem
    assert "URL question" in fault.fix


class NamedLikeOne(BaseModel):
    api_key: str


@below_a_tool
async def test_a_field_merely_named_like_a_secret_is_a_warning(position: Position) -> None:
    mcp = MCPServer("shop")

    with pytest.warns(UserWarning, match=r"field 'api_key' of resolver 'ask' is named like a secret.* URL question"):
        position(mcp, asking(NamedLikeOne))

    assert len(await mcp.list_tools()) == 1


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Flat(BaseModel):
    name: str = Field(min_length=1)
    copies: int | None = None
    sizes: list[Size] = []
    colour: Literal["red", "blue"] = "red"


@pytest.mark.parametrize("wanted", [Flat, bool, int, float, str, Size, list[Literal["a", "b"]]], ids=str)
@below_a_tool
def test_a_flat_form_is_fine(position: Position, wanted: Any) -> None:
    position(MCPServer("shop"), asking(wanted))


# Schemas given by hand, and aliases

SHOWING: dict[str, dict[str, Any]] = {
    "properties": {"type": "object", "properties": {"title": {}, "stock": {}}},
    "required": {"type": "object", "properties": {"title": {}}, "required": ["stock"]},
    "allOf": {"type": "object", "allOf": [{"properties": {"stock": {}}}]},
    "anyOf": {"type": "object", "anyOf": [{"properties": {"stock": {}}}, {"properties": {"title": {}}}]},
    "reference": {
        "type": "object",
        "$ref": "#/$defs/Order",
        "$defs": {"Order": {"type": "object", "properties": {"stock": {}}}},
    },
}


@pytest.mark.parametrize("schema", SHOWING.values(), ids=SHOWING)
async def test_an_input_schema_that_shows_a_resolved_parameter_is_refused(schema: dict[str, Any]) -> None:
    mcp = MCPServer("shop")

    async def sell(title: str, stock: Annotated[int, Resolve(check_stock)]) -> None: ...

    with pytest.raises(InvalidSignature) as caught:
        mcp.add_tool(sell, input_schema=schema)

    (fault,) = caught.value.faults
    assert fault.problem == "the input schema shows 'stock', which is resolved"
    assert fault.fix == "take 'stock' out of the schema"
    assert fault.place == f"{__file__}:{sell.__code__.co_firstlineno}"
    assert await mcp.list_tools() == []


async def test_an_input_schema_that_shows_arguments_only_is_taken_as_it_is() -> None:
    mcp = MCPServer("shop")
    schema = {"type": "object", "properties": {"title": {"type": "string", "description": "stock"}}}

    @mcp.tool(input_schema=schema)
    async def sell(title: str, stock: Annotated[int, Resolve(check_stock)]) -> None: ...

    (tool,) = await mcp.list_tools()
    assert tool.input_schema == schema


async def test_an_argument_whose_alias_is_the_name_of_a_resolved_parameter_is_refused() -> None:
    async def sell(
        title: str, copies: Annotated[int, Field(alias="stock")], stock: Annotated[int, Resolve(check_stock)]
    ) -> None: ...

    error = await refusal(as_tool, sell)

    assert "an argument can be sent as 'stock', which is resolved" in str(error)
    assert "give it an alias other than 'stock'" in str(error)


@pytest.mark.parametrize(
    "field",
    [Field(alias="held"), Field(validation_alias="held"), Field(validation_alias=AliasChoices("held", "stock"))],
    ids=["alias", "validation alias", "choices"],
)
async def test_a_resolved_parameter_cannot_be_supplied_by_name_or_alias(field: Any) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str, stock: Annotated[int, field, Resolve(check_stock)] = 0) -> int:
        return stock

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["title"]
    result = await mcp.call_tool("sell", {"title": "Dune", "stock": 99, "held": 98})
    assert result.structured_content == {"result": 4}


async def test_no_argument_takes_what_is_sent_under_the_name_of_a_resolved_parameter() -> None:
    mcp = MCPServer("shop")

    async def sell(
        title: Annotated[str, Field(validation_alias=AliasChoices("title", "stock"))],
        stock: Annotated[int, Resolve(check_stock)],
    ) -> None: ...

    # Refusing the alias would do as well as dropping what is sent (design 5.2).
    async def use() -> None:
        mcp.add_tool(sell)
        await mcp.call_tool("sell", {"stock": "Dune"})

    with pytest.raises((InvalidSignature, ToolError)):
        await use()


# All at once


async def price(amount: int, titel: str) -> int: ...


async def consent(title: str, price: Annotated[str, Resolve(price)]) -> Nested | Elicit[Nested]: ...


async def sell_everything(
    title: int,
    basket: list[Annotated[int, Resolve(check_stock)]],
    consent: Annotated[Nested, Resolve(consent, once=True, guard=True)],
    stock: Annotated[int, Resolve] = 0,
) -> None: ...


ALL = [
    ("sell_everything: parameter 'basket' has a `Resolve` inside a union or container", "mark the parameter itself"),
    ("sell_everything: parameter 'stock' is marked with `Resolve` without a call", "write Resolve(fn)"),
    ("parameter 'amount' of resolver 'price' is filled by nobody", "an argument of that name"),
    ("parameter 'titel' of resolver 'price' is filled by nobody", "did you mean the argument 'title'?"),
    (
        "parameter 'title' of resolver 'consent' takes str, but the argument of that name is int",
        "make the two types agree",
    ),
    ("resolver 'price' gives int, but parameter 'price' takes str", "make the two types agree"),
    ("resolver 'consent' is marked once=True but may ask", "drop once=True"),
    ("guard 'consent' may ask", "drop guard=True"),
    ("resolver 'consent' is marked guard=True and once=True; a guard runs in every round", "drop one of the two"),
    ("the form cannot be shown: field 'address' of Nested is nested", "ask for its fields one by one"),
]


async def test_all_faults_of_a_consumer_are_told_at_once() -> None:
    error = await refusal(as_tool, sell_everything)

    assert str(error).startswith("cannot register 'tool': 10 faults\n\n1. ")
    assert len(error.faults) == len(ALL)
    for problem, fix in ALL:
        (fault,) = [one for one in error.faults if one.problem.startswith(problem)]
        assert fix in fault.fix


async def test_every_fault_is_told_with_its_place_a_drawing_of_the_path_and_a_fix() -> None:
    error = await refusal(as_tool, sell_everything)

    (fault,) = [one for one in error.faults if "'titel'" in one.problem]
    here, asked, root = (f"{__file__}:{fn.__code__.co_firstlineno}" for fn in (price, consent, sell_everything))
    assert str(fault).splitlines() == [
        "parameter 'titel' of resolver 'price' is filled by nobody",
        f"    at {here}",
        f"    sell_everything   {root}",
        f"    └─ consent <- consent   {asked}",
        f"       └─ price <- price   {here}",
        "          └─ titel <- nobody",
        "    fix: did you mean the argument 'title'?",
    ]
    for one in error.faults:
        assert one.drawing.startswith(f"    sell_everything   {root}")
        assert one.place in (here, asked, root)


@everywhere
async def test_a_fault_of_a_resolver_with_several_consumers_is_told_once(position: Position) -> None:
    async def broken(amount: int) -> int: ...

    async def left(broken: Annotated[int, Resolve(broken)]) -> int: ...

    async def both(title: str, broken: Annotated[int, Resolve(broken)], left: Annotated[int, Resolve(left)]) -> int: ...

    error = await refusal(position, both)

    assert [fault.problem for fault in error.faults] == ["parameter 'amount' of resolver 'broken' is filled by nobody"]


async def test_an_argument_that_json_cannot_carry_is_refused() -> None:
    async def wait(event: threading.Event) -> None: ...

    error = await refusal(as_tool, wait)

    (fault,) = error.faults
    assert fault.problem == "parameter 'event' takes Event, which cannot come from JSON"
    assert fault.fix == "use a type that JSON can carry, or fill it with Resolve(fn)"
    assert fault.drawing.endswith("└─ event")


async def test_arguments_that_json_cannot_carry_are_told_all_at_once_and_beside_other_faults() -> None:
    async def wait(one: threading.Event, two: threading.Event, stock: Annotated[int, Resolve]) -> None: ...

    error = await refusal(as_tool, wait)

    problems = {fault.problem.partition(", ")[0] for fault in error.faults}
    assert problems == {
        "parameter 'one' takes Event",
        "parameter 'two' takes Event",
        "wait: parameter 'stock' is marked with `Resolve` without a call",
    }


async def test_an_input_schema_that_shows_a_resolved_parameter_is_told_beside_other_faults() -> None:
    mcp = MCPServer("shop")

    async def sell(
        title: str, stock: Annotated[int, Resolve(check_stock)], basket: Annotated[int, Resolve]
    ) -> None: ...

    with pytest.raises(InvalidSignature) as caught:
        mcp.add_tool(sell, input_schema=SHOWING["properties"])

    assert "the input schema shows 'stock', which is resolved" in str(caught.value)
    assert "without a call" in str(caught.value)


async def test_one_refused_tool_leaves_the_others_registered() -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def sell(title: str) -> None: ...

    with pytest.raises(InvalidSignature):
        mcp.add_tool(sell_everything)

    assert [tool.name for tool in await mcp.list_tools()] == ["sell"]
