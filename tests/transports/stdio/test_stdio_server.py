"""The stdio server (protocol sections 1, 18 and 22): framing, concurrent requests, cancellation, sizes."""

import json
from typing import Any

import pytest

from bespeak.transports.interfaces import MESSAGE_LIMIT
from tests.transports.stdio.wire import Shop, Wire, call, cancelled, content, request
from tests.waiting import turns

# Framing


async def test_an_answer_is_one_line_of_utf_8_whatever_it_says() -> None:
    said = 'two\nlines\r\n\u2028 \x85 é 你好 😀 \x00 "quoted"'
    async with Wire(Shop().mcp) as wire:
        wire.send(call(1, "echo", {"text": said}))
        line = await wire.line()
        assert line.count(b"\n") == 1
        assert content(json.loads(line.decode("utf-8"))) == said
        assert await wire.rest() == []


async def test_empty_lines_are_nothing_to_answer() -> None:
    async with Wire(Shop().mcp) as wire:
        wire.send(b"\n\r\n   \n\t\n")
        assert await wire.rest() == []


BROKEN: list[tuple[bytes, int, str, Any]] = [
    (b"hello", -32700, "not valid JSON", None),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "server/discover"}]', -32600, "one JSON-RPC message at a time", None),
    (b'{"jsonrpc": "2.0", "id": 7}', -32600, "no method", 7),
    (b'{"jsonrpc": "2.0", "id": null, "method": "a", "params": {}}', -32600, "a string or an integer", None),
    (b'{"jsonrpc": "2.0", "id": "x", "method": "a", "params": []}', -32602, "params must be an object", "x"),
    (json.dumps(call(5, "nonsense")).encode(), -32602, "unknown tool 'nonsense'", 5),
]


@pytest.mark.parametrize(("raw", "code", "telling", "id_"), BROKEN, ids=lambda value: str(value)[:30])
async def test_what_is_no_request_is_answered_with_what_is_wrong(raw: bytes, code: int, telling: str, id_: Any) -> None:
    async with Wire(Shop().mcp) as wire:
        wire.send(raw + b"\n")
        answer = await wire.next()
        assert (answer["error"]["code"], answer.get("id")) == (code, id_)
        assert telling in answer["error"]["message"]
        assert ("id" in answer) == (id_ is not None), "an id that is not known is left out, not null"
        assert await wire.rest() == []


@pytest.mark.parametrize("outcome", [{"result": {}}], ids=str)
@pytest.mark.parametrize("id_", [7, "x", None], ids=str)
async def test_a_response_is_never_answered(id_: Any, outcome: dict[str, Any]) -> None:
    # protocol 25.2: older clients answer what they are asked; one to nobody's question is passed over
    async with Wire(Shop().mcp) as wire:
        wire.send({"jsonrpc": "2.0", "id": id_, **outcome})
        wire.send(request(8, "server/discover"))
        assert (await wire.next())["id"] == 8
        assert await wire.rest() == []


@pytest.mark.parametrize("params", [{}, None], ids=str)
async def test_a_notification_is_never_answered(params: Any) -> None:
    async with Wire(Shop().mcp) as wire:
        for method in ("notifications/cancelled", "notifications/unheard_of", "tools/call"):
            wire.send({"jsonrpc": "2.0", "method": method, "params": params})
        assert await wire.rest() == []


# Side by side


async def test_requests_run_side_by_side_and_are_answered_out_of_order() -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call("slow", "wait"), call("fast", "echo", {"text": "a"}))
        assert (await wire.next())["id"] == "fast"
        shop.gate.set()
        assert (await wire.next())["id"] == "slow"


async def test_an_id_in_use_is_refused_and_the_first_request_goes_on() -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "wait"), call(1, "echo", {"text": "a"}))
        refused = await wire.next()
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        assert refused["error"]["message"] == "a request with this id is still under way"
        shop.gate.set()
        assert content(await wire.next()) == "waited"
        assert content(await wire.ask(call(1, "echo", {"text": "again"}))) == "again", "it is free again"


async def test_progress_precedes_the_answer_and_names_its_token() -> None:
    shop = Shop()
    shop.gate.set()
    async with Wire(shop.mcp) as wire:
        note = await wire.ask(call(1, "wait", progressToken="t"))
        assert (note["method"], note["params"]) == ("notifications/progress", {"progressToken": "t", "progress": 1})
        assert content(await wire.next()) == "waited"


# Cancellation


async def test_a_cancelled_request_stops_and_is_not_answered() -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "wait"))
        await shop.begun()
        wire.send(cancelled(requestId=1, reason="no longer of interest"))
        assert await wire.rest() == []
        assert shop.log == ["began", "cancelled"]
        wire.send(cancelled(requestId=1))
        assert content(await wire.ask(call(1, "echo", {"text": "again"}))) == "again"


async def test_a_request_cancelled_in_the_same_breath_is_not_answered() -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "wait"), cancelled(requestId=1))
        assert await wire.rest() == []
        assert "ended" not in shop.log


@pytest.mark.parametrize("id_", [2, "1", True, [1]], ids=repr)
async def test_a_cancellation_of_something_else_is_ignored(id_: Any) -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "wait"))
        await shop.begun()
        wire.send(cancelled(requestId=id_), cancelled())
        assert await wire.rest() == []
        shop.gate.set()
        assert content(await wire.next()) == "waited"


async def test_a_body_that_ignores_its_cancellation_is_not_answered_all_the_same() -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        wire.send(call(1, "stubborn"))
        await shop.begun()
        wire.send(cancelled(requestId=1))
        assert await wire.rest() == []
        shop.gate.set()
        await turns()
        assert await wire.rest() == []


async def test_a_claimed_call_goes_on_when_it_is_cancelled_and_a_replay_gets_its_result() -> None:
    shop = Shop()
    async with Wire(shop.mcp) as wire:
        state = (await wire.ask(call(1, "pay")))["result"]["requestState"]
        answers = {"ask": {"action": "accept", "content": {"value": True}}}
        retry = {"requestState": state, "inputResponses": answers}
        wire.send(call(2, "pay", retry=retry, progressToken=2))
        await shop.begun()
        wire.send(cancelled(requestId=2))
        assert await wire.rest() == []
        shop.gate.set()
        assert content(await wire.ask(call(3, "pay", retry=retry))) == "paid True"
        assert await wire.rest() == []
        assert shop.log == ["began", "ended"]


# Sizes


async def test_a_message_over_the_limit_is_refused_once_and_the_next_is_served() -> None:
    async with Wire(Shop().mcp) as wire:
        wire.send(b"x" * (MESSAGE_LIMIT + 1))
        refused = await wire.next()
        assert refused["error"]["code"] == -32600
        assert refused["error"]["message"] == "the message is larger than 4194304 bytes, the most this server accepts"
        assert "id" not in refused
        wire.send(b"x" * MESSAGE_LIMIT, b"\n")
        assert await wire.rest() == []


async def test_a_message_of_exactly_the_limit_is_served() -> None:
    raw = json.dumps(call(1, "echo", {"text": "a" * 700})).encode()
    async with Wire(Shop().mcp, limit=len(raw)) as wire:
        wire.send(raw + b"\n")
        assert content(await wire.next()) == "a" * 700
    async with Wire(Shop().mcp, limit=len(raw) - 1) as wire:
        wire.send(raw + b"\n")
        assert (await wire.next())["error"]["code"] == -32600
