"""Resolved parameters are never arguments of a tool: in its schema, by an alias, or by what a client sends (design 4)."""

import threading
from typing import Annotated, Any, cast

import pytest
from pydantic import AliasChoices, Field

from bespeak import InvalidSignature, MCPServer, Resolve, ToolError
from tests.resolve.positions import as_tool, refusal


async def check_stock(title: str) -> int:
    return len(title)


SHOWING: dict[str, dict[str, Any]] = {
    "properties": {"type": "object", "properties": {"title": {}, "stock": {}}},
    "pattern": {"type": "object", "patternProperties": {"^st": {}}},
    "dependent": {"type": "object", "dependentRequired": {"stock": []}},
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
    assert fault.problem == "the input schema shows 'stock', which is a resolved parameter"
    assert fault.fix == "remove 'stock' from the schema"
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

    assert "an argument can be sent as 'stock', which is a resolved parameter" in str(error)
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


async def test_an_argument_that_json_cannot_carry_is_refused() -> None:
    async def wait(event: threading.Event) -> None: ...

    error = await refusal(as_tool, wait)

    (fault,) = error.faults
    assert fault.problem == "parameter 'event' takes Event, which JSON cannot represent"
    assert fault.fix == "use a type that JSON can represent, or fill it with Resolve(fn)"
    assert fault.drawing.endswith("└─ event")


async def test_arguments_that_json_cannot_carry_are_reported_at_once_and_beside_other_faults() -> None:
    async def wait(one: threading.Event, two: threading.Event, stock: Annotated[int, Resolve]) -> None: ...

    error = await refusal(as_tool, wait)

    problems = {fault.problem.partition(", ")[0] for fault in error.faults}
    assert problems == {
        "parameter 'one' takes Event",
        "parameter 'two' takes Event",
        "wait: parameter 'stock' is marked with `Resolve` without a call",
    }


async def test_an_input_schema_that_shows_a_resolved_parameter_is_reported_beside_other_faults() -> None:
    mcp = MCPServer("shop")

    async def sell(
        title: str, stock: Annotated[int, Resolve(check_stock)], basket: Annotated[int, Resolve]
    ) -> None: ...

    with pytest.raises(InvalidSignature) as caught:
        mcp.add_tool(sell, input_schema=SHOWING["properties"])

    assert "the input schema shows 'stock', which is a resolved parameter" in str(caught.value)
    assert "without a call" in str(caught.value)


def test_tool_is_a_decorator() -> None:
    with pytest.raises(TypeError, match=r"use add_tool\(fn, name\)"):
        MCPServer("shop").tool("stock", cast("Any", check_stock))
