"""Calls of the page that do not go well: a server that is not there, breaks rules, sends too much, or needs a token."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from bespeak import Context, MCPServer
from bespeak.client.session import ClientSession
from bespeak.conversation.exchange import Talk
from bespeak.conversation.feature_list import list_all
from bespeak.dev import page_calls, page_lists
from bespeak.dev.page_calls import CallRequest, PageCall
from bespeak.dev.page_lists import list_everything
from bespeak.protocol.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, MCPError
from tests.cli.programs import free_port
from tests.dev.asking_shop import mcp
from tests.dev.pages import LEGACY, MODERN, page_of
from tests.server.auth.issuers import Issuer, protected_server

stubborn = MCPServer[Any]("stubborn")


@stubborn.tool()
async def insist() -> InputRequiredResult:
    """Ask the same again and again."""
    params = ElicitRequestFormParams(message="Yes?", requested_schema={"type": "object", "properties": {}})
    return InputRequiredResult(input_requests={"again": ElicitRequest(params=params)})


@stubborn.tool()
async def chatter(context: Context) -> str:
    """Say a lot."""
    for number in range(20):
        await context.info(f"line {number}")
    return "done"


async def test_rules_that_the_server_breaks_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_calls, "MOST_ROUNDS", 2)
    async with page_of(stubborn) as page, page.call("insist") as call:
        for _ in range(2):
            await call.until("questions")
            await call.answer("decline")
        (note,) = (await call.until("notes"))["notes"]
        assert "'again' was declined, but the server asked it again" in note
        assert "still asking after 2 answered rounds" in (await call.until("failed"))["message"]


async def test_a_server_that_says_too_much_is_cut_in_the_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_calls, "MOST_MESSAGES", 10)
    async with page_of(stubborn) as page, page.call("chatter") as call:
        assert (await call.until("result"))["text"] == "done"
    assert len(call.wire()) == 10
    assert ["the timeline shows only the first 10 messages"] in [one.get("notes") for one in call.seen]


async def ended(call: PageCall) -> list[bytes]:
    """The events of a call, all of them."""
    events: list[bytes] = []
    while (event := await call.next_event()) is not None:
        events.append(event)
    await call.close()
    return events


WANTED = CallRequest(era=MODERN, method="tools/call", params={"name": "x"})


@pytest.mark.long
async def test_a_server_that_is_not_there_cuts_the_call_off() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    events = await ended(PageCall(url, WANTED))
    assert b'"failed"' in events[-1]
    assert b"the call was cut off: cannot connect to" in events[-1]
    lists = await list_everything(url, MODERN, "")
    assert lists.tools == []
    assert "cannot connect to" in lists.problems[0]


async def test_a_fault_of_the_page_itself_is_logged_and_ends_the_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(talk: Talk) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Talk, "hold", broken)
    with caplog.at_level(logging.ERROR, "bespeak.dev"):
        async with page_of(mcp) as page, page.call("order") as call:
            assert (await call.until("failed"))["message"] == "RuntimeError: a fault"
    assert "a call of the page failed" in caplog.text


async def test_a_list_that_fails_does_not_keep_the_others_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(session: ClientSession, method: str, member: str) -> AsyncIterator[dict[str, Any]]:
        if method == "prompts/list":
            raise MCPError(INTERNAL_ERROR, "out of order")
        if method == "resources/list":
            raise MCPError(METHOD_NOT_FOUND, "what?")  # a server without any need not know the method
        return list_all(session, method, member)

    monkeypatch.setattr(page_lists, "list_all", listed)
    async with page_of(mcp) as page:
        lists = (await page.post("api/list", {"era": MODERN})).json()
    assert len(lists["tools"]) == 5
    assert len(lists["resourceTemplates"]) == 1
    assert lists["problems"] == ["prompts/list: out of order"]


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_server_that_needs_a_token_gets_the_one_of_the_page(era: str) -> None:
    issuer = Issuer()
    server = protected_server(issuer)

    @server.tool()
    async def echo(text: str) -> str:
        return text

    async with page_of(server) as page:
        (problem,) = (await page.post("api/list", {"era": era})).json()["problems"]
        assert "needs an access token" in problem or "requires an access token" in problem
        token = issuer.token()
        lists = (await page.post("api/list", {"era": era, "authorization": token})).json()
        assert [one["name"] for one in lists["tools"]] == ["echo"]
        async with page.call("echo", {"text": "hello"}, era, authorization=token) as call:
            assert (await call.until("result"))["text"] == "hello"
        assert token not in str(call.seen)
