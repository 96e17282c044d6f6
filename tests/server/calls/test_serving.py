"""Serving a call by the shortest way its consumer allows: the same result on each of them, in both eras."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from mcp_types import InputRequiredResult

from bespeak import Client, Complete, Context, MCPServer, Resolve
from tests.server.eras import Respond, Sent, both_eras, legacy, modern
from tests.server.legacy.older_client import Older


async def shelf() -> str:
    return "A"


closed: list[str] = []


async def connection() -> AsyncIterator[str]:
    yield "open"
    closed.append("closed")


def stock(value: str, it: Annotated[str, Resolve(connection)]) -> list[str]:
    return [it]


def desk() -> MCPServer[Any]:
    mcp = MCPServer[Any]("desk")

    @mcp.prompt()
    def plain() -> str:
        return "plain"

    @mcp.prompt()
    def unsaid():  # pyright: ignore[reportUnknownParameterType] - what is not annotated may ask by hand
        return "unsaid"

    @mcp.prompt()
    def knowing(ctx: Context) -> str:
        return f"knowing {ctx.round} {ctx.principal}"

    @mcp.prompt()
    def resolved(it: Annotated[str, Resolve(shelf)]) -> str:
        return f"resolved {it}"

    @mcp.prompt()
    def opening(it: Annotated[str, Resolve(connection)]) -> str:
        return f"opening {it}"

    @mcp.prompt()
    def completed(title: Annotated[str, Complete(stock)]) -> str:
        return title

    return mcp


async def got(respond: Respond, name: str, **more: Any) -> Sent:
    return await respond(desk(), "prompts/get", {"name": name, **more})


@both_eras
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", "plain"),
        ("unsaid", "unsaid"),
        ("knowing", "knowing 1 None"),
        ("resolved", "resolved A"),
        ("opening", "opening open"),
    ],
)
async def test_every_way_leads_to_the_same_result(respond: Respond, name: str, said: str) -> None:
    result = (await got(respond, name))["result"]
    assert [message["content"]["text"] for message in result["messages"]] == [said]


@both_eras
async def test_generators_are_closed_when_a_call_or_a_completion_ends(respond: Respond) -> None:
    closed.clear()
    await got(respond, "opening")
    assert closed == ["closed"]
    params = {"ref": {"type": "ref/prompt", "name": "completed"}, "argument": {"name": "title", "value": ""}}
    await respond(desk(), "completion/complete", params)
    assert closed == ["closed", "closed"]


@pytest.mark.parametrize("name", ["plain", "unsaid", "knowing", "resolved", "opening"])
async def test_a_forged_state_is_refused_on_every_way(name: str) -> None:
    error = (await got(modern, name, requestState="forged"))["error"]
    assert (error["code"], error["message"]) == (
        -32602,
        "invalid or expired requestState; if the call may have taken effect, check before you start it again",
    )


@pytest.mark.parametrize("name", ["plain", "unsaid", "knowing", "resolved", "opening"])
async def test_a_state_means_nothing_to_an_older_revision(name: str) -> None:
    assert "result" in await got(legacy, name, requestState="forged", inputResponses={"x": 1})


@pytest.mark.parametrize("name", ["plain", "knowing"])
async def test_malformed_answers_are_refused_on_every_way(name: str) -> None:
    assert (await got(modern, name, inputResponses=["x"]))["error"]["code"] == -32602


def by_hand(asks: bool) -> MCPServer[Any]:
    mcp = MCPServer[Any]("desk")

    @mcp.prompt()
    def hand() -> InputRequiredResult | str:
        return InputRequiredResult(request_state="kept") if asks else "said"

    return mcp


async def test_a_plain_prompt_may_turn_out_to_ask_by_hand() -> None:
    asked = (await modern(by_hand(asks=True), "prompts/get", {"name": "hand"}))["result"]
    assert asked["resultType"] == "input_required"
    assert asked["requestState"] != "kept"
    told = (await modern(by_hand(asks=False), "prompts/get", {"name": "hand"}))["result"]
    assert told["messages"][0]["content"]["text"] == "said"


async def test_a_surprising_question_is_asked_at_every_revision() -> None:
    asking = [True]

    def surprising() -> str:
        if asking:
            asking.pop()
            surprise: Any = InputRequiredResult(request_state="kept")
            return surprise
        return "said"

    for respond in (modern, legacy):
        mcp = MCPServer[Any]("desk")
        mcp.prompt()(surprising)
        asking[:] = [True]
        result = (await respond(mcp, "prompts/get", {"name": "surprising"}))["result"]
        if respond is modern:
            assert result["resultType"] == "input_required"
        else:
            assert result["messages"][0]["content"]["text"] == "said"


async def test_a_context_is_silent_once_its_request_is_answered() -> None:
    mcp, kept = MCPServer[Any]("desk"), list[Context[Any, Any]]()

    def keeping(value: str, ctx: Context) -> list[str]:
        kept.append(ctx)
        return []

    @mcp.prompt()
    def order(title: Annotated[str, Complete(keeping)], ctx: Context) -> str:
        kept.append(ctx)
        return ""

    params = {"ref": {"type": "ref/prompt", "name": "order"}, "argument": {"name": "title", "value": ""}}
    async with Older(mcp) as client:
        await client.request(
            "prompts/get", {"name": "order", "arguments": {"title": ""}, "_meta": {"progressToken": 1}}
        )
        await client.request("completion/complete", {**params, "_meta": {"progressToken": 2}})
        for context in kept:
            await context.report_progress(1)
        assert client.said == []


async def test_a_completion_reports_progress_while_it_runs() -> None:
    mcp = MCPServer[Any]("desk")

    async def titles(value: str, ctx: Context) -> list[str]:
        await ctx.report_progress(1, 2)
        return [value]

    @mcp.prompt()
    def order(title: Annotated[str, Complete(titles)]) -> str:
        return title

    params = {"ref": {"type": "ref/prompt", "name": "order"}, "argument": {"name": "title", "value": ""}}
    async with Older(mcp) as client:
        await client.request("completion/complete", {**params, "_meta": {"progressToken": 2}})
        assert [one["params"]["progress"] for one in client.said] == [1]


async def test_a_completion_that_is_cancelled_closes_its_generators() -> None:
    mcp, events = MCPServer[Any]("desk"), list[str]()
    started = asyncio.Event()

    async def opened() -> AsyncIterator[str]:
        try:
            yield "open"
        finally:
            events.append("closed")

    async def forever(value: str, it: Annotated[str, Resolve(opened)]) -> list[str]:
        started.set()
        await asyncio.Event().wait()
        return []

    @mcp.prompt()
    def order(title: Annotated[str, Complete(forever)]) -> str:
        return title

    params = {"ref": {"type": "ref/prompt", "name": "order"}, "argument": {"name": "title", "value": ""}}
    task = asyncio.create_task(modern(mcp, "completion/complete", params))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["closed"]


async def test_a_test_in_the_same_process_gets_the_exception_itself() -> None:
    mcp = MCPServer[Any]("desk")

    @mcp.prompt()
    def broken(ctx: Context) -> str:
        raise LookupError("here")

    @mcp.tool()
    def lazy() -> Iterator[str]:
        raise LookupError("there")

    async with Client(mcp, raise_exceptions=True) as client:
        with pytest.raises(LookupError, match="there"):
            await client.call_tool("lazy")
