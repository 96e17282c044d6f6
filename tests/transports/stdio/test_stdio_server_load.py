"""A server on stdio under load (protocol section 22, design section 8): clients that do not read, and lines of any sort."""

import asyncio
import copy
import json
import random
from collections import Counter
from typing import Any

import pytest

from bespeak import MCPServer, ToolError
from bespeak.aio import outbox
from tests.transports.stdio.wire import META, Message, Press, Wire, call, cancelled, content, request, settled

INTERNAL_ERROR = -32603


# Clients that do not read


async def test_a_client_that_does_not_read_is_not_read_and_gets_every_response_once_it_reads() -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        transport: Any = wire.writer.transport
        transport.pause_reading()
        for id_ in range(200):
            wire.send(call(id_, "print_", {"padding": "z" * 20_000}))
        assert await settled(press) < 100, "requests are taken on though no answer is read"
        assert transport.get_write_buffer_size() > 0, "everything was read though nothing was"
        transport.resume_reading()
        assert sorted([(await wire.next())["id"] for _ in range(200)]) == list(range(200))


async def test_a_call_that_notifies_waits_for_a_client_who_is_behind() -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        transport: Any = wire.writer.transport
        transport.pause_reading()
        wire.send(call(1, "tell", {"times": 100}, progressToken=1))
        assert await settled(press) == 0
        transport.resume_reading()
        told = [(await wire.next())["params"]["progress"] for _ in range(100)]
        assert told == list(range(100)), "nothing is dropped as long as there is patience"
        assert content(await wire.next()) == "told"


async def test_a_client_that_never_reads_stops_no_call_and_loses_no_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PATIENCE_SECONDS", 0.05)
    press = Press()
    async with Wire(press.mcp) as wire:
        transport: Any = wire.writer.transport
        transport.pause_reading()
        wire.send(call(1, "tell", {"times": 100}, progressToken=1))
        async with asyncio.timeout(5):
            while not press.served:  # noqa: ASYNC110 - the tool has no event to offer
                await asyncio.sleep(0.01)
        transport.resume_reading()
        notes = 0
        while "result" not in (message := await wire.next()):
            notes += 1
        assert content(message) == "told"
        assert 0 < notes < 100
        assert await wire.rest() == []


async def test_a_cancellation_gets_through_while_a_client_is_behind_with_its_reading() -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        transport: Any = wire.writer.transport
        transport.pause_reading()
        wire.send(call(1, "tell", {"times": 100}, progressToken=1))
        await settled(press)
        wire.send(cancelled(requestId=1))
        await asyncio.sleep(0.05)
        transport.resume_reading()
        assert all("result" not in message for message in await wire.rest())
        assert press.served == 0


# Lines of any sort

ODD: list[Any] = [None, True, 0, -1, 1.5, 2**70, "", "1", "é", [], [1], {}, {"a": 1}, "x" * 300]
METHODS = ["tools/call", "tools/list", "server/discover", "prompts/get", "notifications/cancelled", "initialize", "", 7]
PARAMS = ["name", "arguments", "cursor", "requestState", "inputResponses", "requestId", "_meta"]
METAS = [*META, "progressToken", "io.modelcontextprotocol/logLevel", "io.modelcontextprotocol/clientInfo"]


class Lines:
    """Messages that are nearly right, and bytes that are not."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._ids = 0

    def next(self) -> bytes:
        chance = self._random.random()
        if chance < 0.1:
            return self._random.randbytes(self._random.randrange(60)).replace(b"\n", b"")
        message = self._nearly()
        raw = json.dumps(message, ensure_ascii=chance < 0.5).encode()
        if chance > 0.9:
            at = self._random.randrange(len(raw))
            return raw[:at] + self._random.randbytes(1).replace(b"\n", b"?") + raw[at + 1 :]
        return raw[: self._random.randrange(len(raw))] if chance > 0.85 else raw

    def _nearly(self) -> Any:
        def pick(among: list[Any]) -> Any:
            return copy.deepcopy(self._random.choice(among))

        self._ids += 1
        arguments: Message = {"text": pick(ODD)} if self._random.random() < 0.9 else {}
        message: Message = call(self._ids, pick(["echo", "fail", "nothing"]), arguments)
        for _ in range(self._random.randrange(3)):
            if self._random.random() < 0.5:
                message["params"][pick(PARAMS)] = pick(ODD)
            elif isinstance(message["params"]["_meta"], dict):
                message["params"]["_meta"][pick(METAS)] = pick(ODD)
        match self._random.randrange(12):
            case 0:
                message["method"] = pick(METHODS)
            case 1:
                message[pick(["id", "params", "jsonrpc", "method"])] = pick(ODD)
            case 2:
                del message[pick(list(message))]
            case 3:
                return [message]
            case _:
                pass
        return message


def wants_an_answer(raw: bytes) -> bool:
    """Everything does, if only an error, but empty lines and notifications."""
    if not raw.strip():
        return False
    try:
        message: Any = json.loads(raw)
    except ValueError:
        return True
    if not isinstance(message, dict) or "id" in message:
        return True
    notification: Message = {**message}
    return notification.get("jsonrpc") != "2.0" or not isinstance(notification.get("method"), str)


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_is_sent_gets_its_answer_and_nothing_is_an_internal_error(seed: int) -> None:
    mcp = MCPServer[Any]("fuzz")

    @mcp.tool()
    async def echo(text: str) -> str:
        return text

    @mcp.tool()
    async def fail(text: int) -> str:
        raise ToolError("as meant")

    source = Lines(seed)
    sent = [source.next() for _ in range(5000)]
    answers: list[Message] = []
    async with Wire(mcp) as wire:
        for at in range(0, len(sent), 500):
            batch = sent[at : at + 500]
            wire.send(b"".join(line + b"\n" for line in batch))
            answers += await wire.rest()
        await asyncio.sleep(0.02)
        answers += await wire.rest()
    codes = Counter(answer["error"]["code"] for answer in answers if "error" in answer)
    assert INTERNAL_ERROR not in codes
    assert {-32700, -32600, -32601, -32602, -32022} == set(codes)
    assert all(answer["jsonrpc"] == "2.0" and ("result" in answer) != ("error" in answer) for answer in answers)
    assert len(answers) == sum(map(wants_an_answer, sent))
    assert sum("result" in answer for answer in answers) > 500, "the lines were nothing but noise"


async def test_a_thousand_requests_at_once_are_all_answered() -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        wire.send(*(request(id_, "server/discover") for id_ in range(1000)))
        assert {(await wire.next())["id"] for _ in range(1000)} == set(range(1000))
