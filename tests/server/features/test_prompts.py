"""Prompts: how they are listed, what their functions get, and every refusal, in both eras."""

from typing import Annotated, Any

import pytest
from mcp_types import Icon, TextContent
from pydantic import Field

from bespeak import Context, Elicit, MCPError, MCPServer, Resolve, ToolError
from bespeak.server import Prompt
from bespeak.server.features.prompts import prompt_arguments
from tests.server.eras import FIRST, JUNE, MARCH, NOVEMBER, Respond, Sent, both_eras, legacy, modern
from tests.server.legacy.older_client import Older, yes


async def ask_tone() -> Elicit[str]:
    return Elicit("Which tone?", str)


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.prompt(
        title="Order a book",
        description="Write an order",
        icons=[Icon(src="https://example.com/i.png")],
        meta={"a": 1},
    )
    def order(
        title: Annotated[str, Field(description="Which book")],
        copies: int = 1,
        shelf_: Annotated[str, Field(alias="shelf")] = "A",
    ) -> str:
        return f"{copies!r} of {title} from {shelf_}"

    @mcp.prompt
    def polite(tone: Annotated[str, Resolve(ask_tone)], ctx: Context) -> str:
        """A polite letter."""
        return f"{tone} at {ctx.protocol_version}"

    @mcp.prompt()
    def broken() -> str:
        raise LookupError("secret")

    @mcp.prompt()
    def refusing() -> str:
        raise ToolError("not today")

    return mcp


async def got(respond: Respond, name: str, arguments: Any = None) -> Sent:
    params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
    return await respond(shop(), "prompts/get", params)


def said(response: Sent) -> str:
    (message,) = response["result"]["messages"]
    return message["content"]["text"]


async def test_a_prompt_is_listed_with_its_arguments() -> None:
    listed = (await modern(shop(), "prompts/list"))["result"]["prompts"]
    assert listed[0] == {
        "name": "order",
        "title": "Order a book",
        "description": "Write an order",
        "arguments": [
            {"name": "title", "description": "Which book", "required": True},
            {"name": "copies", "required": False},
            {"name": "shelf", "required": False},
        ],
        "icons": [{"src": "https://example.com/i.png"}],
        "_meta": {"a": 1},
    }
    assert listed[1] == {"name": "polite", "description": "A polite letter.", "arguments": []}
    assert listed[2] == {"name": "broken", "arguments": []}


@pytest.mark.parametrize(
    ("version", "lost"),
    [
        (FIRST, {"title", "icons", "_meta"}),
        (MARCH, {"title", "icons", "_meta"}),
        (JUNE, {"icons"}),
        (NOVEMBER, set[str]()),
    ],
)
async def test_an_older_list_lacks_what_came_later(version: str, lost: set[str]) -> None:
    listed = (await legacy(shop(), "prompts/list", {}, version))["result"]["prompts"]
    everything = {"name", "title", "description", "arguments", "icons", "_meta"}
    assert everything - listed[0].keys() == lost


@both_eras
async def test_arguments_are_text_on_the_wire_and_typed_in_the_function(respond: Respond) -> None:
    response = await got(respond, "order", {"title": "Dune", "copies": "2", "shelf": "B"})
    assert said(response) == "2 of Dune from B"
    assert response["result"]["description"] == "Write an order"
    assert said(await got(respond, "order", {"title": "Dune"})) == "1 of Dune from A"


@both_eras
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("borrow", None, "unknown prompt 'borrow'"),
        (7, None, "params.name must be the name of a prompt"),
        ("order", ["Dune"], "params.arguments must be an object whose values are strings"),
        ("order", {"title": 7}, "params.arguments must be an object whose values are strings"),
        ("order", {}, "Error rendering prompt order: invalid arguments: title: "),
        ("order", {"title": "Dune", "copies": "two"}, "Error rendering prompt order: invalid arguments: copies: "),
    ],
)
async def test_a_wrong_request_is_refused(respond: Respond, name: Any, arguments: Any, message: str) -> None:
    error = (await got(respond, name, arguments))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith(message)


@both_eras
async def test_a_failure_is_an_internal_error(respond: Respond) -> None:
    assert (await got(respond, "broken"))["error"] == {"code": -32603, "message": "Error rendering prompt broken"}
    refused = (await got(respond, "refusing"))["error"]
    assert refused == {"code": -32603, "message": "Error rendering prompt refusing: not today"}


async def test_a_prompt_asks_in_both_eras() -> None:
    response = await got(modern, "polite")
    assert response["result"]["resultType"] == "input_required"
    assert "ttlMs" not in response["result"]
    async with Older(shop(), {"ask_tone": yes(value="warm")}) as client:
        answered = await client.request("prompts/get", {"name": "polite"})
    assert said(answered) == "warm at 2025-11-25"


async def test_a_prompt_made_by_itself_can_be_added_and_removed() -> None:
    def greet(name: str = "you") -> str:
        """Say hello."""
        return f"hello {name}"

    mcp = MCPServer("shop")
    mcp.add_prompt(Prompt.from_function(greet, "hi", "Hi", "Greets", [Icon(src="https://example.com/i.png")]))
    (listed,) = await mcp.list_prompts()
    assert (listed.name, listed.title, listed.description) == ("hi", "Hi", "Greets")
    result = await mcp.get_prompt("hi", {"name": "Ada"})
    assert result.messages[0].content == TextContent(type="text", text="hello Ada")
    mcp.remove_prompt("hi")
    assert await mcp.list_prompts() == []
    with pytest.raises(MCPError, match=r"^unknown prompt 'hi'$"):
        await mcp.get_prompt("hi")


def test_no_arguments_are_no_arguments() -> None:
    assert prompt_arguments(None) == {}
    assert prompt_arguments({"a": "b"}) == {"a": "b"}
