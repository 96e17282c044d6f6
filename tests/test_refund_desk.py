"""The refund desk example checks itself; this runs it over every transport."""

import sys

import pytest
from examples.refund_desk import client
from examples.refund_desk.server import mcp

from bespeak import StdioServerParameters
from bespeak.client import stdio_client, streamable_http_client
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.transport import Transport
from tests.wires import Listening


def check(told: str) -> None:
    assert "refund_scope asks: ORD-7002 has 2 lines" in told
    assert told.endswith("Everything is as it should be.\n")


async def test_the_refund_desk_is_as_it_should_be(capsys: pytest.CaptureFixture[str]) -> None:
    await client.show(lambda: MemoryTransport(mcp))
    check(capsys.readouterr().out)


async def test_the_refund_desk_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    async with Listening(mcp.streamable_http_app()) as listening:
        await client.show(lambda: streamable_http_client(listening.url))
    check(capsys.readouterr().out)


async def test_the_refund_desk_as_a_program_on_stdio(capsys: pytest.CaptureFixture[str]) -> None:
    parameters = StdioServerParameters(sys.executable, [str(client.SERVER)])

    def reach() -> Transport:
        return stdio_client(parameters)

    await client.show(reach)
    check(capsys.readouterr().out)
