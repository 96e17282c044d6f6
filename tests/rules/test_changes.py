"""One author's call tells the clients of both eras what has changed, over every transport."""

import asyncio
import json
from typing import Any

import pytest

from bespeak import Context, MCPServer
from bespeak.protocol.messages import LegacyRequest
from tests.conftest import Connect, connecting
from tests.waiting import eventually

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["stock://dune"],
}


class Heard:
    """A message handler that remembers."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    async def __call__(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    @property
    def methods(self) -> list[str]:
        return [message["method"].removeprefix("notifications/") for message in self.messages]


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def sell(ctx: Context[Any, Any]) -> str:
        await ctx.notify_resource_updated("stock://dune")
        await ctx.notify_resource_updated("stock://emma")
        return "sold"

    return mcp


async def change_everything(mcp: MCPServer[Any]) -> None:
    mcp.add_tool(lambda: "x", name="later")
    mcp.prompt(name="later")(lambda: "x")
    mcp.resource("later://x", name="later")(lambda: "x")


CHANGED = ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"]


async def test_a_modern_client_that_listens_is_told_what_it_asked_for(connect: Connect) -> None:
    mcp, heard = shop(), Heard()
    async with connect(mcp, message_handler=heard) as client:
        listening = asyncio.create_task(
            client.session.request("subscriptions/listen", {"notifications": EVERYTHING}, read_timeout_seconds=30)
        )
        await eventually(lambda: heard.methods == ["subscriptions/acknowledged"])
        await change_everything(mcp)
        await client.call_tool("sell")
        await eventually(lambda: sorted(heard.methods[1:]) == sorted(CHANGED))
        id_ = heard.messages[0]["params"]["_meta"][SUBSCRIPTION]
        assert [message["params"]["_meta"] for message in heard.messages] == [{SUBSCRIPTION: id_}] * 5
        assert heard.messages[0]["params"]["notifications"] == EVERYTHING
        assert [m["params"]["uri"] for m in heard.messages if m["method"].endswith("updated")] == ["stock://dune"]
        mcp.end_subscriptions()
        result = await listening
        assert result["_meta"][SUBSCRIPTION] == id_
        assert result["resultType"] == "complete"


async def test_a_modern_client_hears_nothing_it_did_not_ask_for(connect: Connect) -> None:
    mcp, heard = shop(), Heard()
    async with connect(mcp, message_handler=heard) as client:
        wanted = {"toolsListChanged": False, "promptsListChanged": True}
        listening = asyncio.create_task(client.session.request("subscriptions/listen", {"notifications": wanted}))
        await eventually(lambda: heard.messages)
        assert heard.messages[0]["params"]["notifications"] == {"promptsListChanged": True}
        mcp.add_tool(lambda: "x", name="later")
        mcp.remove_tool("later")
        mcp.notify_resource_updated("stock://dune")
        mcp.notify_resources_changed()
        mcp.notify_prompts_changed()
        await eventually(lambda: heard.methods[1:] == ["prompts/list_changed"])
        listening.cancel()
        await asyncio.wait({listening})


OLDER = (
    "memory-2025-11-25",
    "stdio-2025-11-25",
    "httptools-2025-11-25",
    "memory-2025-06-18",
    "memory-2025-03-26",
    "memory-2024-11-05",
)


@pytest.mark.parametrize("cell", OLDER)
async def test_an_older_client_is_told_of_lists_always_and_of_resources_it_subscribed_to(cell: str) -> None:
    mcp, heard = shop(), Heard()

    def reached() -> bool:
        mcp.notify_tools_changed()  # over HTTP, the stream for this may not be open yet
        return bool(heard.messages)

    async with connecting(cell)(mcp, message_handler=heard) as client:
        await client.session.request("resources/subscribe", {"uri": "stock://dune"})
        await eventually(reached)
        await client.call_tool("sell")
        await eventually(lambda: heard.methods[-1] == "resources/updated")
        heard.messages.clear()
        await change_everything(mcp)
        await client.call_tool("sell")
        await eventually(lambda: sorted(heard.methods) == sorted(CHANGED))
        assert [m["params"] for m in heard.messages if m["method"].endswith("updated")] == [{"uri": "stock://dune"}]
        heard.messages.clear()
        await client.session.request("resources/unsubscribe", {"uri": "stock://dune"})
        await client.call_tool("sell")
        mcp.notify_tools_changed()
        await eventually(lambda: heard.methods == ["tools/list_changed"])


async def test_changes_are_kept_once_each_for_a_client_that_is_away() -> None:
    """A session whose client has no stream at the moment is told when it comes back."""
    mcp = shop()
    peer = mcp.peer()
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    assert peer.at_once(LegacyRequest(1, "initialize", hello)) is not None
    assert peer.at_once(LegacyRequest(2, "resources/subscribe", {"uri": "stock://dune"})) is not None
    for _ in range(1000):
        mcp.notify_resource_updated("stock://dune")
        mcp.notify_tools_changed()
    told: list[dict[str, Any]] = []
    standing = asyncio.create_task(peer.stand(lambda message: told.append(json.loads(message))))
    await eventually(lambda: len(told) == 2)
    peer.close("over")
    await standing
    mcp.notify_tools_changed()
    assert [one["method"] for one in told] == ["notifications/resources/updated", "notifications/tools/list_changed"]
