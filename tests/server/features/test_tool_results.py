"""What a tool returns: its output schema, its structured content, and that the two agree."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from pydantic import BaseModel, Field, JsonValue, RootModel, computed_field
from typing_extensions import TypedDict

from bespeak import Audio, Image, InvalidSignature, MCPServer
from tests.answering import text
from tests.conftest import Connect
from tests.serving import serve


class Stock(BaseModel):
    title: str
    copies: int = 0


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Flags(TypedDict):
    on: bool


class Numbers(RootModel[list[int]]):
    pass


async def output_schema(fn: Callable[..., Any], **options: Any) -> dict[str, Any] | None:
    mcp = MCPServer("shop")
    mcp.add_tool(fn, name="tool", **options)
    (tool,) = await mcp.list_tools()
    return tool.output_schema


async def result_of(connect: Connect, fn: Callable[..., Any], **options: Any) -> CallToolResult:
    mcp = MCPServer("shop")
    mcp.add_tool(fn, name="tool", **options)
    async with connect(mcp) as client:
        return await client.call_tool("tool")


def returning(hint: Any, value: Any) -> Callable[[], Any]:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = hint
    return tool


def wrapped(schema: dict[str, Any], **beside: Any) -> dict[str, Any]:
    properties = {"result": {"title": "Result", **schema}}
    return {"type": "object", "properties": properties, "required": ["result"], "title": "toolOutput", **beside}


STOCK_SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"title": "Title", "type": "string"},
        "copies": {"title": "Copies", "type": "integer", "default": 0},
    },
    "required": ["title"],
    "title": "Stock",
}


# Values that are no objects are wrapped


@pytest.mark.parametrize(
    ("hint", "value", "schema", "structured"),
    [
        (str, "a", {"type": "string"}, "a"),
        (int, 3, {"type": "integer"}, 3),
        (None, None, {"type": "null"}, None),
        (list[int], [1, 2], {"type": "array", "items": {"type": "integer"}}, [1, 2]),
        (int | str, "x", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x"),
        (Literal["a", "b"], "a", {"enum": ["a", "b"], "type": "string"}, "a"),
        (date, date(2026, 7, 28), {"type": "string", "format": "date"}, "2026-07-28"),
    ],
)
async def test_a_value_that_is_no_object_travels_as_result(
    in_memory: Connect, hint: Any, value: Any, schema: dict[str, Any], structured: Any
) -> None:
    tool = returning(hint, value)
    assert await output_schema(tool) == wrapped(schema)
    result = await result_of(in_memory, tool)
    assert result.structured_content == {"result": structured}
    assert not result.is_error


@pytest.mark.asking_revisions
async def test_an_optional_model_is_wrapped(connect: Connect) -> None:
    schema = await output_schema(returning(Stock | None, None))
    assert schema is not None
    assert schema["properties"]["result"]["anyOf"] == [{"$ref": "#/$defs/Stock"}, {"type": "null"}]
    assert (await result_of(connect, returning(Stock | None, None))).structured_content == {"result": None}
    given = await result_of(connect, returning(Stock | None, Stock(title="Dune")))
    assert given.structured_content == {"result": {"title": "Dune", "copies": 0}}


async def test_a_dict_whose_keys_are_no_strings_is_wrapped(in_memory: Connect) -> None:
    assert (await result_of(in_memory, returning(dict[int, int], {1: 2}))).structured_content == {"result": {"1": 2}}


async def test_a_root_model_that_is_no_object_is_wrapped(in_memory: Connect) -> None:
    assert (await result_of(in_memory, returning(Numbers, Numbers([1])))).structured_content == {"result": [1]}


async def test_a_recursive_return_type_has_a_schema() -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool() -> JsonValue:
        return {"a": [1]}

    result = await mcp.call_tool("tool")
    assert result.structured_content == {"result": {"a": [1]}}


# Objects travel as they are


@pytest.mark.parametrize(
    ("hint", "value", "structured"),
    [
        (Stock, Stock(title="Dune", copies=1), {"title": "Dune", "copies": 1}),
        (Annotated[Stock, "a note"], Stock(title="Dune"), {"title": "Dune", "copies": 0}),
        (Point, Point(1, 2), {"x": 1, "y": 2}),
        (Flags, {"on": True}, {"on": True}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[str, Any], {"a": None}, {"a": None}),
    ],
)
async def test_an_object_travels_as_it_is(in_memory: Connect, hint: Any, value: Any, structured: Any) -> None:
    schema = await output_schema(returning(hint, value))
    assert schema is not None
    assert schema["type"] == "object"
    assert "result" not in schema.get("properties", {})
    result = await result_of(in_memory, returning(hint, value))
    assert result.structured_content == structured
    assert json.loads(text(result)) == structured


async def test_a_model_s_schema_is_its_own() -> None:
    assert await output_schema(returning(Stock, None)) == STOCK_SCHEMA


async def test_a_typed_dict_s_schema_names_its_tool() -> None:
    assert await output_schema(returning(dict[str, int], None)) == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "title": "toolDictOutput",
    }


@pytest.mark.asking_revisions
async def test_what_a_model_computes_and_renames_is_promised_as_it_is_sent(connect: Connect) -> None:
    class Price(BaseModel):
        net: int = Field(serialization_alias="netPrice")

        @computed_field
        @property
        def gross(self) -> int:
            return self.net * 2

    tool = returning(Price, Price(net=1))
    schema = await output_schema(tool)
    sent = (await result_of(connect, tool)).structured_content
    assert schema is not None
    assert sent == {"netPrice": 1, "gross": 2}
    assert sorted(schema["required"]) == sorted(schema["properties"]) == ["gross", "netPrice"]


# Nothing structured


@pytest.mark.every_revision
@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (dict, {"a": 1}),
        (Any, {"a": 1}),
        (Audio, Audio(data=b"x")),
        (list[str | Image], ["a", Image(data=b"x")]),
        (Image | None, None),
        (TextContent, TextContent(type="text", text="a")),
        (dict[str, Image], {}),
        (CallToolResult, CallToolResult(content=[])),
    ],
)
async def test_what_has_no_schema_promises_none(in_memory: Connect, hint: Any, value: Any) -> None:
    assert await output_schema(returning(hint, value)) is None
    result = await result_of(in_memory, returning(hint, value))
    assert result.structured_content is None
    assert not result.is_error


async def test_a_tool_without_a_return_hint_promises_nothing(in_memory: Connect) -> None:
    def tool():  # pyright: ignore[reportUnknownParameterType] - unannotated on purpose
        return {"a": 1}

    assert await output_schema(tool) is None  # pyright: ignore[reportUnknownArgumentType]
    assert text(await result_of(in_memory, tool)) == '{\n  "a": 1\n}'  # pyright: ignore[reportUnknownArgumentType]


class Handle:
    """Nothing JSON can say."""

    def __str__(self) -> str:
        return "a handle"


@pytest.mark.parametrize(
    ("hint", "value"), [(Handle, Handle()), (list[Handle], [Handle()]), (Iterator[int], iter([1]))]
)
async def test_a_return_type_without_a_schema_is_no_fault(in_memory: Connect, hint: Any, value: Any) -> None:
    assert await output_schema(returning(hint, value)) is None
    assert not (await result_of(in_memory, returning(hint, value))).is_error


async def test_a_question_made_by_hand_is_not_part_of_the_schema() -> None:
    assert await output_schema(returning(Stock | InputRequiredResult, None)) == STOCK_SCHEMA
    assert await output_schema(returning(int | str | InputRequiredResult, None)) == wrapped(
        {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    )
    assert await output_schema(returning(InputRequiredResult, None)) is None


async def test_structured_output_false_promises_nothing(in_memory: Connect) -> None:
    tool = returning(Stock, Stock(title="Dune"))
    assert await output_schema(tool, structured_output=False) is None
    assert (await result_of(in_memory, tool, structured_output=False)).structured_content is None


@pytest.mark.parametrize("hint", [Image, Any, dict, Handle, InputRequiredResult])
def test_structured_output_true_needs_a_type_with_a_schema(hint: Any) -> None:
    with pytest.raises(
        InvalidSignature, match="the return type of 'tool' cannot be described by a JSON Schema"
    ) as caught:
        MCPServer("shop").add_tool(returning(hint, None), name="tool", structured_output=True)
    assert "drop structured_output=True" in str(caught.value)


# A promise is kept


@pytest.mark.every_revision
@pytest.mark.parametrize(("hint", "value"), [(int, "many"), (Stock, {"copies": 1}), (list[int], ["a"])])
async def test_a_value_that_breaks_the_promised_schema_is_an_error(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, hint: Any, value: Any
) -> None:
    result = await result_of(in_memory, returning(hint, value))
    assert result.is_error
    assert text(result) == "Error executing tool tool"
    assert result.structured_content is None
    assert "ValidationError" in caplog.text


async def test_a_value_of_another_type_is_logged_with_the_tool_and_both_types(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def later() -> int:
        return 1

    mcp = MCPServer("shop")

    @mcp.tool()
    async def price() -> int:
        return "twelve"  # pyright: ignore[reportReturnType]

    @mcp.tool()
    async def prices() -> dict[str, int]:
        return [1]  # pyright: ignore[reportReturnType]

    @mcp.tool()
    async def forgets() -> int:
        return later()  # pyright: ignore[reportReturnType]

    @mcp.tool()
    async def stock() -> Stock:
        return {"copies": "many"}  # pyright: ignore[reportReturnType]

    @mcp.tool()
    async def nothing_to_read() -> Any:
        return object()

    async with in_memory(mcp) as client:
        for tool in ("price", "prices", "forgets", "stock", "nothing_to_read"):
            assert (await client.call_tool(tool)).is_error
    for told in (
        "the tool 'price' returned str, but its return annotation says int",
        "the tool 'prices' returned list, but its return annotation says dict[str, int]",
        "the tool 'forgets' returned a coroutine that was never awaited; write `return await ...`",
        "the tool 'stock' returned dict, but its return annotation says Stock (title: Field required; copies: Input",
        "the tool 'nothing_to_read' returned what cannot be sent: a value of type 'object' has no text that a model could",
    ):
        assert told in caplog.text


async def test_a_mapping_may_stand_for_the_promised_model(in_memory: Connect) -> None:
    result = await result_of(in_memory, returning(Stock, {"title": "Dune"}))
    assert result.structured_content == {"title": "Dune", "copies": 0}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_a_number_json_does_not_know_never_reaches_the_wire(number: float) -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(returning(float, number), name="tool")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": dict[str, Any](),
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tool", "_meta": meta}}
    raw = await serve(mcp, json.dumps(request).encode(), lambda _: None)
    assert raw is not None
    constants: list[str] = []
    json.loads(raw, parse_constant=constants.append)
    assert constants == []


@pytest.mark.every_revision
async def test_half_a_character_which_json_cannot_carry_is_a_failure_of_its_tool(connect: Connect) -> None:
    result = await result_of(connect, returning(str, "\ud800"))
    assert result.is_error
    assert text(result) == "Error executing tool tool"


# Ready-made results


@pytest.mark.asking_revisions
async def test_a_ready_made_result_travels_as_it_is(connect: Connect) -> None:
    made = CallToolResult(
        content=[TextContent(type="text", text="a")],
        structured_content={"a": None},
        is_error=True,
        _meta={"com.example/x": {"y": None}},
    )
    result = await result_of(connect, returning(CallToolResult, made))
    assert result.content == made.content
    assert result.structured_content == {"a": None}
    assert result.is_error
    assert result.meta is not None
    assert result.meta["com.example/x"] == {"y": None}


async def test_a_ready_made_result_must_keep_the_promised_schema(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    # protocol 10: with an outputSchema the server MUST return structured content that conforms
    result = await result_of(in_memory, returning(Stock, CallToolResult(content=[])))
    assert result.is_error
    assert "tool" in caplog.text


async def test_a_ready_made_error_need_not_keep_the_promised_schema(in_memory: Connect) -> None:
    made = CallToolResult(content=[TextContent(type="text", text="sold out")], is_error=True)
    result = await result_of(in_memory, returning(Stock, made))
    assert result.is_error
    assert text(result) == "sold out"
