"""Secrets in URLs: not in errors, not in logs, and not kept once the client is closed."""

import asyncio
import gc
import logging
import secrets
from types import FrameType
from typing import Any

import httpx2
import pytest

from bespeak import Client, MCPServer
from bespeak.client import HttpStatusError
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import JSON, ASGIApp
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.http.url_redaction import public
from tests.transports.http.scripted_server import ANSWER, CALL, Seen, closed_port, says
from tests.waiting import eventually
from tests.wires import Listening

HIDDEN = "hunter2"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def keepers(backwards: str) -> list[str]:
    """What holds a text, of all that this process knows. The text is given backwards: who looks for it must not hold it."""
    gc.collect()
    text = backwards[::-1]
    encoded = text.encode()
    found: list[str] = []
    for holder in gc.get_objects():
        if isinstance(holder, FrameType):
            continue
        waiting: list[Any] = [holder]
        while waiting:
            for held in gc.get_referents(waiting.pop()):
                if (isinstance(held, str) and text in held) or (isinstance(held, bytes) and encoded in held):
                    found.append(f"{type(holder)}: {held!r:.200}")
                elif isinstance(held, dict | tuple) and not gc.is_tracked(held):
                    waiting.append(held)  # which the collector does not list, because it holds only texts and numbers
    return found


async def forgotten(backwards: str) -> None:
    """Return when nothing holds a text. The server is in this process too, and lets go of it in its own time."""
    await eventually(lambda: not keepers(backwards), 60)


# What may be shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://name:hunter2@a.example/mcp?key=hunter2#hunter2", "https://a.example/mcp"),
        ("HTTPS://A.Example:443/MCP", "https://a.example:443/MCP"),
        ("http://a.example:/mcp", "http://a.example/mcp"),
        ("http://hunter2@x@a.example/mcp", "http://a.example/mcp"),
        ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp"),
        ("http://a.example?key=hunter2", "http://a.example"),
        ("http://a.example:65536/mcp", None),
        ("http://[::1/mcp", None),
        ("http://a.example\\@b.example/mcp", None),
        ("http://a.example/\x1b[2J", None),
    ],
)
def test_what_may_be_secret_in_a_url_is_not_shown(url: str, shown: str | None) -> None:
    assert public(url) == shown


# The log of the library that sends requests


@pytest.mark.parametrize("path", ["/mcp?key=hunter2#hunter2", "/mcp?key=hunter2 \u00e9"])
async def test_the_log_shows_no_secret_of_a_url_however_it_is_written(path: str, log: pytest.LogCaptureFixture) -> None:
    async with Listening(Seen()) as listening:
        url = f"HTTP://name:hunter2@LOCALHOST:{listening.port}{path}"
        async with HttpTransport(url) as transport:
            assert await transport.exchange(CALL, lambda data: None) == ANSWER
    assert f"http://localhost:{listening.port}" in log.text
    assert HIDDEN not in log.text


async def test_the_log_shows_no_secret_of_where_a_server_has_moved_to(log: pytest.LogCaptureFixture) -> None:
    def app(path: str) -> ASGIApp:
        return says(200, ANSWER, JSON) if path == "/new" else says(307, b"", (b"location", b"/new?key=hunter2"))

    log.set_level(logging.INFO)  # below that, a library under it writes down every header it gets

    async with Listening(Seen(app)) as listening, HttpTransport(listening.url) as transport:
        assert await transport.exchange(CALL, lambda data: None) == ANSWER
    assert f"http://127.0.0.1:{listening.port}/new " in log.text
    assert HIDDEN not in log.text


async def test_the_log_shows_no_secret_of_where_an_auth_asks_for_its_token(log: pytest.LogCaptureFixture) -> None:
    class Fetching(httpx2.Auth):
        def auth_flow(self, request: httpx2.Request) -> Any:
            yield httpx2.Request("GET", request.url.copy_with(path="/token", query=b"secret=hunter2"))
            yield request

    async with Listening(Seen()) as listening, HttpTransport(listening.url, auth=Fetching()) as transport:
        assert await transport.exchange(CALL, lambda data: None) == ANSWER
    assert f"http://127.0.0.1:{listening.port}/token " in log.text
    assert HIDDEN not in log.text


async def test_the_log_of_requests_that_others_send_is_left_as_it_is(log: pytest.LogCaptureFixture) -> None:
    async with Listening(Seen()) as listening, HttpTransport(listening.url) as transport, httpx2.AsyncClient() as other:
        await transport.exchange(CALL, lambda data: None)
        await other.post(f"{listening.url}?page=2", content=b"{}")
    assert f"{listening.url}?page=2" in log.text


# Afterwards


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@pytest.mark.long
async def test_nothing_keeps_a_url_when_its_clients_are_closed(mode: str) -> None:
    token = secrets.token_hex(16)
    async with Listening(MCPServer("desk").streamable_http_app()) as listening:
        url = f"http://name:{token}@127.0.0.1:{listening.port}/mcp?key={token}"
        async with Client(url, mode=mode) as first, Client(url, mode=mode) as second:
            await asyncio.gather(first.list_tools(), second.list_tools())
    del first, second, url
    backwards, token = token[::-1], ""
    await forgotten(backwards)


COOKIE = (b"set-cookie", b"balancer=1; Path=/")


@pytest.mark.long
@pytest.mark.parametrize("status", [None, 401, 307])
async def test_nothing_keeps_a_url_that_could_not_be_used(status: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "CONNECT_PAUSES", ())
    token = secrets.token_hex(16)
    app = says(status or 200, b"", COOKIE, (b"location", f"/mcp?key={token}".encode()))
    async with Listening(app) as listening:
        port = listening.port if status else closed_port()
        url = f"http://name:{token}@127.0.0.1:{port}/mcp?key={token}"
        with pytest.raises((HttpStatusError, ConnectionError)):
            async with Client(url):
                pass
    del url, app, listening
    backwards, token = token[::-1], ""
    await forgotten(backwards)


@pytest.mark.long
def test_nothing_keeps_a_url_of_a_client_that_was_never_opened() -> None:
    backwards = secrets.token_hex(16)
    Client(f"https://a.example/mcp?key={backwards[::-1]}")
    with pytest.raises(ValueError, match="the URL of the server is not valid"):
        Client(f"https://a.example:0x/mcp?key={backwards[::-1]}")
    assert keepers(backwards) == []
