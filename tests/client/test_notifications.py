"""Notifications: in order and before the result, and handlers that fail, are slow or call the server themselves."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp_types import LOG_LEVEL_META_KEY, LoggingMessageNotificationParams

from bespeak import Client, Context, MCPServer
from bespeak.client import notifications
from tests.answering import text
from tests.client.scripted_transport import (
    COMPLETE,
    Fake,
)
from tests.conftest import Connect


@pytest.mark.parametrize(
    ("level", "listens", "asked"),
    [(None, False, None), (None, True, "debug"), ("error", True, "error"), ("error", False, "error")],
)
async def test_log_entries_are_asked_for_if_a_level_or_a_callback_is_given(
    level: Any, listens: bool, asked: str | None
) -> None:
    async def on_log(params: LoggingMessageNotificationParams) -> None: ...

    fake = Fake(COMPLETE)
    async with Client(fake, log_level=level, logging_callback=on_log if listens else None) as client:
        await client.call_tool("tool")
    assert fake.params[0]["_meta"].get(LOG_LEVEL_META_KEY) == asked


def note(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def chatty() -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        await ctx.report_progress(1, 3, "one")
        await ctx.info("between", logger_name="stock")
        await ctx.report_progress(2)
        return "done"

    return mcp


@pytest.mark.every_revision
async def test_notifications_reach_their_callbacks_in_order_and_before_the_result(connect: Connect) -> None:
    seen: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        seen.append((progress, total, message))

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        seen.append((params.level, params.logger, params.data))

    async def on_message(message: dict[str, Any]) -> None:
        methods.append(message["method"])

    methods: list[str] = []
    async with connect(chatty(), logging_callback=on_log, message_handler=on_message) as client:
        await client.call_tool("tool", progress_callback=on_progress)
        seen.append("result")
    assert methods == ["notifications/progress", "notifications/message", "notifications/progress"]
    assert seen == [(1, 3, "one"), ("info", "stock", "between"), (2, None, None), "result"]


@pytest.mark.every_revision
async def test_progress_reaches_the_callback_while_the_call_still_runs(connect: Connect) -> None:
    mcp = MCPServer("shop")
    heard = asyncio.Event()

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        await ctx.report_progress(1)
        async with asyncio.timeout(20):
            await heard.wait()
        return "heard"

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.set()

    async with connect(mcp) as client:
        assert text(await client.call_tool("tool", progress_callback=on_progress)) == "heard"


async def test_progress_of_another_request_is_not_passed_on() -> None:
    seen: list[float] = []

    def reply(request: dict[str, Any], notify: Callable[[bytes], None]) -> dict[str, Any]:
        notify(note("notifications/progress", progressToken=999, progress=1))
        notify(note("notifications/progress", progressToken=["odd"], progress=2))
        notify(note("notifications/progress", progressToken=request["params"]["_meta"]["progressToken"], progress=3))
        return COMPLETE

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with Client(Fake(reply)) as client:
        await client.call_tool("tool", progress_callback=on_progress)
    assert seen == [3]


async def test_without_a_progress_callback_no_progress_is_asked_for() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.call_tool("tool")
    assert "progressToken" not in fake.params[0]["_meta"]


@pytest.mark.parametrize("raw", [b"{", b"[]", b"{}", note("notifications/message", level="loud")])
async def test_a_malformed_notification_does_not_harm_the_call(raw: bytes, caplog: pytest.LogCaptureFixture) -> None:
    def reply(request: dict[str, Any], notify: Callable[[bytes], None]) -> dict[str, Any]:
        notify(raw)
        return COMPLETE

    async def on_log(params: LoggingMessageNotificationParams) -> None: ...

    async with Client(Fake(reply), logging_callback=on_log) as client:
        assert text(await client.call_tool("tool")) == "done"


@pytest.mark.every_revision
async def test_a_handler_that_fails_is_logged_and_the_call_continues(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def on_log(params: LoggingMessageNotificationParams) -> None:
        raise KeyError("handler")

    async with connect(chatty(), logging_callback=on_log) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert "A notification handler failed" in caplog.text


@pytest.mark.every_revision
@pytest.mark.parametrize("own_task", [False, True], ids=["in place", "in a task of its own"])
async def test_a_handler_that_calls_the_server_itself_does_not_deadlock(connect: Connect, own_task: bool) -> None:
    seen: list[str] = []

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        if not seen:
            seen.append("asked")
            call = client.call_tool("tool")
            seen.append(text(await (asyncio.create_task(call) if own_task else call)))

    async with connect(chatty(), logging_callback=on_log) as client:
        async with asyncio.timeout(20):
            assert text(await client.call_tool("tool")) == "done"
    assert seen == ["asked", "done"]


async def test_notifications_beyond_what_is_held_are_dropped_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notifications, "HELD_BYTES", 100)
    seen: list[str] = []

    def reply(request: dict[str, Any], notify: Callable[[bytes], None]) -> dict[str, Any]:
        for number in range(50):
            notify(note("notifications/x", number=number))
        return COMPLETE

    async def on_message(message: dict[str, Any]) -> None:
        seen.append(message["params"]["number"])

    async with Client(Fake(reply), message_handler=on_message) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert seen == [0, 1]
    assert caplog.messages == ["Notifications arrive faster than they are handled. Some are dropped."]
