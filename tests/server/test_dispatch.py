"""Messages in, messages out: methods and error codes, what every result carries, and what a crash does not tell."""

import asyncio
import json
import logging
import threading
from typing import Annotated, Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    CallToolResult,
    Icon,
)
from pydantic import BaseModel

from bespeak import Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve, ToolError
from tests.answering import text
from tests.conftest import Connect
from tests.serving import serve

META: dict[str, Any] = {
    PROTOCOL_VERSION_META_KEY: "2026-07-28",
    CLIENT_CAPABILITIES_META_KEY: {"elicitation": {"form": {}}},
}
SPOKEN = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]


async def served(
    mcp: MCPServer[Any], method: str, params: dict[str, Any] | None = None, id_: Any = 1
) -> dict[str, Any]:
    """The response to one request, raw."""
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": META, **(params or {})}}
    return await answered(mcp, json.dumps(message).encode())


async def answered(mcp: MCPServer[Any], raw: bytes) -> dict[str, Any]:
    response = await serve(mcp, raw, lambda _: None)
    assert response is not None
    return json.loads(response)


class Confirmation(BaseModel):
    sure: bool


async def ask_if_sure() -> Elicit[Confirmation]:
    return Elicit("Sure?", Confirmation)


@pytest.fixture
def mcp() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop", version="1.2")

    @mcp.tool()
    def greet(name: str = "you") -> str:
        return f"hello {name}"

    @mcp.tool()
    async def order(sure: Annotated[Confirmation, Resolve(ask_if_sure)]) -> str:
        return str(sure.sure)

    return mcp


# Methods


async def test_discover_says_what_the_server_is() -> None:
    mcp = MCPServer(
        "shop",
        title="The shop",
        description="Sells books",
        instructions="Ask first.",
        website_url="https://example.com",
        icons=[Icon(src="https://example.com/i.png")],
        version="1.2",
    )
    response = await served(mcp, "server/discover", id_="d1")
    assert response == {
        "jsonrpc": "2.0",
        "id": "d1",
        "result": {
            "resultType": "complete",
            "supportedVersions": SPOKEN,
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {"listChanged": True},
                "resources": {"subscribe": True, "listChanged": True},
                "logging": {},
            },
            "instructions": "Ask first.",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {
                SERVER_INFO_META_KEY: {
                    "name": "shop",
                    "title": "The shop",
                    "description": "Sells books",
                    "websiteUrl": "https://example.com",
                    "icons": [{"src": "https://example.com/i.png"}],
                    "version": "1.2",
                }
            },
        },
    }


async def test_a_server_without_instructions_sends_none() -> None:
    response = await served(MCPServer("shop"), "server/discover")
    assert "instructions" not in response["result"]


@pytest.mark.parametrize("method", ["nonsense", "initialize", "ping", "tools/Call", "", "logging/setLevel", "__init__"])
async def test_an_unknown_method_is_method_not_found(mcp: MCPServer[Any], method: str) -> None:
    response = await served(mcp, method, id_="x")
    assert response["id"] == "x"
    assert response["error"] == {"code": -32601, "message": f"unknown method {method!r}"}


async def test_a_notification_is_never_answered(mcp: MCPServer[Any]) -> None:
    assert await serve(mcp, b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}', lambda _: None) is None


async def test_a_notification_is_not_answered_even_if_its_params_are_wrong(mcp: MCPServer[Any]) -> None:
    # protocol 1: notifications have no id, and the receiver MUST NOT answer
    assert await serve(mcp, b'{"jsonrpc": "2.0", "method": "notifications/x", "params": []}', lambda _: None) is None


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc": "2.0", "id": 3, "method": "tools/list"}]', -32600),
        (b'{"jsonrpc": "2.0", "id": 3, "method": "tools/list"}', -32602),
        (b'{"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": {}}}', -32602),
    ],
)
async def test_a_malformed_message_is_answered_with_its_code(mcp: MCPServer[Any], raw: bytes, code: int) -> None:
    assert (await answered(mcp, raw))["error"]["code"] == code


async def test_an_unsupported_version_is_told_the_supported_ones_by_every_method(mcp: MCPServer[Any]) -> None:
    meta = {**META, PROTOCOL_VERSION_META_KEY: "2031-01-01"}
    for method in ("server/discover", "tools/list", "tools/call"):
        error = (await served(mcp, method, {"_meta": meta}))["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": SPOKEN, "requested": "2031-01-01"}


# Calls


@pytest.mark.parametrize("name", ["nonsense", ""])
async def test_an_unknown_tool_is_invalid_params(mcp: MCPServer[Any], name: str) -> None:
    error = (await served(mcp, "tools/call", {"name": name}))["error"]
    assert error == {"code": -32602, "message": f"unknown tool {name!r}"}


@pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 1}, {"name": ["greet"]}])
async def test_a_call_must_name_a_tool(mcp: MCPServer[Any], params: dict[str, Any]) -> None:
    error = (await served(mcp, "tools/call", params))["error"]
    assert error == {"code": -32602, "message": "params.name must be the name of a tool"}


@pytest.mark.parametrize("arguments", [[], "x", 0, True])
async def test_arguments_that_are_no_object_are_invalid_params(mcp: MCPServer[Any], arguments: Any) -> None:
    error = (await served(mcp, "tools/call", {"name": "greet", "arguments": arguments}))["error"]
    assert error == {"code": -32602, "message": "params.arguments must be an object"}


async def test_arguments_may_be_left_out(mcp: MCPServer[Any]) -> None:
    result = (await served(mcp, "tools/call", {"name": "greet"}))["result"]
    assert result["content"] == [{"type": "text", "text": "hello you"}]


# What every result carries


async def test_every_result_has_a_type_and_says_which_server_it_is_from(mcp: MCPServer[Any]) -> None:
    expected = {
        "server/discover": "complete",
        "tools/list": "complete",
    }
    for method, kind in expected.items():
        result = (await served(mcp, method))["result"]
        assert result["resultType"] == kind
        assert result["_meta"] == {SERVER_INFO_META_KEY: {"name": "shop", "version": "1.2"}}
    for params, kind in [
        ({"name": "greet"}, "complete"),
        ({"name": "greet", "arguments": {"name": 1}}, "complete"),
        ({"name": "order"}, "input_required"),
    ]:
        result = (await served(mcp, "tools/call", params))["result"]
        assert result["resultType"] == kind
        assert result["_meta"] == {SERVER_INFO_META_KEY: {"name": "shop", "version": "1.2"}}


async def test_calls_and_questions_carry_no_cache_hints(mcp: MCPServer[Any]) -> None:
    for name in ("greet", "order"):
        result = (await served(mcp, "tools/call", {"name": name}))["result"]
        assert "ttlMs" not in result
        assert "cacheScope" not in result


async def test_a_tool_s_own_metadata_stands_beside_the_server_s() -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def tool() -> CallToolResult:
        return CallToolResult(content=[], _meta={"com.example/x": 1})

    result = (await served(mcp, "tools/call", {"name": "tool"}))["result"]
    assert result["_meta"] == {"com.example/x": 1, SERVER_INFO_META_KEY: {"name": "shop", "version": ""}}


# Failures


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def test_an_exception_that_cannot_be_printed_is_a_crash_like_any_other(in_memory: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def crash() -> str:
        raise Unprintable

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("crash")) == "Error executing tool crash"


@pytest.mark.every_revision
async def test_a_tool_error_is_read_by_the_model_and_not_logged_as_a_crash(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def buy() -> str:
        raise ToolError("sold out")

    async with connect(mcp) as client:
        result = await client.call_tool("buy")
    assert result.is_error
    assert text(result) == "Error executing tool buy: sold out"
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.every_revision
async def test_an_author_s_protocol_error_is_sent_as_it_is(connect: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def tool() -> str:
        raise MCPError(1234, "no such shelf", {"shelf": 3})

    async with connect(mcp) as client:
        with pytest.raises(MCPError, match="no such shelf") as caught:
            await client.call_tool("tool")
    assert (caught.value.code, caught.value.data) == (1234, {"shelf": 3})


def unwritable_text() -> Any:
    return "\ud800"


def unwritable_metadata() -> Any:
    return CallToolResult(content=[], _meta={"x": object()})


def unwritable_error() -> Any:
    raise MCPError(1234, "no", object())


@pytest.mark.parametrize("fn", [unwritable_text, unwritable_metadata, unwritable_error])
async def test_what_cannot_be_written_as_json_is_answered_as_a_failure_all_the_same(fn: Any) -> None:
    mcp = MCPServer("shop")
    mcp.add_tool(fn, name="tool")
    response = await served(mcp, "tools/call", {"name": "tool"}, id_=9)
    assert response["id"] == 9
    assert "error" in response or response["result"]["isError"]


@pytest.mark.parametrize("raised", [False, True])
async def test_a_fault_outside_any_tool_is_an_internal_error_and_its_text_stays_private(
    in_process: Connect, caplog: pytest.LogCaptureFixture, raised: bool
) -> None:
    def crash(context: Any) -> str | None:
        raise OSError("secret")

    mcp = MCPServer("shop", request_state_security=RequestStateSecurity(bind_principal=crash))
    mcp.add_tool(unwritable_text, name="tool")
    async with in_process(mcp, raise_exceptions=raised) as client:
        with pytest.raises(OSError if raised else MCPError) as caught:
            await client.call_tool("tool", request_state="forged")
    assert str(caught.value) == ("secret" if raised else "internal error")
    assert getattr(caught.value, "code", -32603) == -32603
    assert "secret" in caplog.text


async def test_raise_exceptions_shows_the_crash_itself(in_process: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def crash() -> str:
        raise KeyError("secret")

    async with in_process(mcp, raise_exceptions=True) as client:
        with pytest.raises(KeyError, match="secret"):
            await client.call_tool("crash")


async def test_raise_exceptions_leaves_protocol_errors_as_they_are(in_process: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    def tool() -> str:
        raise MCPError(1234, "no such shelf")

    async with in_process(mcp, raise_exceptions=True) as client:
        with pytest.raises(MCPError, match="no such shelf"):
            await client.call_tool("tool")


# Threads


@pytest.mark.every_revision
async def test_sync_tools_run_in_threads_and_side_by_side(connect: Connect) -> None:
    mcp = MCPServer("shop")
    together = threading.Barrier(2, timeout=5)

    @mcp.tool()
    def tool() -> bool:
        together.wait()  # both must be inside at once, or neither gets out
        return threading.current_thread() is threading.main_thread()

    async with connect(mcp) as client:
        first, second = await asyncio.gather(client.call_tool("tool"), client.call_tool("tool"))
    assert text(first) == text(second) == "false"


async def test_async_tools_run_in_the_event_loop_s_own_thread(in_memory: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def tool() -> bool:
        return threading.current_thread() is threading.main_thread()

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "true"


async def test_what_a_sync_tool_returns_to_await_is_awaited(in_memory: Connect) -> None:
    mcp = MCPServer("shop")

    async def later() -> str:
        return "awaited"

    @mcp.tool()
    def tool() -> Any:
        return later()

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "awaited"
