"""Subscriptions over every transport: changes arrive as events, and both sides can end the stream."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bespeak import Client, MCPServer
from bespeak.client import CacheConfig, ListenNotSupportedError
from bespeak.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    Subscription,
    ToolsListChanged,
)
from bespeak.transports.http import client as http_client
from tests.conftest import Connect
from tests.waiting import eventually
from tests.wires import OverHttp


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def buy() -> str:
        return "bought"

    @mcp.prompt()
    async def greet() -> str:
        return "hello"

    @mcp.resource("shop://stock")
    async def stock() -> str:
        return "7"

    return mcp


async def first(events: AsyncIterator[ServerEvent], count: int) -> list[ServerEvent]:
    async with asyncio.timeout(20):
        return [await anext(events) for _ in range(count)]


async def test_changes_arrive_as_events_of_their_kind(connect: Connect) -> None:
    mcp = shop()
    async with (
        connect(mcp) as client,
        client.listen(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=["shop://stock"],
        ) as changes,
    ):
        assert changes.honored.tools_list_changed
        assert changes.honored.resource_subscriptions == ["shop://stock"]
        mcp.notify_tools_changed()
        mcp.notify_prompts_changed()
        mcp.notify_resources_changed()
        mcp.notify_resource_updated("shop://stock")
        mcp.notify_resource_updated("shop://other")
        assert await first(changes, 4) == [
            ToolsListChanged(),
            PromptsListChanged(),
            ResourcesListChanged(),
            ResourceUpdated("shop://stock"),
        ]
        assert (await client.list_tools()).tools[0].name == "buy"


async def test_several_subscriptions_are_kept_apart(connect: Connect) -> None:
    mcp = shop()
    async with (
        connect(mcp) as client,
        client.listen(tools_list_changed=True) as tools,
        client.listen(prompts_list_changed=True) as prompts,
    ):
        assert tools.subscription_id != prompts.subscription_id
        mcp.notify_tools_changed()
        mcp.notify_prompts_changed()
        assert await first(tools, 1) == [ToolsListChanged()]
        assert await first(prompts, 1) == [PromptsListChanged()]


async def collect(changes: Subscription) -> list[ServerEvent]:
    return [event async for event in changes]


async def test_the_iteration_ends_when_the_server_ends_its_streams(connect: Connect) -> None:
    mcp = shop()
    async with connect(mcp) as client, client.listen(tools_list_changed=True) as changes:
        reading = asyncio.create_task(collect(changes))
        mcp.notify_tools_changed()
        await eventually(lambda: not changes._waiting)  # pyright: ignore[reportPrivateUsage] - it has been read
        mcp.end_subscriptions()  # as a server that stops does
        async with asyncio.timeout(20):
            assert await reading == [ToolsListChanged()]


async def test_leaving_the_block_ends_the_stream_on_the_server(connect: Connect) -> None:
    mcp = shop()
    async with connect(mcp) as client:
        async with client.listen(tools_list_changed=True) as changes:
            assert open_streams(mcp) == 1
        await eventually(lambda: open_streams(mcp) == 0)
        assert await collect(changes) == []


async def test_closing_the_client_ends_its_subscriptions(connect: Connect) -> None:
    mcp = shop()
    async with connect(mcp) as client:
        listening = client.listen(tools_list_changed=True)
        changes = await listening.__aenter__()
        reading = asyncio.create_task(collect(changes))
    async with asyncio.timeout(20):
        assert await reading == []
    await eventually(lambda: open_streams(mcp) == 0)
    await listening.__aexit__(None, None, None)


def open_streams(mcp: MCPServer[Any]) -> int:
    return len(mcp._dispatch._listening._open)  # pyright: ignore[reportPrivateUsage] - nothing else shows it


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
async def test_an_older_revision_has_no_subscriptions_and_the_error_says_what_to_do(version: str) -> None:
    async with Client(shop(), mode=version) as client:
        with pytest.raises(ListenNotSupportedError) as refused:
            await client.listen(tools_list_changed=True).__aenter__()
    assert str(refused.value) == (
        f"subscriptions/listen does not exist at protocol version {version}; it needs 2026-07-28."
        " Use subscribe_resource(), and receive the notifications with message_handler="
    )
    assert refused.value.negotiated_version == version


@pytest.mark.parametrize("version", ["2025-11-25", "2025-03-26"])
async def test_an_older_server_notifies_the_message_handler_of_the_resources_it_was_asked_to_watch(
    version: str,
) -> None:
    mcp = shop()
    seen: list[Any] = []

    async def heard(message: dict[str, Any]) -> None:
        seen.append((message["method"], message.get("params", {}).get("uri")))

    async with Client(mcp, mode=version, message_handler=heard) as client:
        await client.subscribe_resource("shop://stock")
        mcp.notify_resource_updated("shop://stock")
        await eventually(lambda: seen)
        await client.unsubscribe_resource("shop://stock")
        mcp.notify_resource_updated("shop://stock")
        mcp.notify_tools_changed()
        await eventually(lambda: len(seen) > 1)
    assert seen == [
        ("notifications/resources/updated", "shop://stock"),
        ("notifications/tools/list_changed", None),
    ]


@pytest.mark.timing
@pytest.mark.long
async def test_a_stream_on_which_nothing_changes_for_long_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "SILENCE_SECONDS", 0.1)
    mcp = shop()
    async with Client(OverHttp(mcp, "h11")) as client, client.listen(tools_list_changed=True) as changes:
        await asyncio.sleep(0.3)
        mcp.notify_tools_changed()
        assert await first(changes, 1) == [ToolsListChanged()]


async def test_what_has_changed_is_not_taken_from_the_cache_once_its_event_arrives(connect: Connect) -> None:
    mcp = shop()
    async with (
        connect(mcp, cache=CacheConfig(default_ttl_ms=60_000)) as client,
        client.listen(resource_subscriptions=["shop://stock"]) as changes,
    ):
        asked = client.session.request
        reads: list[str] = []

        async def counted(method: str, *args: Any, **options: Any) -> Any:
            reads.append(method)
            result = await asked(method, *args, **options)
            return {**result, "ttlMs": 60_000}

        client.session.request = counted
        await client.read_resource("shop://stock")
        await client.read_resource("shop://stock")
        assert reads == ["resources/read"]
        mcp.notify_resource_updated("shop://stock")
        assert await first(changes, 1) == [ResourceUpdated("shop://stock")]
        await client.read_resource("shop://stock")
        assert reads == ["resources/read"] * 2
