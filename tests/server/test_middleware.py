"""Hooks around every request and every call."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest

from bespeak import Client, Elicit, MCPError, MCPServer, Resolve, ToolError
from bespeak.server.middleware import CallEnd, CallInfo, RequestEnd, RequestInfo
from tests.answering import Person, accept, text
from tests.conftest import Connect

Request = Callable[[], Awaitable[RequestEnd]]
Call = Callable[[], Awaitable[CallEnd]]


async def confirm() -> Elicit[bool]:
    return Elicit("Sure?", bool)


def shop() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def pay(amount: int, ok: Annotated[bool, Resolve(confirm)]) -> str:
        return "paid"

    @mcp.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    async def fail() -> str:
        raise ToolError("no")

    @mcp.prompt()
    async def greet() -> str:
        return "Hello"

    return mcp


async def test_a_hook_around_requests_sees_each_one_and_how_it_ended(connect: Connect) -> None:
    mcp, seen = shop(), list[Any]()

    @mcp.on_request
    async def log(request: RequestInfo, proceed: Request) -> RequestEnd:
        end = await proceed()
        seen.append((request.method, request.target, request.protocol_version, end.error_code))
        return end

    async with connect(mcp) as client:
        await client.list_tools()
        await client.call_tool("add", {"a": 1, "b": 2})
        with pytest.raises(MCPError):
            await client.call_tool("nothing")
    assert seen[-3:] == [
        ("tools/list", None, "2026-07-28", None),
        ("tools/call", "add", "2026-07-28", None),
        ("tools/call", "nothing", "2026-07-28", -32602),
    ]


async def test_a_hook_around_requests_may_refuse_one(connect: Connect) -> None:
    mcp = shop()

    @mcp.on_request
    async def refuse(request: RequestInfo, proceed: Request) -> RequestEnd:
        if request.target == "add":
            raise MCPError(-1, "not today")
        return await proceed()

    async with connect(mcp) as client:
        with pytest.raises(MCPError, match="not today"):
            await client.call_tool("add", {"a": 1, "b": 2})


@pytest.mark.asking_revisions
async def test_a_hook_around_calls_sees_each_round_with_its_context(connect: Connect) -> None:
    mcp, seen = shop(), list[tuple[Any, ...]]()

    @mcp.on_call
    async def log(call: CallInfo, proceed: Call) -> CallEnd:
        end = await proceed()
        seen.append((call.method, call.name, dict(call.arguments), call.context.round, end.asked, end.is_error))
        return end

    async with connect(mcp, elicitation_callback=Person({"confirm": accept(value=True)})) as client:
        await client.call_tool("pay", {"amount": 7})
        await client.call_tool("fail")
        modern = client.protocol_version >= "2026"
    arguments: dict[str, Any] = {"amount": 7}
    rounds = [("tools/call", "pay", arguments, 1, True, False), ("tools/call", "pay", arguments, 2, False, False)]
    # An older client sends one request, whose arguments are not kept while a person is asked.
    nothing: dict[str, Any] = {}
    pay = rounds if modern else [("tools/call", "pay", nothing, 1, False, False)]
    assert seen == [*pay, ("tools/call", "fail", nothing, 1, False, True)]


@pytest.mark.asking_revisions
async def test_a_hook_around_calls_may_refuse_one(in_memory: Connect) -> None:
    mcp = shop()

    @mcp.on_call
    async def refuse(call: CallInfo, proceed: Call) -> CallEnd:
        raise ToolError("closed") if call.name == "add" else MCPError(-1, "not today")

    async with in_memory(mcp, elicitation_callback=Person()) as client:
        assert text(await client.call_tool("add", {"a": 1, "b": 2})) == "Error executing tool add: closed"
        with pytest.raises(MCPError, match="not today"):
            await client.call_tool("pay", {"amount": 1})


async def test_no_hook_around_calls_runs_for_a_state_that_is_not_valid() -> None:
    mcp, seen = shop(), list[str]()

    @mcp.on_call
    async def log(call: CallInfo, proceed: Call) -> CallEnd:
        seen.append(call.name)
        return await proceed()

    async with Client(mcp) as client:
        with pytest.raises(MCPError, match="invalid or expired requestState"):
            await client.session.call_tool("pay", {"amount": 1}, request_state="forged")
    assert seen == []


async def test_hooks_nest_in_the_order_they_were_registered() -> None:
    mcp, log = shop(), list[str]()

    def hook(name: str) -> None:
        @mcp.on_call
        async def around(call: CallInfo, proceed: Call) -> CallEnd:
            log.append(f"{name} before")
            end = await proceed()
            log.append(f"{name} after")
            return end

    hook("outer")
    hook("inner")
    async with Client(mcp) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
    assert log == ["outer before", "inner before", "inner after", "outer after"]


async def test_a_hook_that_forgets_to_proceed_or_does_so_twice_is_an_internal_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mcp = shop()

    @mcp.on_request
    async def wrong(request: RequestInfo, proceed: Request) -> RequestEnd:
        if request.method == "tools/list":
            return RequestEnd(None)
        if request.target == "add":
            await proceed()
        return await proceed()

    async with Client(mcp) as client:
        with pytest.raises(MCPError, match="internal error"):
            await client.list_tools()
        with pytest.raises(MCPError, match="internal error"):
            await client.call_tool("add", {"a": 1, "b": 2})
    assert "a hook returned without awaiting proceed(); raise an error to refuse a request" in caplog.text
    assert "a hook awaited proceed() more than once" in caplog.text
