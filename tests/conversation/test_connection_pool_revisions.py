"""What is said of a server that does not agree to a connection: why, and which revisions it speaks."""

import json
from collections.abc import Callable

import pytest

from bespeak.conversation.servers import Unreachable
from bespeak.transports.http.client import HttpStatusError
from bespeak.transports.interfaces import Ask, Outgoing
from tests.conversation.pools import pool, reached, wanted
from tests.testing.canned import MODERN, Canned, Pushing, error, written


@pytest.mark.parametrize("mode", [MODERN, "2025-11-25"])
async def test_a_server_that_lacks_a_revision_is_told_by_those_that_it_speaks(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    server = Pushing(version="2025-06-18")
    reached(monkeypatch, server)
    async with pool() as connections:
        for _ in range(2):
            with pytest.raises(Unreachable) as raised:
                await connections.connection(wanted(mode=mode))
            assert str(raised.value) == f"server 'desk' speaks 2025-06-18, not {mode}"
        assert (server.entered, server.left) == (2, 2)  # once for the revision, once to learn what it speaks
        await connections.connection(wanted(mode="2025-06-18"))


class BothEras(Pushing):
    """A server that speaks the newest revision and, after a handshake at any, 2025-11-25."""

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        if request.method == "server/discover":
            return await Canned.exchange(self, request, notify, ask)
        return await super().exchange(request, notify, ask)


async def test_all_revisions_of_a_server_are_told_if_it_speaks_both_eras(monkeypatch: pytest.MonkeyPatch) -> None:
    reached(monkeypatch, BothEras())
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted(mode="2025-06-18"))
    assert str(raised.value) == "server 'desk' speaks 2025-11-25 and 2026-07-28, not 2025-06-18"


class Newest(Canned):
    """A server that speaks nothing but the newest revision."""

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        if request.method == "initialize":
            return written(json.loads(request.message)["id"], error("Method not found", -32601))
        return await super().exchange(request, notify, ask)


@pytest.mark.parametrize(("name", "called"), [("desk", "server 'desk'"), ("", "the server")])
async def test_a_refused_handshake_is_told_with_the_revisions_that_the_server_speaks(
    monkeypatch: pytest.MonkeyPatch, name: str, called: str
) -> None:
    server = Newest()
    reached(monkeypatch, server, "a line")
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted(name=name, mode="legacy"))
        refused = f"{called} refused the handshake (initialize) at 2025-11-25: Method not found (-32601)"
        assert str(raised.value) == f"{refused}; it speaks 2026-07-28; it printed:\n  a line"
        assert (server.entered, server.left) == (2, 2)
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted(name=name, mode="2025-06-18"))
        assert str(raised.value) == f"{called} speaks 2026-07-28, not 2025-06-18"


async def test_a_note_after_a_question_is_a_sentence_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = HttpStatusError(404, "http://desk.example/sse")
    refused.add_note("the server may use HTTP+SSE")

    class Sse(Canned):
        async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
            raise refused

    reached(monkeypatch, Sse())
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted())
    assert str(raised.value) == (
        "http://desk.example/sse answered with HTTP status 404. Is this the path of its MCP endpoint? "
        "The server may use HTTP+SSE"
    )


async def test_a_handshake_that_is_refused_after_the_probe_is_told_with_both_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Neither(Newest):
        async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
            if request.method == "server/discover":
                return written(json.loads(request.message)["id"], error("Method not found, sorry", -32601))
            return await super().exchange(request, notify, ask)

    reached(monkeypatch, Neither())
    async with pool() as connections:
        with pytest.raises(Unreachable) as raised:
            await connections.connection(wanted(mode="auto"))
    assert str(raised.value) == (
        "server 'desk' refused the handshake (initialize) at 2025-11-25: Method not found (-32601); "
        "before that, the server did not support 2026-07-28: Method not found, sorry (-32601)"
    )


async def test_the_revisions_that_a_server_spoke_before_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool() as connections:
        for version in ("2025-11-25", "2025-06-18"):
            reached(monkeypatch, Pushing(version=version))
            await connections.connection(wanted(mode=version))
        with pytest.raises(Unreachable, match="server 'desk' speaks 2025-06-18 and 2025-11-25, not 2026-07-28"):
            await connections.connection(wanted(mode=MODERN))
