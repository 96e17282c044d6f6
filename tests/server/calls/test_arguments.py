"""A tool's arguments: exactly the schema the model sees, and reading what it sends, in words it can act on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import AfterValidator, BaseModel, Field, Strict

from bespeak import Context, Elicit, InvalidSignature, MCPServer, Resolve, ToolError
from tests.answering import text
from tests.conftest import Connect


class Stock(BaseModel):
    title: str
    copies: int


async def check_stock(title: str) -> Stock:
    return Stock(title=title, copies=7)


async def schema_of(fn: Callable[..., Any], **options: Any) -> dict[str, Any]:
    mcp = MCPServer("shop")
    mcp.add_tool(fn, name="tool", **options)
    (tool,) = await mcp.list_tools()
    return tool.input_schema


async def called(connect: Connect, fn: Callable[..., Any], arguments: dict[str, Any]) -> str:
    mcp = MCPServer("shop")
    mcp.add_tool(fn, name="tool")
    async with connect(mcp) as client:
        return text(await client.call_tool("tool", arguments))


# The schema


async def test_the_schema_is_exactly_what_the_tutorial_shows() -> None:
    async def reserve_book(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
        return title + str(stock)

    assert await schema_of(reserve_book) == {
        "type": "object",
        "properties": {"title": {"title": "Title", "type": "string"}},
        "required": ["title"],
        "title": "reserve_bookArguments",
    }


async def test_the_context_is_not_in_the_schema() -> None:
    async def look(title: str, ctx: Context) -> str:
        return title + str(ctx)

    assert list((await schema_of(look))["properties"]) == ["title"]


async def test_a_tool_without_arguments_has_an_object_schema() -> None:
    def ping() -> str:
        return "pong"

    assert await schema_of(ping) == {"type": "object", "properties": {}, "title": "pingArguments"}


async def test_defaults_bounds_and_descriptions_reach_the_schema() -> None:
    def search(
        query: Annotated[str, Field(description="What to look for", min_length=1)],
        limit: int = Field(default=10, ge=1, le=50),
        order: Literal["asc", "desc"] = "asc",
    ) -> str:
        return f"{query}{limit}{order}"

    schema = await schema_of(search)
    assert schema["required"] == ["query"]
    assert schema["properties"] == {
        "query": {"title": "Query", "type": "string", "description": "What to look for", "minLength": 1},
        "limit": {"title": "Limit", "type": "integer", "default": 10, "minimum": 1, "maximum": 50},
        "order": {"title": "Order", "type": "string", "default": "asc", "enum": ["asc", "desc"]},
    }


async def test_a_parameter_without_a_hint_takes_anything(in_memory: Connect) -> None:
    def echo(value):  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType] - unannotated on purpose
        return repr(value)  # pyright: ignore[reportUnknownArgumentType]

    assert (await schema_of(echo))["properties"] == {"value": {"title": "Value"}}  # pyright: ignore[reportUnknownArgumentType]
    assert await called(in_memory, echo, {"value": [1, None]}) == "[1, None]"  # pyright: ignore[reportUnknownArgumentType]


async def test_a_raw_schema_replaces_the_derived_one_as_it_is() -> None:
    def echo(value: int = 0) -> str:
        return repr(value)

    raw = {"type": "object", "properties": {"value": {"type": "integer", "default": None, "x-mcp-header": "Value"}}}
    assert await schema_of(echo, input_schema=raw) == raw


async def test_arguments_are_read_by_the_parameters_whatever_a_raw_schema_says(in_memory: Connect) -> None:
    def echo(value: int) -> str:
        return repr(value)

    mcp = MCPServer("shop")
    mcp.add_tool(echo, input_schema={"type": "object"})
    async with in_memory(mcp) as client:
        assert "value: " in text(await client.call_tool("echo", {"value": "x"}))


def register_with(schema: dict[str, Any]) -> None:
    """Register a tool with a schema of its own, and a resolved `stock`."""

    async def reserve(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
        return title + str(stock)

    MCPServer("shop").add_tool(reserve, input_schema={"type": "object", **schema})


STOCK: dict[str, Any] = {"properties": {"stock": {}}}
SHOWING: dict[str, dict[str, Any]] = {
    "a property": {"properties": {"title": {}, "stock": {}}},
    "an anchor": {"$ref": "#more", "$defs": {"x": {"$anchor": "more", **STOCK}}},
    "an anchor that refers to another": {
        "allOf": [{"$ref": "#more"}],
        "$defs": {"x": {"$anchor": "more", "$ref": "#most"}, "y": {"items": {"$anchor": "most", **STOCK}}},
    },
    "a dynamic anchor": {"$dynamicRef": "#more", "$defs": {"x": {"$dynamicAnchor": "more", **STOCK}}},
    "the second of two dynamic anchors": {
        "$dynamicRef": "#more",
        "$defs": {"x": {"$dynamicAnchor": "more"}, "y": {"$dynamicAnchor": "more", **STOCK}},
    },
    "a dynamic anchor as an ordinary one": {"$ref": "#more", "$defs": {"x": {"$dynamicAnchor": "more", **STOCK}}},
    "a dynamic reference by its path": {"$dynamicRef": "#/$defs/x", "$defs": {"x": STOCK}},
    "a path through a list": {"$ref": "#/x/1", "x": [{}, STOCK]},
    "names that may be sent": {"propertyNames": {"enum": ["title", "stock"]}},
    "the one name that may be sent": {"propertyNames": {"anyOf": [{"const": "title"}, {"const": "stock"}]}},
    "a pattern of names": {"propertyNames": {"pattern": "^(title|stock)$"}},
    "names by reference": {"propertyNames": {"$ref": "#/$defs/x"}, "$defs": {"x": {"enum": ["stock"]}}},
    "what depends on something": {"dependencies": {"stock": ["title"]}},
    "what something depends on": {"dependencies": {"title": ["stock"]}},
    "a schema for what depends": {"dependencies": {"title": STOCK}},
    "what is required with something": {"dependentRequired": {"title": ["stock"]}},
    "a schema for its presence": {"dependentSchemas": {"stock": {}}},
}


@pytest.mark.parametrize("schema", SHOWING.values(), ids=SHOWING)
def test_a_raw_schema_must_not_show_what_is_resolved(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidSignature, match="the input schema shows 'stock', which is a resolved parameter"):
        register_with(schema)


HIDING: dict[str, dict[str, Any]] = {
    "an anchor that nothing refers to": {"$defs": {"x": {"$anchor": "more", **STOCK}}},
    "an anchor that is not there": {"$ref": "#more"},
    "anchors in a circle": {"$ref": "#more", "$defs": {"x": {"$anchor": "more", "$ref": "#more"}}},
    "a part of an argument": {"properties": {"title": {"propertyNames": {"enum": ["stock"]}}}},
    "other names": {"propertyNames": {"enum": ["title"], "pattern": "^t", "maxLength": 5}},
    "other dependencies": {"dependencies": {"title": ["pages"], "pages": {"required": ["title"]}}},
}


@pytest.mark.parametrize("schema", HIDING.values(), ids=HIDING)
def test_a_raw_schema_that_shows_only_arguments_is_taken(schema: dict[str, Any]) -> None:
    register_with(schema)


ECMA = [
    (r"^\p{L}+$", "stock"),
    (r"^(?<first>s)", "stock"),
    (r"^\u{73}tock$", "stock"),
    (r"^(?!title)", "stock"),
    (r"(?<=s)tock", "stock"),
]
"""Patterns of ECMA-262 that match a name; Python's `re` reads only the last two, pydantic's engine only the others."""


def with_pattern(pattern: str) -> None:
    """Register a tool whose schema shows what fits a pattern."""
    register_with({"patternProperties": {pattern: {}}})


@pytest.mark.parametrize(("pattern", "shown"), ECMA)
def test_a_raw_schema_must_not_show_what_is_resolved_by_a_pattern_either(pattern: str, shown: str) -> None:
    with pytest.raises(InvalidSignature, match=f"the input schema shows '{shown}', which is a resolved parameter"):
        with_pattern(pattern)


async def test_a_schema_changed_after_registration_changes_nothing() -> None:
    mcp, schema = MCPServer[Any]("shop"), cast("dict[str, Any]", {"type": "object", "properties": {}})

    async def stock() -> bool:
        return True

    @mcp.tool(input_schema=schema)
    async def tool(stock: Annotated[bool, Resolve(stock)]) -> str:
        return "x"

    schema["properties"]["stock"] = {"type": "boolean"}
    assert (await mcp.list_tools())[0].input_schema["properties"] == {}


@pytest.mark.parametrize("pattern", [r"^\p{Lu}", r"^x-", r"^(?<first>t)", r"^(?!stock)", r"(?<=x)tock"])
def test_a_pattern_that_shows_only_arguments_is_taken(pattern: str) -> None:
    with_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"\p{NoSuchScript}", "(", "[^]", r"(?<=s+)tock", r"^(?!\p{L})"])
def test_a_pattern_that_nobody_can_read_is_a_fault_if_something_is_resolved(pattern: str) -> None:
    with pytest.raises(InvalidSignature) as caught:
        with_pattern(pattern)
    (fault,) = caught.value.faults
    assert fault.problem == (
        f"the input schema has the pattern {pattern!r}, which cannot be read, so it is not known whether it shows 'stock', "
        "which is a resolved parameter"
    )
    assert fault.fix == "name the properties in `properties`, or write a simpler pattern"


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", "(", "[^]"])
async def test_where_nothing_is_resolved_any_pattern_is_shown_as_it_is(pattern: str) -> None:
    def echo(value: int = 0) -> str:
        return repr(value)

    raw: dict[str, Any] = {"type": "object", "patternProperties": {pattern: {}}}
    assert await schema_of(echo, input_schema=raw) == raw


def test_a_parameter_json_cannot_carry_is_named_at_registration() -> None:
    class Handle:
        pass

    def use(name: str, handle: Handle) -> str:
        return name + str(handle)

    with pytest.raises(
        InvalidSignature, match=r"parameter 'handle' takes .*Handle, which JSON cannot represent"
    ) as caught:
        MCPServer("shop").add_tool(use)
    assert "fill it with Resolve(fn)" in str(caught.value)


# Names pydantic dislikes


async def test_parameters_may_have_any_name(in_memory: Connect) -> None:
    def tool(schema: int, json: int, copy: int, _x: int, model_config: int, model_fields: int, dict: int) -> str:
        return str([schema, json, copy, _x, model_config, model_fields, dict])

    names = ["schema", "json", "copy", "_x", "model_config", "model_fields", "dict"]
    schema = await schema_of(tool)
    assert list(schema["properties"]) == schema["required"] == names
    assert schema["properties"]["_x"] == {"title": "X", "type": "integer"}
    assert await called(in_memory, tool, {name: at for at, name in enumerate(names)}) == "[0, 1, 2, 3, 4, 5, 6]"


async def test_a_parameter_with_a_name_that_pydantic_reserves_keeps_its_alias(in_memory: Connect) -> None:
    def tool(schema: Annotated[str, Field(alias="schemaName", title="The schema")]) -> str:
        return schema

    assert (await schema_of(tool))["properties"] == {"schemaName": {"title": "The schema", "type": "string"}}
    assert await called(in_memory, tool, {"schemaName": "public"}) == "public"


async def test_parameters_that_differ_only_in_underscores_stay_apart(in_memory: Connect) -> None:
    def tool(_x: int, __x: int) -> str:  # pyright: ignore[reportGeneralTypeIssues] - Python itself allows it
        return f"{_x} {__x}"

    assert list((await schema_of(tool))["properties"]) == ["_x", "__x"]
    assert await called(in_memory, tool, {"_x": 1, "__x": 2}) == "1 2"


@pytest.mark.every_revision
async def test_a_parameter_named_like_a_renamed_one_keeps_its_own_value(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(_x: str = "d", parameter_0: str = "e") -> str:
        return _x + parameter_0

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool", {"_x": "1", "parameter_0": "2"})) == "12"


async def test_the_name_of_a_bad_argument_is_the_parameter_s_own(in_memory: Connect) -> None:
    def tool(schema: int) -> str:
        return str(schema)

    assert "schema: " in await called(in_memory, tool, {"schema": "x"})
    assert "parameter_" not in await called(in_memory, tool, {"schema": "x"})


# Reading


async def test_an_alias_is_the_name_on_the_wire(in_memory: Connect) -> None:
    def tool(owner: Annotated[str, Field(alias="ownerName")]) -> str:
        return owner

    assert list((await schema_of(tool))["properties"]) == ["ownerName"]
    assert await called(in_memory, tool, {"ownerName": "a"}) == "a"


async def test_a_default_factory_is_run_for_every_call(in_memory: Connect) -> None:
    def tool(items: list[int] = Field(default_factory=list[int])) -> str:  # noqa: B008 - as authors write it
        items.append(1)
        return str(items)

    mcp = MCPServer("shop")
    mcp.add_tool(tool)
    async with in_memory(mcp) as client:
        assert [text(await client.call_tool("tool")) for _ in range(2)] == ["[1]", "[1]"]


async def test_a_mutable_default_is_not_shared_between_calls(in_memory: Connect) -> None:
    def tool(items: list[int] = []) -> str:  # noqa: B006 - shared on purpose
        items.append(1)
        return str(items)

    mcp = MCPServer("shop")
    mcp.add_tool(tool)
    async with in_memory(mcp) as client:
        assert [text(await client.call_tool("tool")) for _ in range(2)] == ["[1]", "[1]"]


@pytest.mark.every_revision
async def test_arguments_arrive_as_the_types_of_the_parameters(connect: Connect) -> None:
    class Colour(Enum):
        RED = "red"

    @dataclass
    class Point:
        x: int

    def tool(day: date, colour: Colour, point: Point, stock: Stock, tags: set[str], pair: tuple[int, str]) -> str:
        return f"{day.year} {colour.name} {point.x} {stock.copies} {tags} {pair}"

    sent = {
        "day": "2026-07-28",
        "colour": "red",
        "point": {"x": 1},
        "stock": {"title": "Dune", "copies": 3},
        "tags": ["a"],
        "pair": [1, "b"],
    }
    assert await called(connect, tool, sent) == "2026 RED 1 3 {'a'} (1, 'b')"


async def test_a_strict_parameter_takes_what_its_schema_says(in_memory: Connect) -> None:
    def tool(day: Annotated[date, Strict()]) -> str:
        return day.isoformat()

    assert (await schema_of(tool))["properties"]["day"] == {"title": "Day", "type": "string", "format": "date"}
    assert await called(in_memory, tool, {"day": "2026-07-28"}) == "2026-07-28"


IN_A_CIRCLE: list[Any] = []
IN_A_CIRCLE.append(IN_A_CIRCLE)


@pytest.mark.parametrize("value", [object(), IN_A_CIRCLE], ids=["an object", "a circle"])
async def test_without_a_client_an_argument_that_json_cannot_carry_is_named_and_the_tool_is_not_blamed(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def order(title: str, copies: int) -> str: ...

    with pytest.raises(ToolError, match="invalid arguments: copies: JSON cannot carry it") as raised:
        await mcp.call_tool("order", {"title": "Dune", "copies": value})
    assert "serializing" not in str(raised.value)
    assert caplog.text == "", "a mistake of the caller is not a crash of the tool"


@pytest.mark.every_revision
async def test_unknown_and_resolved_arguments_are_dropped(connect: Connect) -> None:
    async def reserve(title: str, stock: Annotated[Stock, Resolve(check_stock)]) -> str:
        return f"{title} {stock.copies}"

    sent = {"title": "Dune", "stock": {"title": "Dune", "copies": 999}, "nonsense": object.__name__}
    assert await called(connect, reserve, sent) == "Dune 7"


async def test_a_resolver_sees_the_value_the_body_sees(in_memory: Connect) -> None:
    seen: list[Any] = []

    async def note(items: list[int], name: str) -> int:
        seen.extend([items, name])
        return len(items)

    def tool(
        count: Annotated[int, Resolve(note)],
        items: Annotated[list[int], Field(default_factory=lambda: [1, 2])],
        name: Annotated[str, Field(alias="n")] = "x",
    ) -> str:
        return f"{count} {items is seen[0]} {name}"

    assert await called(in_memory, tool, {"n": "y"}) == "2 True y"
    assert seen == [[1, 2], "y"]


async def test_without_a_client_arguments_need_not_be_json() -> None:
    mcp = MCPServer[Any]("shop")

    async def ask(day: date) -> bool | Elicit[bool]:
        return True

    @mcp.tool()
    async def tool(day: date, sure: Annotated[bool, Resolve(ask)]) -> str:
        return day.isoformat()

    assert text(await mcp.call_tool("tool", {"day": date(2026, 7, 28)})) == "2026-07-28"


# Bad arguments


def not_negative(number: int) -> int:
    if number < 0:
        raise ValueError("must not be negative")
    return number


@pytest.mark.every_revision
async def test_bad_arguments_are_an_error_the_model_can_act_on(connect: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def buy(title: str, copies: Annotated[int, AfterValidator(not_negative)], stock: Stock | None = None) -> str:
        return f"{title}{copies}{stock}"

    async with connect(mcp) as client:
        result = await client.call_tool("buy", {"copies": -1, "stock": {"title": "Dune", "copies": "many"}})
    told = text(result)
    assert result.is_error
    assert told.startswith("Error executing tool buy: invalid arguments: ")
    assert "title: Field required" in told
    assert "copies: " in told
    assert "must not be negative" in told
    assert "stock.copies: " in told


@pytest.mark.parametrize("sent", [{"x": -1}, {"x": "no"}, {"x": None}, {"x": {"a": 1}}, {}])
async def test_bad_arguments_show_no_pydantic_internals(in_memory: Connect, sent: dict[str, Any]) -> None:
    def tool(
        x: Annotated[int, AfterValidator(not_negative)] | list[Annotated[int, AfterValidator(not_negative)]],
    ) -> str:
        return str(x)

    told = await called(in_memory, tool, sent)
    assert "x" in told
    for internal in ("pydantic", "http", "function-after", "not_negative", "validation error", "[type=", "input_value"):
        assert internal not in told


async def test_a_validator_that_crashes_is_logged_and_not_shown(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(number: int) -> int:
        raise KeyError(f"secret {number}")

    def tool(x: Annotated[int, AfterValidator(crash)]) -> str:
        return str(x)

    assert await called(in_memory, tool, {"x": 1}) == "Error executing tool tool"
    assert "secret 1" in caplog.text


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"tags": '["a", "b"]'}, "a,b"),
        ({"tags": ["a"]}, "a"),
        ({"tags": "[not json"}, "Error executing tool tool: invalid arguments: tags: Input should be a valid array"),
        ({"tags": "[1, 2]"}, "Error executing tool tool: invalid arguments: tags: Input should be a valid array"),
        ({"tags": ["a"], "note": "[kept]"}, "a[kept]"),
    ],
)
async def test_a_list_that_a_model_wrote_as_text_is_read_before_it_is_refused(
    in_memory: Connect, sent: dict[str, Any], told: str
) -> None:
    def tool(tags: list[str], note: str = "") -> str:
        return ",".join(tags) + note

    assert await called(in_memory, tool, sent) == told


async def test_a_refusal_names_twenty_faults_and_counts_the_rest(in_memory: Connect) -> None:
    mcp = MCPServer[Any]("bounded")

    @mcp.tool()
    async def count(numbers: list[int]) -> str:
        return "counted"

    async with in_memory(mcp) as client:
        refused = text(await client.call_tool("count", {"numbers": ["x"] * 5000}))
    assert refused.count("numbers.") == 20
    assert refused.endswith("; and 4980 more")
