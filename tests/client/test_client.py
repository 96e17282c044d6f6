"""`Client`: connecting, what is known of the server, use outside its block, and notifications while a call runs."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from mcp_types import CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY, LoggingMessageNotificationParams

from bespeak import Client, Context, MCPError, MCPServer
from bespeak.client import InvalidServerResponse
from tests.answering import text
from tests.client.test_session import COMPLETE, DISCOVERED, Fake
from tests.conftest import Connect

# Connecting


async def test_a_client_knows_its_server(connect: Connect) -> None:
    mcp = MCPServer("shop", title="The shop", version="1.2", instructions="Ask first.")
    async with connect(mcp) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("shop", "1.2")
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.prompts is None
        assert client.instructions == "Ask first."
        assert client.protocol_version == "2026-07-28"


async def test_a_server_need_not_say_who_it_is() -> None:
    async with Client(Fake(COMPLETE)) as client:
        assert client.server_info is None
        assert client.instructions is None


async def test_a_client_says_who_it_is_unless_told_otherwise() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.call_tool("tool")
    assert fake.params[0]["_meta"][CLIENT_INFO_META_KEY]["name"] == "bespeak"


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
async def test_a_client_speaks_the_modern_revision(mode: str) -> None:
    async with Client(Fake(COMPLETE), mode=mode) as client:
        assert client.protocol_version == "2026-07-28"


@pytest.mark.parametrize("mode", ["", "modern", "1999-01-01", "AUTO"])
def test_a_mode_that_is_no_revision_is_refused(mode: str) -> None:
    told = (
        "mode must be one of 'auto', 'legacy', '2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', "
        f"not {mode!r}"
    )
    with pytest.raises(ValueError, match=re.escape(told)):
        Client(Fake(COMPLETE), mode=mode)


def test_the_cap_on_rounds_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match="input_required_max_rounds cannot be negative"):
        Client(Fake(COMPLETE), input_required_max_rounds=-1)


@pytest.mark.parametrize("server", [5, None, object()])
def test_a_client_connects_to_servers_and_transports_only(server: Any) -> None:
    with pytest.raises(TypeError, match=f"not to {type(server).__name__}"):
        Client(server)


def no_such_method(request: Any, notify: Any) -> bytes:
    error = {"code": -32601, "message": f"no such method: {request['method']}"}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()


@pytest.mark.parametrize(
    ("mode", "last"),
    [
        ("auto", "initialize"),
        ("legacy", "initialize"),
        ("2026-07-28", "server/discover"),
        ("2025-11-25", "initialize"),
        ("2024-11-05", "initialize"),
    ],
)
async def test_the_transport_is_left_when_no_revision_can_be_agreed_on(mode: str, last: str) -> None:
    fake = Fake(no_such_method, discovered=no_such_method)
    with pytest.raises(MCPError, match=f"no such method: {last}"):
        await Client(fake, mode=mode).__aenter__()
    assert fake.entered == 0


async def test_a_server_that_refuses_both_eras_is_said_to_have_done_so() -> None:
    with pytest.raises(MCPError) as caught:
        await Client(Fake(no_such_method, discovered=no_such_method)).__aenter__()
    assert caught.value.__notes__ == [
        "before that, the server did not speak 2026-07-28: no such method: server/discover (-32601)"
    ]


@pytest.mark.parametrize(
    ("mode", "discovered"),
    [
        ("auto", {"resultType": "complete", "capabilities": 5}),  # without resultType it might be an older server
        ("2026-07-28", {"resultType": "complete", "capabilities": 5}),
        ("2026-07-28", {"capabilities": 5}),
    ],
)
async def test_a_malformed_discovery_is_an_error_of_its_own(mode: str, discovered: dict[str, Any]) -> None:
    fake = Fake(COMPLETE, discovered=discovered)
    with pytest.raises(InvalidServerResponse, match="the server's DiscoverResult is malformed: see capabilities"):
        await Client(fake, mode=mode).__aenter__()
    assert fake.entered == 0


async def test_malformed_server_info_harms_nobody_who_looks_at_it() -> None:
    # it is for display only
    discovered = {**DISCOVERED, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": 5}}}
    async with Client(Fake(COMPLETE, discovered=discovered)) as client:
        assert client.server_info is None


async def test_a_client_may_connect_again() -> None:
    fake = Fake(COMPLETE)
    client = Client(fake)
    for _ in range(2):
        async with client:
            assert text(await client.call_tool("tool")) == "done"
    assert fake.entered == 0


# Outside the block


async def use(client: Client, how: str) -> Any:
    match how:
        case "call_tool":
            return await client.call_tool("tool")
        case "list_tools":
            return await client.list_tools()
        case _:
            return getattr(client, how)


USES = ["call_tool", "list_tools", "session", "server_info", "server_capabilities", "instructions"]


@pytest.mark.parametrize("how", USES)
async def test_use_before_the_block_is_a_clear_error(how: str) -> None:
    with pytest.raises(RuntimeError, match=r"the client is not connected; use it as `async with Client\(\.\.\.\)"):
        await use(Client(Fake(COMPLETE)), how)


@pytest.mark.parametrize("how", USES)
async def test_use_after_the_block_is_a_clear_error(how: str) -> None:
    async with Client(Fake(COMPLETE)) as client:
        pass
    with pytest.raises(RuntimeError, match="the client is not connected"):
        await use(client, how)


async def test_an_exception_in_the_block_goes_through_and_the_transport_is_left() -> None:
    fake = Fake(COMPLETE)
    with pytest.raises(KeyError, match="mine"):
        async with Client(fake):
            raise KeyError("mine")
    assert fake.entered == 0


# What log entries are asked for


@pytest.mark.parametrize(
    ("level", "listens", "asked"),
    [(None, False, None), (None, True, "debug"), ("error", True, "error"), ("error", False, "error")],
)
async def test_entries_are_asked_for_when_somebody_listens(level: Any, listens: bool, asked: str | None) -> None:
    async def on_log(params: LoggingMessageNotificationParams) -> None: ...

    fake = Fake(COMPLETE)
    async with Client(fake, log_level=level, logging_callback=on_log if listens else None) as client:
        await client.call_tool("tool")
    assert fake.params[0]["_meta"].get(LOG_LEVEL_META_KEY) == asked


def note(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


# Notifications


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

    async with connect(chatty(), logging_callback=on_log) as client:
        await client.call_tool("tool", progress_callback=on_progress)
        seen.append("result")
    assert seen == [(1, 3, "one"), ("info", "stock", "between"), (2, None, None), "result"]


@pytest.mark.every_revision
async def test_a_message_handler_sees_every_notification(connect: Connect) -> None:
    seen: list[str] = []

    async def on_message(message: dict[str, Any]) -> None:
        seen.append(message["method"])

    async def ignore(*_: Any) -> None: ...

    async with connect(chatty(), message_handler=on_message, log_level="debug") as client:
        await client.call_tool("tool", progress_callback=ignore)
    assert seen == ["notifications/progress", "notifications/message", "notifications/progress"]


@pytest.mark.every_revision
async def test_progress_reaches_the_callback_while_the_call_still_runs(connect: Connect) -> None:
    mcp = MCPServer("shop")
    heard = asyncio.Event()

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        await ctx.report_progress(1)
        async with asyncio.timeout(0.5):
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


@pytest.mark.parametrize("raw", [b"{", b"[]", b"{}", note("notifications/message", level="loud"), note("x/y")])
async def test_a_malformed_notification_does_not_harm_the_call(raw: bytes, caplog: pytest.LogCaptureFixture) -> None:
    def reply(request: dict[str, Any], notify: Callable[[bytes], None]) -> dict[str, Any]:
        notify(raw)
        return COMPLETE

    async def on_log(params: LoggingMessageNotificationParams) -> None: ...

    async with Client(Fake(reply), logging_callback=on_log) as client:
        assert text(await client.call_tool("tool")) == "done"


@pytest.mark.every_revision
async def test_a_handler_that_fails_is_logged_and_the_call_goes_on(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def on_log(params: LoggingMessageNotificationParams) -> None:
        raise KeyError("handler")

    async with connect(chatty(), logging_callback=on_log) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert "a handler of notifications failed" in caplog.text


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
        async with asyncio.timeout(1):
            assert text(await client.call_tool("tool")) == "done"
    assert seen == ["asked", "done"]
