"""The stdio server under load (protocol section 22, design section 8): clients that do not read, many requests."""

import asyncio
from typing import Any

import pytest

from bespeak.aio import outbox
from tests.transports.stdio.wire import Press, Wire, call, cancelled, content, request, settled
from tests.waiting import eventually

pytestmark = pytest.mark.timing

# Clients that do not read


@pytest.mark.long
async def test_a_client_that_does_not_read_is_not_read_and_gets_every_response_once_it_reads() -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        transport: Any = wire.writer.transport
        transport.pause_reading()
        for id_ in range(200):
            wire.send(call(id_, "print_", {"padding": "z" * 20_000}))
        assert await settled(wire, press) < 100, "requests are taken on though no answer is read"
        assert transport.get_write_buffer_size() > 0, "everything was read though nothing was"
        transport.resume_reading()
        assert sorted([(await wire.next())["id"] for _ in range(200)]) == list(range(200))


async def test_a_call_that_notifies_waits_for_a_client_who_is_behind() -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        transport: Any = wire.writer.transport
        transport.pause_reading()
        wire.send(call(1, "tell", {"times": 100}, progressToken=1))
        assert await settled(wire, press) == 0
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
        await eventually(lambda: press.served)
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
        await settled(wire, press)
        wire.send(cancelled(requestId=1))
        await asyncio.wait_for(press.cancelled.wait(), 20)
        transport.resume_reading()
        assert all("result" not in message for message in await wire.rest())
        assert press.served == 0


# Lines of any sort


async def test_a_thousand_requests_at_once_are_all_answered() -> None:
    press = Press()
    async with Wire(press.mcp) as wire:
        wire.send(*(request(id_, "server/discover") for id_ in range(1000)))
        assert {(await wire.next())["id"] for _ in range(1000)} == set(range(1000))
