"""The refund desk example checks itself; this runs it over every transport, in both eras."""

import sys

import pytest
from examples.refund_desk import client, demo
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


@pytest.mark.timing
@pytest.mark.long
def test_the_demo_shows_one_conversation_in_full_and_one_line_for_each_transport_and_era(
    capfd: pytest.CaptureFixture[str],
) -> None:
    demo.main()
    shown = capfd.readouterr()  # what its servers print as well
    conversation, _, lines = shown.out.partition("The same server and the same calls")
    check(conversation.rstrip("\n") + "\n", "2026-07-28")
    results = [
        line
        for line in lines.splitlines()
        if "6 calls, 8 questions asked and answered, every result as expected" in line
    ]
    assert len(results) == 6
    assert not shown.err
