"""The context: what a consumer may know of its call, and progress and log entries while it runs."""

import asyncio
import json
import math
from typing import Annotated, Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    Implementation,
)
from pydantic import BaseModel

from bespeak import Context, Elicit, MCPServer, Resolve
from tests.answering import Person, accept, text
from tests.conftest import Connect
from tests.serving import serve

META: dict[str, Any] = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: {}}


class Confirmation(BaseModel):
    sure: bool


class Wire:
    """A client of raw messages that keeps every notification."""

    def __init__(self, mcp: MCPServer[Any], **meta: Any) -> None:
        self._mcp = mcp
        self._meta = {**META, **meta}
        self.notes: list[dict[str, Any]] = []

    async def call(self, name: str) -> dict[str, Any]:
        params = {"name": name, "_meta": self._meta}
        message = {"jsonrpc": "2.0", "id": "r1", "method": "tools/call", "params": params}
        raw = await serve(self._mcp, json.dumps(message).encode(), lambda note: self.notes.append(json.loads(note)))
        assert raw is not None
        return json.loads(raw)

    def progress(self) -> list[Any]:
        return [note["params"]["progress"] for note in self.notes]


# What is known


async def test_a_context_knows_its_request(connect: Connect) -> None:
    mcp = MCPServer("shop")
    seen: list[Context] = []

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        seen.append(ctx)

    person = Person()
    info = Implementation(name="tester", version="9")
    async with connect(mcp, elicitation_callback=person, client_info=info) as client:
        await client.call_tool("tool", meta={"com.example/x": 1})
    (ctx,) = seen
    assert ctx.mcp_server is mcp
    assert isinstance(ctx.request_id, (int, str))
    assert ctx.protocol_version == "2026-07-28"
    assert ctx.client_capabilities is not None
    assert ctx.client_capabilities.elicitation is not None
    assert ctx.client_capabilities.sampling is None
    assert ctx.session.client_capabilities == ctx.client_capabilities
    assert ctx.session.client_info == info
    assert ctx.session.protocol_version == "2026-07-28"
    assert ctx.request_context.request_id == ctx.request_id
    assert ctx.request_context.meta is not None
    assert ctx.request_context.meta["com.example/x"] == 1
    assert (ctx.principal, ctx.round) == (None, 1)
    assert (ctx.input_responses, ctx.request_state) == (None, None)


async def test_a_context_is_found_by_its_annotation_whatever_the_parameter_is_called(in_memory: Connect) -> None:
    mcp = MCPServer[int]("shop")

    @mcp.tool()
    async def tool(one: Context[int, Any], two: Context | None = None) -> bool:
        return one is two

    async with in_memory(mcp) as client:
        assert text(await client.call_tool("tool")) == "true"


async def test_every_call_has_an_id_of_its_own_and_it_does_not_change(in_memory: Connect) -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        assert ctx.call_id == ctx.call_id
        return ctx.call_id

    async with in_memory(mcp) as client:
        first, second = [text(await client.call_tool("tool")) for _ in range(2)]
    assert len(first) >= 16
    assert first != second
    assert text(await mcp.call_tool("tool")) not in (first, second)


async def test_all_rounds_of_a_call_share_its_id_and_are_counted(connect: Connect) -> None:
    mcp = MCPServer("shop")
    seen: list[tuple[str, int]] = []

    async def confirm(ctx: Context) -> Elicit[Confirmation]:
        seen.append((ctx.call_id, ctx.round))
        return Elicit("Sure?", Confirmation)

    @mcp.tool()
    async def order(ctx: Context, sure: Annotated[Confirmation, Resolve(confirm)]) -> bool:
        seen.append((ctx.call_id, ctx.round))
        return sure.sure

    async with connect(mcp, elicitation_callback=Person({"confirm": accept(sure=True)})) as client:
        await client.call_tool("order")
    assert len({call for call, _ in seen}) == 1
    assert [round_ for _, round_ in seen] == [1, 2, 2]


async def test_without_a_client_there_is_no_request_to_look_at() -> None:
    mcp = MCPServer("shop")
    seen: list[Any] = []

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        seen.append(ctx)
        await ctx.report_progress(1)
        await ctx.info("nobody listens")

    await mcp.call_tool("tool")
    (ctx,) = seen
    assert (ctx.protocol_version, ctx.client_capabilities, ctx.round) == (None, None, 1)
    assert (ctx.request_context.request_id, ctx.request_context.meta) == (None, None)
    for look in (lambda: ctx.request_id, lambda: ctx.session.client_info):
        with pytest.raises(RuntimeError, match="'tool' was called without a client, so there is no request"):
            look()


async def test_malformed_client_info_harms_nobody_who_looks_at_it() -> None:
    # it is for display only: a tool must not fail because a client misspelt its own name
    mcp = MCPServer("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        return str(ctx.session.client_info)

    response = await Wire(mcp, **{CLIENT_INFO_META_KEY: {"name": 5}}).call("tool")
    assert not response["result"]["isError"]


# Progress


def reporting(*steps: float) -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        for step in steps:
            await ctx.report_progress(step)

    return mcp


async def test_progress_is_reported_with_the_client_s_token() -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        await ctx.report_progress(0.5, 2, "half of two")
        await ctx.report_progress(2)

    wire = Wire(mcp, progressToken="p")
    await wire.call("tool")
    assert wire.notes == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": "p", "progress": 0.5, "total": 2, "message": "half of two"},
        },
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p", "progress": 2}},
    ]


async def test_without_a_token_no_progress_is_reported() -> None:
    wire = Wire(reporting(1, 2))
    await wire.call("tool")
    assert wire.notes == []


@pytest.mark.parametrize("token", [0, "", -1])
async def test_a_token_counts_by_its_presence(token: str | int) -> None:
    wire = Wire(reporting(1), progressToken=token)
    await wire.call("tool")
    assert [note["params"]["progressToken"] for note in wire.notes] == [token]


async def test_progress_that_does_not_grow_is_not_sent() -> None:
    wire = Wire(reporting(0, 0, 1, 0.5, 1, 1.5, -3), progressToken="p")
    await wire.call("tool")
    assert wire.progress() == [0, 1, 1.5]


async def test_progress_that_is_no_number_is_not_sent() -> None:
    wire = Wire(reporting(1, math.nan, 0.5, 2, math.inf, 3), progressToken="p")
    response = await wire.call("tool")
    assert "result" in response
    assert wire.progress() in ([1, 2], [1, 2, 3])


async def test_nothing_is_said_after_the_end() -> None:
    mcp = MCPServer[Any]("shop")
    tasks: list[asyncio.Task[None]] = []
    answered = asyncio.Event()

    async def straggle(ctx: Context) -> None:
        await answered.wait()
        await ctx.report_progress(2)
        await ctx.info("late")

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        await ctx.report_progress(1)
        tasks.append(asyncio.create_task(straggle(ctx)))

    wire = Wire(mcp, progressToken="p", **{LOG_LEVEL_META_KEY: "debug"})
    await wire.call("tool")
    answered.set()
    await tasks[0]
    assert wire.progress() == [1]


# Log entries


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ("debug", ["debug", "info", "warning", "error", "notice", "emergency"]),
        ("info", ["info", "warning", "error", "notice", "emergency"]),
        ("warning", ["warning", "error", "emergency"]),
        ("emergency", ["emergency"]),
        (None, []),
    ],
)
async def test_only_entries_at_or_above_the_wanted_level_are_sent(wanted: str | None, sent: list[str]) -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        await ctx.debug(1)
        await ctx.info(2)
        await ctx.warning(3)
        await ctx.error(4)
        await ctx.log("notice", 5)
        await ctx.session.send_log_message("emergency", 6)

    wire = Wire(mcp, **({LOG_LEVEL_META_KEY: wanted} if wanted else {}))
    await wire.call("tool")
    assert [note["params"]["level"] for note in wire.notes] == sent
    assert {note["method"] for note in wire.notes} <= {"notifications/message"}


async def test_an_entry_carries_its_data_and_the_name_of_its_logger() -> None:
    mcp = MCPServer[Any]("shop")

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        await ctx.info({"shelf": None}, logger_name="stock")
        await ctx.info("plain")

    wire = Wire(mcp, **{LOG_LEVEL_META_KEY: "info"})
    await wire.call("tool")
    assert [note["params"] for note in wire.notes] == [
        {"level": "info", "logger": "stock", "data": {"shelf": None}},
        {"level": "info", "data": "plain"},
    ]


@pytest.mark.parametrize("wanted", [None, "debug", "emergency"])
@pytest.mark.parametrize("how", ["log", "send_log_message"])
async def test_an_unknown_level_is_refused_at_once_whether_the_client_wants_entries_or_not(
    how: str, wanted: str | None
) -> None:
    mcp, failures = MCPServer[Any]("shop"), list[str]()

    @mcp.tool()
    async def tool(ctx: Context) -> None:
        level: Any = "warn"
        try:
            await (ctx.log(level, "x") if how == "log" else ctx.session.send_log_message(level, "x"))
        except ValueError as error:
            failures.append(str(error))

    wire = Wire(mcp, **({LOG_LEVEL_META_KEY: wanted} if wanted else {}))
    await wire.call("tool")
    await mcp.call_tool("tool")
    assert failures == 2 * [
        "unknown log level 'warn'; use one of debug, info, notice, warning, error, critical, alert, emergency"
    ]
    assert wire.notes == []
