"""What older revisions do not know (protocol 25.5 and 26): tools, results, servers, forms and capabilities at each of them."""

from typing import Annotated, Any, Literal

import pytest
from mcp_types import (
    Annotations,
    AudioContent,
    CallToolResult,
    CreateMessageResult,
    Icon,
    ListRootsResult,
    ResourceLink,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

from bespeak import Client, Context, Elicit, ListRoots, MCPError, MCPServer, Resolve, Sample
from bespeak.protocol.legacy import (
    Unaskable,
    capabilities_at,
    declared_at,
    info_at,
    question_at,
    result_at,
    takes_batches,
    tool_at,
)
from tests.rules.consumers import (
    serving,
    take_accepted,
    take_accepted_or_default,
    take_clear,
    take_outcome,
    take_outcome_or_not_asked,
    take_refusal,
    take_value,
    take_value_or_default,
)
from tests.server.legacy.older_client import EVERYTHING, FIRST, JUNE, MARCH, MODERN, NOVEMBER, Older, Sent, yes
from tests.wires import Listening

OLDER = [FIRST, MARCH, JUNE, NOVEMBER]
ICON = Icon(src="https://example.com/icon.png")

# Servers and tools


class Weather(BaseModel):
    degrees: int


def described() -> MCPServer[Any]:
    """A server and a tool that say everything that can be said."""
    mcp = MCPServer[Any](
        "shop", "The shop", "Sells books", "Be kind", "https://example.com", [ICON], "1.2", page_size=5
    )

    @mcp.tool(
        title="The weather",
        description="Looks out of the window",
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[ICON],
        meta={"mine": 1},
    )
    async def weather(where: str) -> Weather:
        return Weather(degrees=len(where))

    _ = weather
    return mcp


@pytest.mark.parametrize(
    ("version", "known"),
    [
        (FIRST, {"name", "version"}),
        (MARCH, {"name", "version"}),
        (JUNE, {"name", "version", "title"}),
        (NOVEMBER, {"name", "version", "title", "icons", "description", "websiteUrl"}),
    ],
)
async def test_a_server_says_of_itself_what_the_revision_knows(version: str, known: set[str]) -> None:
    async with Older(described(), version=version) as client:
        assert client.hello.keys() == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
        assert client.hello["protocolVersion"] == version
        assert client.hello["serverInfo"].keys() == known
        assert client.hello["instructions"] == "Be kind"


@pytest.mark.parametrize(
    ("version", "known"),
    [
        (FIRST, set[str]()),
        (MARCH, {"annotations"}),
        (JUNE, {"annotations", "title", "outputSchema", "_meta"}),
        (NOVEMBER, {"annotations", "title", "outputSchema", "_meta", "icons"}),
    ],
)
async def test_a_tool_is_listed_with_what_the_revision_knows(version: str, known: set[str]) -> None:
    async with Older(described(), version=version) as client:
        result = (await client.request("tools/list"))["result"]
    assert result.keys() == {"tools"}, "no resultType, ttlMs, cacheScope, or stamp"
    (tool,) = result["tools"]
    assert tool.keys() == {"name", "description", "inputSchema"} | known


async def test_listing_for_an_older_client_changes_nothing_for_a_modern_one() -> None:
    mcp = described()
    async with Client(mcp, mode=MODERN) as client:
        before = (await client.list_tools()).tools
        async with Older(mcp, version=FIRST) as older:
            await older.request("tools/list")
        assert (await client.list_tools()).tools == before


@pytest.mark.parametrize("version", [JUNE, NOVEMBER])
@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "integer"}, {"anyOf": []}, {}])
def test_an_output_schema_of_anything_but_objects_is_left_out(version: str, schema: Sent) -> None:
    tool: Sent = {"name": "t", "inputSchema": {"type": "object"}}
    assert tool_at(version, {**tool, "outputSchema": schema}) == tool
    assert "outputSchema" in tool_at(version, {**tool, "outputSchema": {"type": "object"}})


async def test_pages_go_on_at_an_older_revision() -> None:
    mcp = MCPServer[Any]("shop", page_size=1)
    for name in ("a", "b"):
        mcp.add_tool(lambda: 1, name=name)
    async with Older(mcp) as client:
        first = (await client.request("tools/list"))["result"]
        second = (await client.request("tools/list", {"cursor": first["nextCursor"]}))["result"]
    assert [one["name"] for page in (first, second) for one in page["tools"]] == ["a", "b"]


def test_an_info_loses_only_what_came_later() -> None:
    assert info_at(FIRST, {"name": "n", "version": "1", "title": "t", "own": 1}) == {
        "name": "n",
        "version": "1",
        "own": 1,
    }


# Results


def returning(value: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("results")

    async def give() -> CallToolResult:
        return value if isinstance(value, CallToolResult) else CallToolResult(content=[value])

    mcp.add_tool(give, name="take")
    return mcp


@pytest.mark.parametrize("version", OLDER)
async def test_structured_content_came_with_2025_06_18(version: str) -> None:
    async with Older(described(), version=version) as client:
        result = await client.call("weather", {"where": "home"})
    structured: Sent = {"structuredContent": {"degrees": 4}} if version >= JUNE else {}
    text = '{\n  "degrees": 4\n}'
    assert result == {"content": [{"type": "text", "text": text}], "isError": False, **structured}


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("value", [[1, 2], 5, "x", True, 0, [], ""])
def test_structured_content_that_is_no_object_becomes_text(version: str, value: Any) -> None:
    result = result_at(version, "tools/call", {"content": [], "structuredContent": value, "resultType": "complete"})
    assert "structuredContent" not in result
    (block,) = result["content"]
    assert block["type"] == "text"
    said = {"type": "text", "text": "said already"}
    kept = result_at(version, "tools/call", {"content": [said], "structuredContent": value})
    assert kept == {"content": [said]}


@pytest.mark.parametrize("version", [FIRST, MARCH])
def test_structured_content_that_is_lost_to_the_revision_becomes_text_if_there_is_none(version: str) -> None:
    result = result_at(version, "tools/call", {"content": [], "structuredContent": {"n": 1}})
    assert result == {"content": [{"type": "text", "text": '{"n":1}'}]}


@pytest.mark.parametrize("version", OLDER)
async def test_audio_came_with_2025_03_26(version: str) -> None:
    async with Older(returning(AudioContent(data="aGk=", mime_type="audio/wav")), version=version) as client:
        (block,) = (await client.call())["content"]
    if version >= MARCH:
        assert block == {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
    else:
        assert block["type"] == "text"
        assert "audio/wav" in block["text"]


@pytest.mark.parametrize("version", OLDER)
async def test_links_to_resources_came_with_2025_06_18(version: str) -> None:
    async with Older(returning(ResourceLink(name="Dune", uri="file:///dune")), version=version) as client:
        (block,) = (await client.call())["content"]
    if version >= JUNE:
        assert block == {"type": "resource_link", "name": "Dune", "uri": "file:///dune"}
    else:
        assert block == {"type": "text", "text": "Dune: file:///dune"}


@pytest.mark.parametrize("version", OLDER)
async def test_icons_on_links_came_with_2025_11_25(version: str) -> None:
    link = ResourceLink(name="Dune", uri="file:///dune", icons=[ICON])
    async with Older(returning(link), version=version) as client:
        (block,) = (await client.call())["content"]
    assert ("icons" in block) == (version >= NOVEMBER)


@pytest.mark.parametrize("version", OLDER)
async def test_meta_on_content_came_with_2025_06_18(version: str) -> None:
    async with Older(returning(TextContent(text="x", _meta={"mine": 1})), version=version) as client:
        (block,) = (await client.call())["content"]
    assert ("_meta" in block) == (version >= JUNE)


@pytest.mark.parametrize("version", OLDER)
async def test_an_authors_own_meta_on_a_result_arrives_without_a_stamp_beside_it(version: str) -> None:
    noted = TextContent(text="x", annotations=Annotations(audience=["user"]))
    async with Older(returning(CallToolResult(content=[noted], _meta={"mine": 1})), version=version) as client:
        result = await client.call()
    assert result["_meta"] == {"mine": 1}
    assert result["content"] == [{"type": "text", "text": "x", "annotations": {"audience": ["user"]}}]


@pytest.mark.parametrize("version", OLDER)
async def test_messages_of_progress_came_with_2025_03_26(version: str) -> None:
    mcp = MCPServer[Any]("slow")

    @mcp.tool()
    async def take(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half done")
        return "done"

    async with Older(mcp, version=version) as client:
        await client.call(_meta={"progressToken": 7})
    (said,) = client.said
    assert ("message" in said["params"]) == (version >= MARCH)


# Capabilities and batches


def test_batches_were_taken_before_2025_06_18() -> None:
    assert [takes_batches(version) for version in (*OLDER, None)] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("version", "able"),
    [
        (NOVEMBER, EVERYTHING),
        (JUNE, {"elicitation": {"form": {}}, "sampling": {"context": {}}, "roots": {}}),
        (MARCH, {"sampling": {"context": {}}, "roots": {}}),
        (FIRST, {"sampling": {"context": {}}, "roots": {}}),
    ],
)
def test_a_client_can_be_asked_what_it_declared_and_its_revision_has(version: str, able: Sent) -> None:
    assert capabilities_at(version, EVERYTHING) == able
    assert capabilities_at(version, {}) == {}
    assert capabilities_at(version, {"elicitation": None, "sampling": True, "roots": "yes"}) == {}


@pytest.mark.parametrize("version", OLDER)
def test_what_a_client_declares_holds_nothing_that_came_later(version: str) -> None:
    declared = declared_at(version, EVERYTHING)
    assert ("elicitation" in declared) == (version >= JUNE)
    if version == NOVEMBER:
        assert declared == EVERYTHING
    else:
        assert declared["sampling"] == {}
        assert declared.get("elicitation", {}) == {}


async def sample() -> Sample:
    return Sample([], max_tokens=5)


async def roots() -> ListRoots:
    return ListRoots()


@pytest.mark.parametrize(
    ("version", "declares", "missing"),
    [
        (NOVEMBER, {}, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
        (NOVEMBER, {"elicitation": {}}, {"sampling": {}, "roots": {}}),
        (NOVEMBER, {"sampling": {}, "roots": {}}, {"elicitation": {"form": {}}}),
        (NOVEMBER, {"elicitation": {"url": {}}, "roots": {}}, {"elicitation": {"form": {}}, "sampling": {}}),
        (MARCH, EVERYTHING, {"elicitation": {"form": {}}}),
        (FIRST, {"elicitation": {}}, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
    ],
)
async def test_all_that_is_missing_is_said_and_nobody_is_asked(version: str, declares: Sent, missing: Sent) -> None:
    async def ask() -> Elicit[int]:
        return Elicit("How many?", int)

    async def take(
        a: Annotated[int, Resolve(ask)],
        b: Annotated[CreateMessageResult, Resolve(sample)],
        c: Annotated[ListRootsResult, Resolve(roots)],
    ) -> str:
        raise AssertionError

    async with Older(serving(take), version=version, declares=declares) as client:
        error = await client.error()
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": missing})
    assert client.pushed == []


@pytest.mark.parametrize("version", [MARCH, FIRST])
async def test_a_client_before_forms_is_told_that_it_is_its_revision(version: str) -> None:
    async with Older(serving(take_value), {"ask": yes(value=3)}, version=version) as client:
        error = await client.error()
    expected = f"this call asks the client for elicitation.form, and a client of {version} cannot be asked with a form"
    assert error["message"] == expected
    assert client.pushed == []


async def test_what_has_nothing_to_do_with_forms_is_not_explained_by_them() -> None:
    async def take(it: Annotated[ListRootsResult, Resolve(roots)]) -> str:
        raise AssertionError

    async with Older(serving(take), version=MARCH, declares={}) as client:
        assert (await client.error())["message"] == "the client must declare roots for this call"


@pytest.mark.parametrize("consumer", [take_value_or_default, take_accepted_or_default, take_outcome_or_not_asked])
async def test_where_everybody_can_do_without_an_answer_the_call_goes_on_as_at_2026_07_28(consumer: Any) -> None:
    ends: list[str] = []
    for version in (NOVEMBER, MARCH):
        async with Older(serving(consumer), version=version, declares={}) as client:
            ends.append((await client.call())["content"][0]["text"])
    async with Client(serving(consumer), mode=MODERN) as modern:
        ends.append(
            (await modern.session.request("tools/call", {"name": "take", "arguments": {}}))["content"][0]["text"]
        )
    assert ends == [ends[0]] * 3


@pytest.mark.parametrize("consumer", [take_value, take_accepted, take_clear, take_outcome, take_refusal])
async def test_where_somebody_cannot_the_capability_is_missing(consumer: Any) -> None:
    async with Older(serving(consumer), declares={}) as client:
        assert (await client.error())["code"] == -32021


async def test_without_sessions_nobody_can_be_asked_and_that_is_said() -> None:
    mcp = serving(take_value)
    async with (
        Listening(mcp.streamable_http_app(stateless_http=True)) as listening,
        Client(listening.url, mode=NOVEMBER, elicitation_callback=_nobody) as client,
    ):
        with pytest.raises(MCPError, match=r"elicitation\.form, and over HTTP without sessions") as raised:
            await client.call_tool("take")
    assert not hasattr(raised.value, "__notes__"), "the client has declared all it can"


async def _nobody(context: Any, params: Any) -> Any:
    raise AssertionError("nobody is asked")


# Questions


class Order(BaseModel):
    copies: int = Field(2, ge=1, le=9, title="Copies")
    price: float = 1.5
    gift: bool = True
    note: str = "none"
    size: Literal["s", "m"] = "m"


def asked(version: str, schema: Sent) -> Sent:
    params = {"mode": "form", "message": "?", "requestedSchema": schema}
    return question_at(version, {"method": "elicitation/create", "params": params})["params"]


async def test_a_form_of_2025_06_18_has_no_mode_and_no_defaults_but_of_booleans() -> None:
    async def ask() -> Elicit[Order]:
        return Elicit("What?", Order)

    async def take(it: Annotated[Order, Resolve(ask)]) -> str:
        return f"{it!r}"

    async with Older(serving(take), {"ask": yes(copies=3)}, version=JUNE) as client:
        assert (await client.call())["content"][0]["text"] == repr(Order(copies=3)), "defaults are the author's still"
    params = client.pushed[0]["params"]
    assert params.keys() == {"message", "requestedSchema", "_meta"}
    shown = params["requestedSchema"]["properties"]
    assert {name: field.get("default") for name, field in shown.items() if "default" in field} == {"gift": True}
    assert (shown["copies"]["minimum"], shown["copies"]["maximum"], shown["copies"]["title"]) == (1, 9, "Copies")
    assert shown["size"]["enum"] == ["s", "m"]


@pytest.mark.parametrize("version", [NOVEMBER, JUNE])
async def test_titles_of_choices_stand_beside_them_at_2025_06_18(version: str) -> None:
    async def ask() -> Elicit[str]:
        return Elicit("Which?", str, choices={"ord-1": "Order 1", "ord-2": "Order 2"})

    async def take(it: Annotated[str, Resolve(ask)]) -> str:
        return it

    async with Older(serving(take), {"ask": yes(value="ord-2")}, version=version) as client:
        assert (await client.call())["content"][0]["text"] == "ord-2"
    field = client.pushed[0]["params"]["requestedSchema"]["properties"]["value"]
    if version == NOVEMBER:
        assert field["oneOf"][0] == {"const": "ord-1", "title": "Order 1"}
        assert "enumNames" not in field
    else:
        assert (field["enum"], field["enumNames"]) == (["ord-1", "ord-2"], ["Order 1", "Order 2"])
        assert "oneOf" not in field


async def test_a_list_of_choices_cannot_be_shown_at_2025_06_18() -> None:
    async def ask() -> Elicit[Any]:
        return Elicit("Which?", list[Literal["a", "b"]])

    async def take(it: Annotated[Any, Resolve(ask)]) -> str:
        return f"{it}"

    async def take_or_not(it: Annotated[Any, Resolve(ask)] = None) -> str:
        return f"{it}"

    async with Older(serving(take), {"ask": yes(value=["a"])}, version=JUNE) as client:
        error = await client.error()
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}})
    assert error["message"].endswith(", and a client of 2025-06-18 cannot be shown the list of choices 'value'")
    assert client.pushed == []
    async with Older(serving(take_or_not), version=JUNE) as client:
        assert (await client.call())["content"][0]["text"] == "None"
    async with Older(serving(take), {"ask": yes(value=["a"])}) as client:
        assert (await client.call())["content"][0]["text"] == "['a']"


def test_a_question_is_not_changed_in_place() -> None:
    field = {"type": "string", "default": "a", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}
    schema: Sent = {"type": "object", "properties": {"x": field}}
    changed = asked(JUNE, schema)["requestedSchema"]["properties"]["x"]
    assert changed == {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]}
    assert "default" in field
    assert asked(NOVEMBER, schema)["requestedSchema"] == schema
    with pytest.raises(Unaskable, match="list of choices 'y'"):
        asked(JUNE, {"type": "object", "properties": {"y": {"type": "array"}}})


def test_what_has_no_params_is_pushed_without() -> None:
    assert question_at(FIRST, {"method": "roots/list"}) == {"method": "roots/list"}
