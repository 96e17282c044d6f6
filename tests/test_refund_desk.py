"""The refund desk example checks itself; this runs it over every transport, in both eras."""

import sys

import pytest
from examples.refund_desk import client
from examples.refund_desk.server import mcp

from bespeak import StdioServerParameters
from tests.wires import Listening

both_eras = pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])


def check(told: str, revision: str) -> None:
    assert f"At {revision}:" in told
    assert "refund_scope asks: ORD-7002 has 2 lines" in told
    assert told.endswith("All checks passed.\n")


@both_eras
async def test_the_refund_desk_is_as_it_should_be(capsys: pytest.CaptureFixture[str], mode: str, revision: str) -> None:
    await client.show(mcp, mode)
    check(capsys.readouterr().out, revision)


@both_eras
async def test_the_refund_desk_over_http(capsys: pytest.CaptureFixture[str], mode: str, revision: str) -> None:
    async with Listening(mcp.streamable_http_app()) as listening:
        await client.show(listening.url, mode)
    check(capsys.readouterr().out, revision)


@pytest.mark.timing
@pytest.mark.long
@both_eras
async def test_the_refund_desk_as_a_program_on_stdio(
    capsys: pytest.CaptureFixture[str], mode: str, revision: str
) -> None:
    parameters = StdioServerParameters(sys.executable, [str(client.SERVER)])
    await client.show(parameters, mode)
    check(capsys.readouterr().out, revision)
