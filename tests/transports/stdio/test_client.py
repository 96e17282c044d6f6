"""The stdio client and its child process (protocol sections 18 and 22): starting, calls, restarts, cancellation."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_types import LoggingMessageNotificationParams

from bespeak import Client, StdioServerParameters
from bespeak.client import Lost, stdio_client
from bespeak.transports.stdio import client as module
from tests.answering import text
from tests.transports.stdio.puppet import Puppet
from tests.waiting import eventually

pytestmark = pytest.mark.timing

# Speaks the protocol by hand, as well or as badly as it is told to. While it lives it holds a lock on a file of its own.


@pytest.fixture
def puppet(tmp_path: Path) -> Puppet:
    return Puppet(tmp_path)


# Speaking


async def test_two_calls_at_once_share_one_child_and_each_gets_its_own_answer(puppet: Puppet) -> None:
    async with Client(puppet.parameters()) as client:
        calls = [client.call_tool("together", {"text": word}) for word in ("first", "second")]
        async with asyncio.timeout(10):
            assert [text(result) for result in await asyncio.gather(*calls)] == ["first", "second"]
    assert len(puppet.pids) == 1


async def test_notifications_reach_the_callbacks_of_their_own_request(puppet: Puppet) -> None:
    logged: list[Any] = []
    told: dict[str, list[Any]] = {"a": [], "b": []}

    async def log(params: LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    async def step(client: Client, name: str) -> str:
        async def progress(at: float, total: float | None, message: str | None) -> None:
            told[name].append((at, total, message))

        return text(await client.call_tool("steps", {"text": name}, progress_callback=progress))

    async with Client(puppet.parameters(), logging_callback=log) as client:
        async with asyncio.timeout(10):
            assert await asyncio.gather(step(client, "a"), step(client, "b")) == ["done", "done"]
    assert told == {name: [(1, None, None), (3, 4, name)] for name in ("a", "b")}
    assert sorted(logged) == ["log of a", "log of b"]


async def test_what_is_no_message_is_skipped_and_logged(puppet: Puppet, caplog: pytest.LogCaptureFixture) -> None:
    async with Client(stdio_client(puppet.parameters(), limit=100_000)) as client:
        assert text(await asyncio.wait_for(client.call_tool("garbage"), 10)) == "after all that"
    # an array may be several messages of an older server: each is looked at by itself
    for garbage in (b"hello", b"\xff\x00", b"1", b"2", b"{"):
        assert caplog.text.count(f"the server wrote a line that is not a message: {garbage!r}") == 1
    assert caplog.text.count("the server wrote a line that is not a message") == 5
    assert caplog.text.count("the server sent a line of more than 100000 bytes; skipping it") == 1
    assert caplog.text.count("the server sent a request, which this revision does not allow") == 1


@pytest.mark.long
async def test_a_message_larger_than_any_pipe_travels_both_ways(puppet: Puppet) -> None:
    large = "é" * 1_500_000
    async with Client(puppet.parameters()) as client:
        assert text(await asyncio.wait_for(client.call_tool("echo", {"text": large}), 20)) == large


async def test_an_environment_of_few_variables_is_passed_on_and_what_is_given_beside(
    puppet: Puppet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CLIENT", "not for servers")
    monkeypatch.setenv("HOME", "/the/home")
    monkeypatch.setenv("TERM", "dumb")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    parameters = puppet.parameters(env={"API_KEY": "for this server", "TERM": "another"}, cwd=elsewhere)
    async with Client(parameters) as client:
        facts = json.loads(text(await client.call_tool("facts")))
    assert facts["cwd"] == str(elsewhere)
    environment: dict[str, str] = facts["env"]
    assert "SECRET_OF_THE_CLIENT" not in environment
    assert (environment["HOME"], environment["TERM"], environment["API_KEY"]) == (
        "/the/home",
        "another",
        "for this server",
    )
    assert environment.keys() <= {*module.INHERITED, "API_KEY", "LC_CTYPE"}


async def test_what_the_child_says_on_standard_error_goes_where_it_is_sent(puppet: Puppet, tmp_path: Path) -> None:
    with (tmp_path / "errors").open("w") as errors:
        parameters = StdioServerParameters(sys.executable, ["-S", "-c", "raise SystemExit('out of ink')"])
        with pytest.raises(ConnectionError, match="exited with code 1"):
            async with Client(stdio_client(parameters, errlog=errors), mode="2026-07-28"):
                raise AssertionError("nobody is there")
    assert (tmp_path / "errors").read_text() == "out of ink\n"


# Not waiting any longer


async def test_who_stops_waiting_says_so_and_goes_on(puppet: Puppet) -> None:
    async with Client(puppet.parameters()) as client:
        waiting = asyncio.create_task(client.call_tool("never"))
        await eventually(lambda: puppet.heard("tools/call"))
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 0\.05 s"):
            await client.call_tool("never", read_timeout_seconds=0.05)
        assert text(await client.call_tool("echo", {"text": "still here"})) == "still here"
    asked = [message["id"] for message in puppet.heard("tools/call")]
    given_up = [message["params"]["requestId"] for message in puppet.heard("notifications/cancelled")]
    assert given_up == asked[:2]
    assert all("id" not in message for message in puppet.heard("notifications/cancelled"))


# Children that die


@pytest.mark.parametrize(
    ("tool", "fate"),
    [("die", "was ended by signal 9"), ("leave", "exited with code 4"), ("half", "exited with code 0")],
)
async def test_a_child_that_dies_in_mid_call_loses_the_call_and_is_started_again_by_the_next(
    puppet: Puppet, tool: str, fate: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(puppet.parameters()) as client:
        other = asyncio.create_task(client.call_tool("never"))
        await eventually(lambda: puppet.heard("tools/call"))
        lost = f"the server {sys.executable!r} {fate} before the response arrived; whether the request was carried out is not known"
        for call in (client.call_tool(tool), other):
            with pytest.raises(Lost) as caught:
                await asyncio.wait_for(call, 10)
            assert str(caught.value) == lost
        again = [client.call_tool("echo", {"text": word}) for word in "ab"]
        async with asyncio.timeout(10):
            assert [text(result) for result in await asyncio.gather(*again)] == ["a", "b"]
    assert len(puppet.pids) == 2, "one child is started for all who wait"
    assert f"{fate}; restarting it" in caplog.text
    assert puppet.alive() == []


@pytest.mark.long
async def test_a_child_that_closes_its_output_is_replaced(puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAVE_SECONDS", 0.2)
    async with Client(puppet.parameters()) as client:
        with pytest.raises(Lost, match="closed its output before the response arrived"):
            await asyncio.wait_for(client.call_tool("close"), 10)
        assert text(await client.call_tool("echo", {"text": "a"})) == "a"
    assert len(puppet.pids) == 2
    assert puppet.alive() == []


@pytest.mark.long
async def test_a_request_that_cannot_be_sent_does_not_wait_for_an_answer(
    puppet: Puppet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAVE_SECONDS", 0.2)
    async with Client(puppet.parameters()) as client:
        await client.call_tool("turn away")
        asked = asyncio.create_task(client.call_tool("echo", {"text": "a"}))
        done, _ = await asyncio.wait({asked}, timeout=20)
    assert done, "nobody can read it, and it waits all the same"
    with pytest.raises(Lost, match="closed its input before the response arrived"):
        await asked


async def test_a_child_that_dies_before_it_ever_answers_is_not_started_again(puppet: Puppet) -> None:
    with pytest.raises(ConnectionError) as caught:
        async with Client(puppet.parameters("mute"), mode="2026-07-28"):
            raise AssertionError("nobody is there")
    assert str(caught.value) == f"the server {sys.executable!r} exited with code 3"
    assert len(puppet.pids) == 1


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (StdioServerParameters("no-such-command"), "cannot start the server 'no-such-command': .*No such file"),
        (StdioServerParameters(sys.executable, cwd="/no/such/folder"), "cannot start the server .*No such file"),
        (StdioServerParameters(sys.executable, ["nul\0"]), "cannot start the server .*null byte"),
        (StdioServerParameters("/"), "cannot start the server '/': .*Permission denied"),
    ],
    ids=["command", "folder", "argument", "not a program"],
)
async def test_what_cannot_be_started_is_said(parameters: StdioServerParameters, reason: str) -> None:
    with pytest.raises(ConnectionError, match=reason):
        async with Client(parameters):
            raise AssertionError("nobody is there")


async def test_a_transport_that_is_not_open_says_how_to_open_it(puppet: Puppet) -> None:
    transport = stdio_client(puppet.parameters())
    with pytest.raises(RuntimeError, match=r"the transport is not open; use it through `async with Client\(...\)`"):
        await Client(transport)._session.discover()  # pyright: ignore[reportPrivateUsage] - there is no other way to it
