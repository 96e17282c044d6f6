"""The connections of a run: opened when they are needed, shared by those that can share one, and always closed.

testing.md section 5: a server that cannot be reached says why; nothing outlives the run.
"""

import asyncio
import contextlib
import gc
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from bespeak import MCPServer
from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_pool import Pool
from bespeak.conversation.server_targets import Target
from bespeak.conversation.servers import Reached, Unreachable
from bespeak.transports.interfaces import Ask, Outgoing
from bespeak.transports.memory import MemoryTransport
from tests.conversation.pools import pool, reached, wanted
from tests.testing.canned import MODERN, Canned, Json, Pushing, Silent

Opened = list[Canned]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """All servers that a pool has opened, instead of those it was to open."""
    servers: Opened = []

    @asynccontextmanager
    async def reach(*_: Any) -> AsyncGenerator[Reached]:
        servers.append(Canned())
        yield Reached(servers[-1], lambda: "what it printed")

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
    return servers


async def call(connection: Connection) -> Any:
    async def nobody(question: Any) -> Any:
        raise AssertionError("nobody is asked")

    return (await connection.send("tools/call", {"name": "look", "arguments": {}}, nobody)).envelope["result"]


# Sharing


async def test_those_that_want_the_same_share_a_connection(opened: Opened) -> None:
    async with pool() as connections:
        first = await connections.connection(wanted())
        again = await connections.connection(wanted(fill=str.upper, server=Target(command=["desk"])))
        assert first is again
    assert len(opened) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"name": "counter"},
        {"server": Target(command=["desk", "--new"])},
        {"folder": Path("others")},
        {"mode": "auto"},
        {"declared": {}},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_those_that_want_something_else_get_a_connection_of_their_own(opened: Opened, other: Json) -> None:
    async with pool() as connections:
        assert await connections.connection(wanted()) is not await connections.connection(wanted(**other))
    assert len(opened) == 2


async def test_the_revision_of_a_server_can_be_asked_for_without_keeping_a_connection(opened: Opened) -> None:
    async with pool() as connections:
        assert [await connections.version(wanted()) for _ in range(2)] == ["2026-07-28"] * 2
        assert len(opened) == 1
        connection = await connections.connection(wanted())
        assert await connections.version(wanted()) == connection.version
        assert len(opened) == 2


async def test_a_server_whose_revision_cannot_be_asked_for_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def absent(*_: Any) -> AsyncGenerator[Reached]:
        raise Unreachable("not there yet")
        yield

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", absent)
    async with pool() as connections:
        assert await connections.version(wanted()) is None
        reached(monkeypatch, Canned())
        assert await connections.version(wanted()) is not None


async def test_what_is_dropped_is_closed_at_once_and_opened_anew_for_the_next(opened: Opened) -> None:
    async with pool() as connections:
        first = await connections.connection(wanted())
        other = await connections.connection(wanted(name="counter"))
        await connections.drop(wanted())
        assert [server.left for server in opened] == [1, 0]
        assert await connections.connection(wanted()) is not first
        assert await connections.connection(wanted(name="counter")) is other
    assert [server.left for server in opened] == [1, 1, 1]


# In which task


class Watched(Canned):
    """A connection that remembers the tasks in which it was entered and left."""

    def __init__(self, *, fails_to_end: bool = False) -> None:
        super().__init__()
        self.tasks: list[asyncio.Task[Any] | None] = []
        self._fails_to_end = fails_to_end

    async def __aenter__(self) -> "Watched":
        self.tasks.append(asyncio.current_task())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.tasks.append(asyncio.current_task())
        if self._fails_to_end:
            raise RuntimeError("the database is gone")


@pytest.mark.parametrize("end", ["drop", "close"])
async def test_a_connection_is_entered_and_left_in_one_task(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    server = Watched()
    reached(monkeypatch, server)
    connections = Pool()
    connection = await asyncio.create_task(connections.connection(wanted()))
    await asyncio.create_task(call(connection))
    await asyncio.create_task(connections.drop(wanted()) if end == "drop" else connections.close())
    entered, left = server.tasks
    assert entered is left
    await connections.close()


@pytest.mark.parametrize("end", ["drop", "close"])
@pytest.mark.long
async def test_a_server_that_fails_to_end_is_ignored_silently(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    noise: list[Json] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    server = Watched(fails_to_end=True)
    reached(monkeypatch, server)
    connections = Pool()
    await connections.connection(wanted())
    await (connections.drop(wanted()) if end == "drop" else connections.close())
    assert len(server.tasks) == 2
    server.tasks.clear()  # nobody holds the task any more, so what it raised is told now or never
    gc.collect()
    assert noise == []


@pytest.mark.parametrize(
    "error",
    [RuntimeError("no database"), FileNotFoundError(2, "No such file", "desk.toml"), ValueError("no port"), OSError()],
)
async def test_a_lifespan_that_fails_to_begin_is_a_server_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    @asynccontextmanager
    async def failing(server: MCPServer[Any]) -> AsyncGenerator[None]:
        if server.name:
            raise error
        yield

    reached(monkeypatch, MemoryTransport(MCPServer("desk", lifespan=failing)))
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted())
    assert str(error) in str(raised.value)
    assert str(raised.value)
    assert "command" not in str(raised.value)  # there is none


# What cannot be reached


class Refusing(Canned):
    """A server to which no connection can be made."""

    def __init__(self, error: Exception | bytes) -> None:
        super().__init__()
        self._error = error

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        if isinstance(self._error, bytes):
            return self._error
        raise self._error


UNSUPPORTED = (
    b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "no", "data": {"supported": ["1999"]}}}'
)


@pytest.mark.parametrize(
    ("server", "mode", "message"),
    [
        (Refusing(ConnectionError("nobody is there")), "auto", "nobody is there"),
        (Refusing(TimeoutError("no answer to server/discover")), MODERN, "no answer to server/discover"),
        (Refusing(b"hello"), "auto", "the server's response is not JSON"),
        (Refusing(b'{"jsonrpc": "2.0", "id": 1}'), "auto", "the server's response has no result"),
        (Refusing(UNSUPPORTED), "auto", "the server supports 1999; this client supports 2026-07-28"),
    ],
)
async def test_a_failed_connection_is_reported_with_the_output_of_the_server(
    monkeypatch: pytest.MonkeyPatch, server: Canned, mode: str, message: str
) -> None:
    reached(monkeypatch, server, "Traceback: no port")
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted(mode=mode))
    assert message in str(raised.value)
    assert str(raised.value).endswith("; it printed:\n  Traceback: no port")
    assert (server.entered, server.left) == (1, 1)


async def test_the_reason_why_a_modern_revision_was_not_used_is_reported_too(monkeypatch: pytest.MonkeyPatch) -> None:
    reached(monkeypatch, Pushing(version="1999-01-01"))
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted(mode="auto"))
    assert "chose the protocol version '1999-01-01'" in str(raised.value)
    assert "the server did not support 2026-07-28: unknown method (-32601)" in str(raised.value)


@pytest.mark.timing
async def test_a_server_that_never_answers_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(Silent):
        async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
            return await self.replied(b"")

    reached(monkeypatch, Mute())
    async with pool() as connections:
        with pytest.raises(Unreachable, match=r"^no answer to server/discover within 0\.05 s$"):
            await connections.connection(wanted(server=Target(command=["desk"], timeout=0.05)))


@pytest.mark.timing
@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({"command": ["nobody-has-this"]}, "cannot start server 'desk' (nobody-has-this): there is no such command"),
        ({"command": ["sh"], "cwd": "nowhere"}, "/nowhere' to run the command in (cwd)"),
        ({"command": ["sh", "\0"]}, "embedded null byte"),
        (
            {"command": ["sh", "-c", "echo no till >&2; exit 4"]},
            "server 'desk' (sh -c 'echo no till >&2; exit 4') exited with",
        ),
        ({"command": ["sh", "-c", "echo no till >&2; exit 4"]}, "it printed:\n  no till"),
        ({"command": ["sh", "-c", "echo usage: till; exit 0"]}, "exited with code 0; it printed:\n  usage: till"),
        ({"command": ["sh", "-c", "kill -9 $$"]}, "was ended by signal 9"),
    ],
)
async def test_a_command_that_does_not_become_a_server_is_reported(tmp_path: Path, server: Json, message: str) -> None:
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted(server=Target(**server), folder=tmp_path))
    assert message in str(raised.value)
    assert str(raised.value).count("exited with code") <= 1


async def test_what_was_printed_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = [""]

    @asynccontextmanager
    async def reach(*_: Any) -> AsyncGenerator[Reached]:
        yield Reached(Canned(), lambda: printed[-1])

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
    async with pool() as connections:
        await connections.connection(wanted())
        shown: list[str] = []
        for one in ("a", "a\nb", "a\nb", "b\nc", "b\nc\nhalf", "c\nhalf a line", "all\nnew"):
            printed.append(one)
            shown.append(connections.newly_printed(wanted()))
    assert shown == ["a", "b", "", "c", "half", "half a line", "all\nnew"]


@pytest.mark.parametrize("later", [{}, {"mode": "2025-11-25"}, {"declared": {}}])
async def test_a_server_that_cannot_be_reached_is_given_up(monkeypatch: pytest.MonkeyPatch, later: Json) -> None:
    async with pool() as connections:
        reached(monkeypatch, Refusing(ConnectionError("it is closed")))
        with pytest.raises(Unreachable):
            await connections.connection(wanted())
        reached(monkeypatch, Canned())
        with pytest.raises(Unreachable, match="it is closed"):
            await connections.connection(wanted(**later))
        await connections.connection(wanted(name="another desk"))


async def test_a_server_that_fails_at_a_revision_it_speaks_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool() as connections:
        reached(monkeypatch, Canned())
        await connections.connection(wanted())
        reached(monkeypatch, Refusing(ConnectionError("too many clients")))
        with pytest.raises(Unreachable, match="too many clients"):
            await connections.connection(wanted(declared={}))
        await connections.connection(wanted())


async def test_cancelling_while_a_connection_opens_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opens, left = asyncio.Event(), asyncio.Event()

    class Slow(Canned):
        async def __aenter__(self) -> "Slow":
            opens.set()
            await asyncio.Event().wait()
            return self

    @asynccontextmanager
    async def reach(*_: Any) -> AsyncGenerator[Reached]:
        try:
            yield Reached(Slow())
        finally:
            left.set()

    monkeypatch.setattr("bespeak.conversation.connection_pool.reach", reach)
    opening = asyncio.create_task(Pool().connection(wanted()))
    await opens.wait()
    opening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await opening
    async with asyncio.timeout(5):
        await left.wait()
