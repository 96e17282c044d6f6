"""Listing tools: their order, pages and cursors, and cache hints on every page."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from bespeak import MCPError, MCPServer
from bespeak.server.features.listings import CacheableMethod, CacheHint
from tests.conftest import Connect
from tests.serving import serve

META: dict[str, Any] = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: {}}


def shop(*names: str, page_size: int | None = None) -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop", page_size=page_size)
    for name in names:
        mcp.add_tool(lambda: 1, name=name)
    return mcp


async def listed(mcp: MCPServer[Any], **params: Any) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META, **params}}
    raw = await serve(mcp, json.dumps(request).encode(), lambda _: None)
    assert raw is not None
    return json.loads(raw)


async def pages(mcp: MCPServer[Any]) -> list[list[str]]:
    found: list[list[str]] = []
    params: dict[str, Any] = {}
    while True:
        result = (await listed(mcp, **params))["result"]
        found.append([tool["name"] for tool in result["tools"]])
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


async def test_tools_are_listed_in_the_order_they_were_registered() -> None:
    assert await pages(shop("b", "a", "c")) == [["b", "a", "c"]]


async def test_a_tool_that_is_replaced_goes_to_the_end() -> None:
    mcp = shop("b", "a")
    mcp.remove_tool("b")
    mcp.add_tool(lambda: 1, name="b")
    assert await pages(mcp) == [["a", "b"]]


async def test_an_empty_server_lists_nothing_and_has_no_next_page() -> None:
    assert await pages(shop(page_size=2)) == [[]]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [["a"], ["b"], ["c"], ["d"]]),
        (2, [["a", "b"], ["c", "d"]]),
        (3, [["a", "b", "c"], ["d"]]),
        (4, [["a", "b", "c", "d"]]),
        (9, [["a", "b", "c", "d"]]),
        (None, [["a", "b", "c", "d"]]),
    ],
)
async def test_pages_hold_every_tool_once_and_the_last_has_no_cursor(
    size: int | None, expected: list[list[str]]
) -> None:
    assert await pages(shop("a", "b", "c", "d", page_size=size)) == expected


async def test_cursors_work_for_names_of_every_alphabet() -> None:
    assert await pages(shop("größe", "価格", "a b/c", page_size=1)) == [["größe"], ["価格"], ["a b/c"]]


async def test_a_cursor_goes_on_where_it_left_off_though_tools_came_and_went_meanwhile() -> None:
    mcp = shop("a", "b", "c", "d", page_size=2)
    cursor = (await listed(mcp))["result"]["nextCursor"]
    mcp.remove_tool("a")
    mcp.add_tool(lambda: 1, name="e")
    result = (await listed(mcp, cursor=cursor))["result"]
    assert [tool["name"] for tool in result["tools"]] == ["c", "d"]


@pytest.mark.parametrize("cursor", ["", "nonsense", "!!!!", "é", "YQ", "bm9ib2R5", None, 1, [], {}, True])
async def test_a_cursor_that_is_not_ours_is_invalid_params(cursor: Any) -> None:
    error = (await listed(shop("a", "b", page_size=1), cursor=cursor))["error"]
    assert error == {"code": -32602, "message": "invalid cursor; list again from the start"}


async def test_the_cursor_of_a_removed_tool_is_invalid_params() -> None:
    mcp = shop("a", "b", page_size=1)
    cursor = (await listed(mcp))["result"]["nextCursor"]
    mcp.remove_tool("a")
    assert (await listed(mcp, cursor=cursor))["error"]["code"] == -32602


@pytest.mark.every_revision
async def test_a_client_pages_with_cursors(connect: Connect) -> None:
    async with connect(shop("a", "b", page_size=1)) as client:
        first = await client.list_tools()
        second = await client.list_tools(cursor=first.next_cursor)
        with pytest.raises(MCPError, match="invalid cursor"):
            await client.list_tools(cursor="")
    assert [tool.name for page in (first, second) for tool in page.tools] == ["a", "b"]
    assert second.next_cursor is None


async def test_every_page_has_cache_hints_and_they_are_cautious_by_default() -> None:
    mcp = shop("a", "b", page_size=1)
    first = (await listed(mcp))["result"]
    second = (await listed(mcp, cursor=first["nextCursor"]))["result"]
    assert [(page["ttlMs"], page["cacheScope"]) for page in (first, second)] == [(0, "private")] * 2


async def test_cache_hints_are_given_by_method() -> None:
    hints: Mapping[CacheableMethod, CacheHint] = {"tools/list": CacheHint(60_000, "public")}
    mcp = MCPServer("shop", cache_hints=hints)
    result = (await listed(mcp))["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "public")


def test_a_cache_hint_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match="ttl_ms must be a number of milliseconds that is not negative"):
        CacheHint(-1)


async def test_a_list_without_a_client_is_what_a_client_sees(in_memory: Connect) -> None:
    mcp = shop("a", "b", page_size=1)
    async with in_memory(mcp) as client:
        seen = (await client.list_tools()).tools
    assert (await mcp.list_tools())[:1] == seen
    assert [tool.name for tool in await mcp.list_tools()] == ["a", "b"]
