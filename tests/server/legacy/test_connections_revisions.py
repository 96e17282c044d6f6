"""What a server says to clients of each older revision (protocol 25.5 and 26), over their connection."""

from typing import Annotated, Any, Literal

import pytest
from mcp_types import (
    Annotations,
    CallToolResult,
    CreateMessageResult,
    Icon,
    ListRootsResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel

from bespeak import Client, Context, Elicit, ListRoots, MCPError, MCPServer, Resolve, Sample
from tests.rules.consumers import (
    serving,
    take_accepted_or_default,
    take_outcome_or_not_asked,
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


# Results


def returning(value: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("results")

    async def give() -> CallToolResult:
        return value if isinstance(value, CallToolResult) else CallToolResult(content=[value])

    mcp.add_tool(give, name="take")
    return mcp


@pytest.mark.parametrize("version", OLDER)
async def test_an_authors_own_meta_on_a_result_arrives_alone(version: str) -> None:
    noted = TextContent(text="x", annotations=Annotations(audience=["user"]))
    async with Older(returning(CallToolResult(content=[noted], _meta={"mine": 1})), version=version) as client:
        result = await client.call()
    assert result["_meta"] == {"mine": 1}
    assert result["content"] == [{"type": "text", "text": "x", "annotations": {"audience": ["user"]}}]


@pytest.mark.parametrize("version", OLDER)
async def test_progress_messages_came_with_2025_03_26(version: str) -> None:
    mcp = MCPServer[Any]("slow")

    @mcp.tool()
    async def take(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half done")
        return "done"

    async with Older(mcp, version=version) as client:
        await client.call(_meta={"progressToken": 7})
    (said,) = client.said
    assert ("message" in said["params"]) == (version >= MARCH)


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
async def test_all_missing_capabilities_are_listed_and_nobody_is_asked(
    version: str, declares: Sent, missing: Sent
) -> None:
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
async def test_a_client_of_a_revision_before_forms_is_told_so(version: str) -> None:
    async with Older(serving(take_value), {"ask": yes(value=3)}, version=version) as client:
        error = await client.error()
    expected = f"this call asks the client for elicitation.form, but a client of {version} cannot be asked with a form"
    assert error["message"] == expected
    assert client.pushed == []


@pytest.mark.parametrize("consumer", [take_value_or_default, take_accepted_or_default, take_outcome_or_not_asked])
async def test_a_call_that_needs_no_answer_ends_as_in_the_modern_era(consumer: Any) -> None:
    ends: list[str] = []
    for version in (NOVEMBER, MARCH):
        async with Older(serving(consumer), version=version, declares={}) as client:
            ends.append((await client.call())["content"][0]["text"])
    async with Client(serving(consumer), mode=MODERN) as modern:
        ends.append(
            (await modern.session.request("tools/call", {"name": "take", "arguments": {}}))["content"][0]["text"]
        )
    assert ends == [ends[0]] * 3


async def test_without_sessions_a_call_that_asks_is_an_error_that_says_so() -> None:
    mcp = serving(take_value)
    async with (
        Listening(mcp.streamable_http_app(stateless_http=True)) as listening,
        Client(listening.url, mode=NOVEMBER, elicitation_callback=_nobody) as client,
    ):
        with pytest.raises(MCPError, match=r"elicitation\.form, but over HTTP without sessions") as raised:
            await client.call_tool("take")
    assert not hasattr(raised.value, "__notes__"), "the client has declared all it can"


async def _nobody(context: Any, params: Any) -> Any:
    raise AssertionError("nobody is asked")


# Questions


async def test_a_form_is_pushed_as_its_revision_knows_it() -> None:
    async with Older(serving(take_value), {"ask": yes(value=3)}, version=JUNE) as client:
        await client.call()
    assert client.pushed[0]["params"].keys() == {"message", "requestedSchema", "_meta"}, "no mode"


async def test_a_client_of_2025_06_18_cannot_be_asked_for_a_list_of_choices() -> None:
    async def ask() -> Elicit[Any]:
        return Elicit("Which?", list[Literal["a", "b"]])

    async def take(it: Annotated[Any, Resolve(ask)]) -> str:
        return f"{it}"

    async def take_or_not(it: Annotated[Any, Resolve(ask)] = None) -> str:
        return f"{it}"

    async with Older(serving(take), {"ask": yes(value=["a"])}, version=JUNE) as client:
        error = await client.error()
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}})
    assert error["message"].endswith(
        ", but a client of 2025-06-18 does not support lists of choices, such as the field 'value'"
    )
    assert client.pushed == []
    async with Older(serving(take_or_not), version=JUNE) as client:
        assert (await client.call())["content"][0]["text"] == "None"
    async with Older(serving(take), {"ask": yes(value=["a"])}) as client:
        assert (await client.call())["content"][0]["text"] == "['a']"
