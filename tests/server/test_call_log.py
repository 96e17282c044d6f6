"""The log of calls: one line for each round, with what is worth knowing and nothing that was sent."""

import logging
import re
from typing import Annotated, Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from bespeak import Client, Elicit, MCPError, MCPServer, Resolve, ToolError
from bespeak.client import ClientRequestContext
from bespeak.server import call_log
from tests.answering import CANCEL, DECLINE
from tests.rules.raw_calls import opened

mcp = MCPServer("logged")


async def confirm(secret: str) -> Elicit[bool]:
    return Elicit(f"Sure about {secret}?", bool)


@mcp.tool()
async def buy(secret: str, sure: Annotated[bool, Resolve(confirm)]) -> str:
    return secret


@mcp.prompt()
async def offer(secret: str, sure: Annotated[bool, Resolve(confirm)]) -> str:
    return secret


@mcp.tool()
async def look(secret: str) -> str:
    return secret


@mcp.tool()
async def fail(secret: str) -> str:
    raise ToolError(secret)


@mcp.prompt()
async def greet(name: str) -> str:
    raise MCPError(-32000, name)


@mcp.resource("stock://today")
async def today() -> str:
    return "hunter2"


@mcp.resource("stock://{title}")
async def stock(title: str) -> str:
    return title


async def accept(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"value": True})


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "bespeak.calls")
    return caplog


def lines(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return the level and the text of each line of calls, without its time."""
    found = [(one.levelname, one.getMessage(), one.getMessage()) for one in log.records if one.name == "bespeak.calls"]
    assert all(re.search(r", \d+ ms$", line) for _, line, _ in found)
    assert "hunter2" not in str(found)
    return [(level, re.sub(r", \d+ ms$", "", line)) for level, line, _ in found]


async def call(mode: str, tool: str) -> None:
    async with Client(mcp, mode=mode, elicitation_callback=accept) as client:
        await client.call_tool(tool, {"secret": "hunter2"})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_asks_nothing_is_logged_for_debugging_only(log: pytest.LogCaptureFixture, mode: str) -> None:
    await call(mode, "look")
    assert lines(log) == [("DEBUG", "look, round 1: done")]


async def test_each_round_of_a_call_that_asks_has_a_line(log: pytest.LogCaptureFixture) -> None:
    await call("auto", "buy")
    assert lines(log) == [("INFO", "buy, round 1: asked 1 question"), ("INFO", "buy, round 2: done")]


async def test_a_call_of_an_older_client_has_one_line_that_counts_its_questions(log: pytest.LogCaptureFixture) -> None:
    await call("legacy", "buy")
    assert lines(log) == [("INFO", "buy, round 1: done after 1 question")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_fails_is_logged_without_its_message(log: pytest.LogCaptureFixture, mode: str) -> None:
    await call(mode, "fail")
    assert lines(log) == [("INFO", "fail, round 1: failed")]


@pytest.mark.parametrize(("answer", "said"), [(DECLINE, "declined"), (CANCEL, "cancelled")])
async def test_a_call_that_a_person_ends_has_not_failed(
    log: pytest.LogCaptureFixture, answer: ElicitResult, said: str
) -> None:
    async def end(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return answer

    for mode in ("auto", "legacy"):
        async with Client(mcp, mode=mode, elicitation_callback=end) as client:
            await client.call_tool("buy", {"secret": "hunter2"})
            with pytest.raises(MCPError):
                await client.get_prompt("offer", {"secret": "hunter2"})
    assert [line for _, line in lines(log)] == [
        "buy, round 1: asked 1 question",
        f"buy, round 2: {said}",
        "offer, round 1: asked 1 question",
        f"offer, round 2: {said}",
        f"buy, round 1: {said} after 1 question",
        f"offer, round 1: {said}",
    ]


async def test_a_no_that_is_sent_again_is_logged_as_a_no_again(log: pytest.LogCaptureFixture) -> None:
    async with opened(Client, mcp) as client:
        params: dict[str, Any] = {"name": "buy", "arguments": {"secret": "hunter2"}}
        asked = await client.session.request("tools/call", params)
        answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
        for _ in range(2):
            await client.session.request(
                "tools/call", {**params, "inputResponses": answers, "requestState": asked["requestState"]}
            )
    assert [line for _, line in lines(log)][1:] == ["buy, round 2: declined"] * 2


async def test_an_error_of_the_protocol_is_logged_with_its_code(log: pytest.LogCaptureFixture) -> None:
    async with Client(mcp) as client:
        with pytest.raises(MCPError):
            await client.get_prompt("greet", {"name": "hunter2"})
        with pytest.raises(MCPError):
            await client.call_tool("no\x1bsuch", {})
    assert lines(log) == [
        ("INFO", "greet, round 1: failed with error -32000"),
        ("INFO", r"no\x1bsuch, round 1: failed with error -32602"),
    ]


async def test_a_resource_is_logged_by_its_template_and_not_by_its_uri(log: pytest.LogCaptureFixture) -> None:
    async with Client(mcp) as client:
        await client.read_resource("stock://today")
        await client.read_resource("stock://hunter2")
        with pytest.raises(MCPError):
            await client.read_resource("other://hunter2")
    assert [line for _, line in lines(log)] == [
        "stock://today, round 1: done",
        "stock://{title}, round 1: done",
        "unknown target of resources/read, round 1: failed with error -32602",
    ]


async def test_a_slow_call_is_logged_like_one_that_asked(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_log, "SLOW_SECONDS", 0.0)
    await call("auto", "look")
    assert lines(log) == [("INFO", "look, round 1: done")]


async def test_without_debugging_a_plain_call_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bespeak.calls")
    await call("auto", "look")
    await call("auto", "fail")
    assert lines(caplog) == [("INFO", "fail, round 1: failed")]


async def test_lists_are_not_calls(log: pytest.LogCaptureFixture) -> None:
    async with Client(mcp) as client:
        await client.list_tools()
    assert lines(log) == []
