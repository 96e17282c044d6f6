"""How the stdio client ends its child (protocol section 22): close, wait, terminate, kill; nothing is left behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from bespeak import Client, StdioServerParameters
from bespeak.client import ClientRequestContext, Lost, stdio_client
from bespeak.transports.interfaces import Outgoing
from bespeak.transports.stdio import client as module
from tests.answering import Person, accept, text
from tests.transports.stdio.puppet import Puppet
from tests.waiting import eventually, turns

pytestmark = pytest.mark.timing


@pytest.fixture
def puppet(tmp_path: Path) -> Iterator[Puppet]:
    puppet = Puppet(tmp_path)
    yield puppet
    kill(puppet)


def kill(puppet: Puppet) -> list[str]:
    """Who was left, and is no more."""
    left = puppet.alive()
    for name in left:
        os.kill(int(name.removeprefix("alive-")), signal.SIGKILL)
    return left


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of all processes that this one starts."""
    pids: list[int] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            pids.append(self.pid)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    return pids


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def left_behind(puppet: Puppet, started: list[int], expected: int = 0) -> list[str]:
    """Who is left when every process that was started has ended, and is no more."""
    with contextlib.suppress(TimeoutError):
        await eventually(lambda: not any(map(lives, started)) and len(puppet.alive()) <= expected, 5)
    left = kill(puppet) + [f"process {pid}" for pid in started if lives(pid)]
    await eventually(lambda: not puppet.alive())
    await turns()  # the loop sees that their pipes are closed
    return left


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAVE_SECONDS", 0.2)
    monkeypatch.setattr(module, "TERMINATE_SECONDS", 0.2)


KILLED = "did not exit in time; killing it"


async def test_a_child_that_leaves_when_its_input_is_closed_is_not_hurried(
    puppet: Puppet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAVE_SECONDS", 50)
    async with Client(puppet.parameters()):
        began = time.perf_counter()
    assert time.perf_counter() - began < 25
    assert puppet.alive() == []
    assert caplog.text == ""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("mode", "killed"), [("slow", False), ("deaf", True)])
@pytest.mark.long
async def test_a_child_that_stays_is_told_to_terminate_and_then_killed(
    puppet: Puppet, mode: str, killed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(puppet.parameters(mode)):
        assert len(puppet.alive()) == 1
        began = time.perf_counter()
    assert puppet.alive() == []
    assert (KILLED in caplog.text) == killed
    assert 0.15 < time.perf_counter() - began < 25


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "mode", ["deaf parent", "slow parent"], ids=["killed with it", "its parent obeys, it does not"]
)
@pytest.mark.long
async def test_what_the_child_started_itself_goes_with_it(puppet: Puppet, started: list[int], mode: str) -> None:
    async with Client(puppet.parameters(mode)):
        await eventually(lambda: len(puppet.alive()) == 2)
    assert await left_behind(puppet, started) == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("mode", ["estranged", "slow estranged", "deaf estranged"])
@pytest.mark.long
async def test_a_grandchild_that_is_out_of_reach_does_not_hold_up_the_client(
    puppet: Puppet, started: list[int], mode: str
) -> None:
    client = Client(puppet.parameters(mode))
    await client.__aenter__()
    await eventually(lambda: len(puppet.alive()) == 2)
    leaving = asyncio.create_task(client.__aexit__(None, None, None))
    done, _ = await asyncio.wait({leaving}, timeout=15)
    assert len(await left_behind(puppet, started, expected=1)) == 1
    await leaving
    assert done, "the client waits for somebody it does not know"


@pytest.mark.usefixtures("impatient")
@pytest.mark.long
async def test_a_child_that_does_not_read_holds_up_neither_a_timeout_nor_the_end(puppet: Puppet) -> None:
    async with asyncio.timeout(10):
        async with Client(puppet.parameters()) as client:
            with pytest.raises(TimeoutError):
                await client.call_tool("sleep", read_timeout_seconds=0.05)
            with pytest.raises(TimeoutError, match=r"no answer to tools/call within 0\.05 s"):
                await client.call_tool("echo", {"text": "x" * 1_000_000}, read_timeout_seconds=0.05)
    assert puppet.alive() == []


async def test_calls_under_way_learn_that_the_client_is_closed(puppet: Puppet) -> None:
    async with Client(puppet.parameters()) as client:
        waiting = asyncio.create_task(client.call_tool("never"))
        await eventually(lambda: puppet.heard("tools/call"))
    with pytest.raises(Lost, match="before the response arrived; whether the request was carried out is not known"):
        await asyncio.wait_for(waiting, 20)
    with pytest.raises(RuntimeError, match="the client is not connected"):
        await client.call_tool("echo")


async def test_a_client_can_be_opened_again(puppet: Puppet) -> None:
    client = Client(puppet.parameters())
    for word in "ab":
        async with client:
            assert text(await client.call_tool("echo", {"text": word})) == word
    assert len(puppet.pids) == 2


# In a hurry


@pytest.mark.usefixtures("impatient")
@pytest.mark.long
async def test_a_client_that_is_cancelled_while_it_leaves_leaves_no_child_behind(puppet: Puppet) -> None:
    inside = asyncio.Event()

    async def use() -> None:
        async with Client(puppet.parameters("deaf")):
            inside.set()
            await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await asyncio.wait_for(inside.wait(), 10)
    for _ in range(3):
        using.cancel()
        await turns()
    await asyncio.wait({using}, timeout=20)
    assert using.cancelled()
    await eventually(lambda: not puppet.alive())


@pytest.mark.usefixtures("impatient")
def test_a_loop_that_ends_while_its_client_leaves_leaves_no_child_behind(puppet: Puppet) -> None:
    async def use() -> None:
        client = Client(puppet.parameters("deaf"))
        await client.__aenter__()
        leaving = asyncio.create_task(client.__aexit__(None, None, None))
        await turns()
        leaving.cancel()

    asyncio.run(use())
    assert len(puppet.pids) == 1
    assert puppet.alive() == []


@pytest.mark.parametrize("moment", ["at once", "first turn", "process started", "child runs", "child was asked"])
async def test_a_client_that_is_cancelled_while_it_arrives_leaves_no_child_behind(
    puppet: Puppet, started: list[int], moment: str
) -> None:
    reached: dict[str, Callable[[], object]] = {
        "process started": lambda: started,
        "child runs": puppet.alive,
        "child was asked": lambda: puppet.alive() and puppet.heard("server/discover"),
    }
    client = Client(puppet.parameters())
    arriving = asyncio.create_task(client.__aenter__())
    if moment in reached:
        async with asyncio.timeout(20):
            while not reached[moment]():  # noqa: ASYNC110 - as soon as it is reached
                await asyncio.sleep(0)
    elif moment == "first turn":
        await asyncio.sleep(0)
    arriving.cancel()
    await asyncio.wait({arriving}, timeout=20)
    if not arriving.cancelled():  # it was faster
        await client.__aexit__(None, None, None)
    assert await left_behind(puppet, started) == []


async def test_a_child_that_is_being_started_again_while_the_client_leaves_is_not_left_behind(
    puppet: Puppet, started: list[int]
) -> None:
    async with Client(puppet.parameters()) as client:
        with pytest.raises(Lost):
            await client.call_tool("die")
        again = asyncio.create_task(client.call_tool("never"))
        await asyncio.sleep(0)
    left = await left_behind(puppet, started)
    again.cancel()
    await asyncio.wait({again})
    assert left == []


# In mid-question

SHOP = """
import asyncio, os
from pathlib import Path
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("shop")
HERE = Path(__file__).parent

async def confirm() -> Elicit[bool]:
    return Elicit("Sure?", bool)

@mcp.tool()
async def pid() -> int:
    return os.getpid()

@mcp.tool()
async def order(sure: Annotated[bool, Resolve(confirm)]) -> str:
    return f"ordered {sure} by {os.getpid()}"

@mcp.tool()
async def pay(sure: Annotated[bool, Resolve(confirm)]) -> None:
    (HERE / "begun").touch()
    await asyncio.sleep(1.5)
    (HERE / "ended").touch()

mcp.run()
"""


@pytest.mark.long
async def test_a_client_that_leaves_does_not_kill_a_server_whose_approved_call_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAVE_SECONDS", 0.1)
    script = tmp_path / "shop.py"
    script.write_text(SHOP)
    person = Person({"confirm": accept(value=True)})
    async with Client(StdioServerParameters(sys.executable, [str(script)]), elicitation_callback=person) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await eventually((tmp_path / "begun").exists, 20)
        call.cancel()
        await asyncio.wait({call})
    assert (tmp_path / "ended").exists()


@pytest.mark.long
async def test_a_child_killed_in_mid_question_is_started_again_and_the_call_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(SHOP)
    parameters = StdioServerParameters(
        sys.executable, ["-W", "ignore", str(script)], env={"BESPEAK_STATE_KEYS": "some-key-" * 8}
    )
    transport = stdio_client(parameters)

    async def person(context: ClientRequestContext, params: Any) -> ElicitResult:
        first = int(text(await client.call_tool("pid")))
        child = transport._child  # pyright: ignore[reportPrivateUsage] - which learns of its end
        assert child is not None
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: child.requests.over is not None)
        return accept(value=True)

    async with Client(transport, elicitation_callback=person) as client:
        first = text(await client.call_tool("pid"))
        result = text(await asyncio.wait_for(client.call_tool("order"), 20))
        second = text(await client.call_tool("pid"))
    assert first != second
    assert result == f"ordered True by {second}"


async def test_an_exchange_after_the_end_is_refused(puppet: Puppet) -> None:
    transport = stdio_client(puppet.parameters())
    async with Client(transport):
        pass
    with pytest.raises(RuntimeError, match="the transport is not open"):
        await transport.exchange(Outgoing(1, "tools/list", b"{}", {}), lambda note: None)
