"""Older clients on stdio (protocol 25, 27.1): one handshake for the process, both eras side by side, questions pushed."""

import asyncio
import json
from typing import Any

import pytest

from bespeak.transports.stdio import stdio_server
from tests.transports.http.legacy.older_client import (
    JUNE,
    MARCH,
    NOVEMBER,
    OLDER,
    Desk,
    accepted,
    call,
    cancelled,
    hello,
    modern,
    notification,
    request,
    text,
)
from tests.transports.stdio.older_on_stdio import Older
from tests.waiting import eventually

# The handshake


@pytest.mark.parametrize("version", OLDER)
async def test_the_handshake_echoes_a_revision_that_is_spoken(version: str) -> None:
    async with Older(Desk().mcp) as wire:
        result = (await wire.greet(version))["result"]
        assert (result["protocolVersion"], result["serverInfo"]["name"]) == (version, "desk")
        assert text(await wire.ask(call("echo", {"text": "hi"}))) == "hi"


async def test_initialize_twice_is_refused_and_changes_nothing() -> None:
    async with Older(Desk().mcp) as wire:
        await wire.greet(NOVEMBER)
        answer = await wire.ask(hello(MARCH, {}, id_=2))
        assert (answer["id"], answer["error"]["code"]) == (2, -32600)
        assert "initialize was already answered; send it once per connection" in answer["error"]["message"]
        wire.send(call("approve"))
        assert (await wire.asked())["params"]["mode"] == "form"
        wire.send(cancelled(1))


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "logging/setLevel", "server/discover", "nonsense"])
async def test_a_request_before_the_handshake_is_told_what_is_missing(method: str) -> None:
    async with Older(Desk().mcp) as wire:
        answer = await wire.ask(request(method, id_="early"))
        assert (answer["id"], answer["error"]["code"]) == ("early", -32602)
        assert f"{method} was sent before initialize" in answer["error"]["message"]
        assert "name the protocol version in params._meta" in answer["error"]["message"]
        assert "result" in await wire.greet(), "and the handshake may still be made"


async def test_a_ping_is_answered_before_the_handshake() -> None:
    async with Older(Desk().mcp) as wire:
        assert await wire.ask(request("ping", id_="p")) == {"jsonrpc": "2.0", "id": "p", "result": {}}


async def test_notifications_and_answers_before_the_handshake_are_nothing_to_answer() -> None:
    async with Older(Desk().mcp) as wire:
        wire.send(notification("notifications/initialized"), accepted("q-1"), cancelled("q-1"), cancelled([]))
        assert await wire.before() == []


# Both eras in one process


async def test_both_eras_are_served_side_by_side_in_any_order() -> None:
    async with Older(Desk().mcp) as wire:
        assert (await wire.ask(modern("tools/list", id_=1)))["result"]["resultType"] == "complete"
        await wire.greet()
        assert "resultType" not in (await wire.ask(request("tools/list", id_=2)))["result"]
        assert (await wire.ask(modern("tools/list", id_=3)))["result"]["resultType"] == "complete"
        assert (await wire.ask(modern("server/discover", id_=4)))["result"]["supportedVersions"]
        assert (await wire.ask(request("server/discover", id_=5)))["error"]["code"] == -32601


async def test_a_modern_request_is_never_asked_by_a_push_though_a_handshake_was_made() -> None:
    async with Older(Desk().mcp) as wire:
        await wire.greet()
        answer = await wire.ask(modern("tools/call", {"name": "approve", "arguments": {}}))
        assert answer["result"]["resultType"] == "input_required"
        assert await wire.before() == []


# Questions


async def test_a_question_is_pushed_and_its_answer_awaited() -> None:
    async with Older(Desk().mcp) as wire:
        await wire.greet()
        wire.send(call("approve", id_="a"))
        question = await wire.asked()
        assert text(await wire.ask(call("echo", {"text": "meanwhile"}))) == "meanwhile"
        answer = await wire.ask(accepted(question["id"]))
        assert (answer["id"], text(answer)) == ("a", "approved True")


async def test_calls_side_by_side_get_the_answers_to_their_own_questions() -> None:
    async with Older(Desk().mcp) as wire:
        await wire.greet()
        wire.send(*(call("approve", id_=number) for number in range(32)))
        questions = [await wire.asked() for _ in range(32)]
        assert len({question["id"] for question in questions}) == 32
        assert text(await wire.ask(call("echo", {"text": "at once"}, id_="x"))) == "at once"
        wire.send(*(accepted(question["id"]) for question in questions))
        answers = [await wire.next() for _ in range(32)]
        assert {answer["id"]: text(answer) for answer in answers} == dict.fromkeys(range(32), "approved True")


# Cancellation


@pytest.mark.parametrize("tool", ["hold", "stubborn", "insist"])
async def test_a_cancelled_call_says_and_asks_nothing_more_however_it_ends(tool: str) -> None:
    desk = Desk()
    async with Older(desk.mcp) as wire:
        await wire.greet()
        wire.send(call(tool, id_="c", token="p"))
        await desk.begun()
        wire.send(cancelled("c"))
        await eventually(lambda: desk.log == ["began", "cancelled"])
        assert await wire.before() == []


# A client that goes


@pytest.mark.timing
async def test_a_client_that_goes_while_a_question_is_open_ends_the_call_and_the_cleanups_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio_server, "GRACE_SECONDS", 50)
    desk = Desk()
    loop = asyncio.get_running_loop()
    async with Older(desk.mcp) as wire:
        await wire.greet()
        wire.send(call("count", id_="c"))
        await wire.asked()
        began = loop.time()
        wire.eof()
        answer = await wire.next()
        assert answer["result"]["isError"] is True
        assert "got no answer: the client has gone" in text(answer)
        await asyncio.wait_for(wire.serving, 25)
    assert desk.log == ["opened", "closed"]
    assert loop.time() - began < 25, "nobody is waited for who cannot answer any more"


async def test_a_call_that_would_go_on_asking_ends_when_the_client_has_gone() -> None:
    desk = Desk()
    async with Older(desk.mcp) as wire:
        await wire.greet()
        wire.send(call("approve_twice", id_="c"))
        question = await wire.asked()
        wire.send(accepted(question["id"]))
        wire.eof()
        answer = await wire.next()
        while answer["id"] != "c":  # the next question may have been faster than the end of input
            assert answer["method"] == "elicitation/create"
            answer = await wire.next()
        assert "got no answer: the client has gone" in text(answer)
        await asyncio.wait_for(wire.serving, 5)


# Batches


def batch(*messages: Any) -> bytes:
    return json.dumps(messages).encode() + b"\n"


async def test_a_batch_is_answered_with_one_line_that_is_an_array() -> None:
    async with Older(Desk().mcp) as wire:
        await wire.greet(MARCH)
        wire.send(batch(request("ping", id_=1), notification("n"), 7, request("no", id_=2)))
        answers: Any = await wire.next()
        found = {answer.get("id"): answer for answer in answers}
        assert set(found) == {1, 2, None}
        assert found[1]["result"] == {}
        assert found[2]["error"]["code"] == -32601
        assert found[None]["error"]["code"] == -32600


@pytest.mark.parametrize("version", [None, JUNE, NOVEMBER])
async def test_a_batch_is_refused_where_there_are_none(version: str | None) -> None:
    async with Older(Desk().mcp) as wire:
        if version is not None:
            await wire.greet(version)
        wire.send(batch(request("ping")))
        answer = await wire.next()
        assert answer["error"]["code"] == -32600
        assert "one JSON-RPC message at a time" in answer["error"]["message"]


async def test_what_comes_after_a_batch_is_heard_after_it() -> None:
    desk = Desk()
    async with Older(desk.mcp) as wire:
        await wire.greet(MARCH)
        entries = [call("hold", id_="c"), call("echo", id_="e")]
        wire.send(json.dumps(entries).encode() + b"\n", cancelled("c"))
        answers: Any = await asyncio.wait_for(wire.next(), 20)
        assert [answer["id"] for answer in answers] == ["e"]


async def test_a_batch_is_answered_though_it_is_the_last_line_and_has_no_end() -> None:
    async with Older(Desk().mcp) as wire:
        await wire.greet(MARCH)
        wire.send(json.dumps([call("echo", {"text": "hi"}, id_="e")]).encode())
        wire.eof()
        assert json.loads(await wire.line() or b"null"), "nothing was answered"
