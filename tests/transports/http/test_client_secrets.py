"""The HTTP client's redirects and credentials, and errors that do not show them."""

import asyncio
import itertools
import traceback
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from bespeak.client import HttpStatusError
from bespeak.transports.http import client as http_client
from bespeak.transports.http.asgi import JSON, ASGIApp
from bespeak.transports.http.client import HttpTransport
from tests.transports.http.scripted_server import (
    ANSWER,
    CALL,
    Seen,
    always,
    ask,
    closed_port,
    says,
    streams,
)
from tests.wires import Listening

# Redirects


@asynccontextmanager
async def moving(status: int, absolute: bool) -> AsyncGenerator[tuple[Seen, str]]:
    """A server that has moved its endpoint to another path of its own, and its URL."""

    def app(path: str) -> ASGIApp:
        to = f"http://127.0.0.1:{listening.port}/new?a=1" if absolute else "/new?a=1"
        return says(200, ANSWER, JSON) if path == "/new" else says(status, b"", (b"location", to.encode()))

    seen = Seen(app)
    async with Listening(seen) as listening:
        yield seen, listening.url


@pytest.mark.parametrize("status", [307])
@pytest.mark.parametrize("absolute", [True, False])
async def test_a_redirect_within_the_server_is_followed_with_the_whole_message(status: int, absolute: bool) -> None:
    async with moving(status, absolute) as (seen, url), HttpTransport(url, headers={"X-Team": "blue"}) as transport:
        assert await transport.exchange(CALL, lambda data: None) == ANSWER
    assert [request[0] for request in seen.requests] == ["/mcp", "/new?a=1"]
    assert seen.requests[1][2] == CALL.message
    assert (seen.header(b"mcp-method"), seen.header(b"x-team")) == ([b"tools/call"], [b"blue"])


@pytest.mark.parametrize("absolute", [True, False])
async def test_a_redirect_within_the_server_keeps_the_password_of_the_url(absolute: bool) -> None:
    async with (
        moving(307, absolute) as (seen, url),
        HttpTransport(url.replace("//127", "//name:word@127")) as transport,
    ):
        await transport.exchange(CALL, lambda data: None)
    assert seen.header(b"authorization", 0) == seen.header(b"authorization", 1) == [b"Basic bmFtZTp3b3Jk"]


@pytest.mark.parametrize("follow", [False, True])
async def test_a_redirect_to_another_server_is_refused_and_nothing_is_sent_there(follow: bool) -> None:
    other = Seen()
    async with Listening(other) as elsewhere, httpx2.AsyncClient(follow_redirects=follow) as client:
        to = elsewhere.url.replace("//127", "//name:hunter2@127") + "?key=hunter3"
        with pytest.raises(HttpStatusError, match=rf"307 \(it moved to {elsewhere.url}; use that URL\)") as caught:
            await ask(says(307, b"", (b"location", to.encode())), http_client=client)
    assert other.requests == []
    assert "hunter" not in str(caught.value)


async def test_a_server_that_keeps_redirecting_is_given_up() -> None:
    seen = Seen(lambda path: says(308, b"", (b"location", b"/mcp")))
    with pytest.raises(HttpStatusError, match=r"HTTP status 308 \(too many redirects\)"):
        await ask(seen)
    assert len(seen.requests) < 10


@pytest.mark.parametrize(("status", "headers"), [(302, [(b"location", b"/new")]), (303, []), (307, []), (308, [])])
async def test_a_redirect_that_does_not_ask_for_the_same_post_is_not_followed(status: int, headers: Any) -> None:
    seen = Seen(lambda path: says(status, b"", *headers))
    with pytest.raises(HttpStatusError, match=f"HTTP status {status}"):
        await ask(seen)
    assert len(seen.requests) == 1


# Who asks


class Refreshing(httpx2.Auth):
    """Asks for a new token when the old one is refused."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        request.headers["Authorization"] = f"Bearer {next(self._numbers)}"
        response = yield request
        if response.status_code == 401:
            request.headers["Authorization"] = f"Bearer {next(self._numbers)}"
            yield request


async def test_an_auth_may_answer_a_401_and_the_message_is_sent_again() -> None:
    answers = iter([says(401), says(200, ANSWER, JSON)])
    seen = Seen(lambda path: next(answers))
    assert await ask(seen, auth=Refreshing()) == ANSWER
    assert [seen.header(b"authorization", at) for at in (0, 1)] == [[b"Bearer 0"], [b"Bearer 1"]]
    assert seen.requests[1][2] == CALL.message


async def test_a_name_and_a_password_are_an_auth_too() -> None:
    seen = Seen()
    await ask(seen, auth=("name", "word"))
    assert seen.header(b"authorization") == [b"Basic bmFtZTp3b3Jk"]


async def test_a_client_of_the_caller_s_is_used_as_it_is_and_left_open() -> None:
    seen = Seen()
    async with httpx2.AsyncClient(auth=("name", "word"), headers={"X-Team": "blue", "Accept": "text/html"}) as client:
        assert await ask(seen, http_client=client) == ANSWER
        assert not client.is_closed
    assert seen.header(b"authorization") == [b"Basic bmFtZTp3b3Jk"]
    assert seen.header(b"x-team") == [b"blue"]
    assert seen.header(b"accept") == [b"application/json, text/event-stream"]


# Secrets


def told(error: BaseException | None) -> str:
    """All that a traceback of an error would say."""
    texts: list[str] = []
    while error is not None:
        texts += traceback.format_exception_only(error)
        error = error.__cause__ or error.__context__
    return "".join(texts)


@pytest.mark.timing
@pytest.mark.parametrize(
    "app",
    [
        pytest.param(None, id="nobody there"),
        pytest.param(says(500), id="a status"),
        pytest.param(says(307, b"", (b"location", b"/mcp?key=hunter2")), id="redirects"),
        pytest.param(streams(then=RuntimeError("crashed")), id="broken off"),
        pytest.param(says(200, b"x" * 300, JSON), id="too much"),
        pytest.param(streams(lambda: asyncio.sleep(1)), id="silent"),
    ],
)
async def test_no_error_tells_the_secrets_of_the_url(app: ASGIApp | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "SILENCE_SECONDS", 0.05)
    monkeypatch.setattr(http_client, "CONNECT_PAUSES", ())
    seen = Seen(always(app or says(500)))
    async with Listening(seen) as listening:
        port = listening.port if app else closed_port()
        url = f"http://name:hunter2@127.0.0.1:{port}/mcp?key=hunter2#hunter2"
        async with HttpTransport(url, limit=200) as transport:
            with pytest.raises((ConnectionError, TimeoutError)) as caught:
                await transport.exchange(CALL, lambda data: None)
    assert "hunter2" not in told(caught.value)
    assert f"http://127.0.0.1:{port}/mcp" in str(caught.value)
    if app:  # which the server is told all the same
        assert seen.requests[0][0] == "/mcp?key=hunter2"
        assert seen.header(b"authorization", 0) == [b"Basic bmFtZTpodW50ZXIy"]


@pytest.mark.parametrize(
    "url",
    ["", "http://", "ftp://name:hunter2@host/mcp?key=hunter2", "name:hunter2@host:80/mcp?key=hunter2"],
)
def test_what_is_no_url_of_a_server_is_refused_without_telling_its_secrets(url: str) -> None:
    with pytest.raises(ValueError, match="the URL of the server is not valid; write one like https://") as caught:
        HttpTransport(url)
    assert "hunter2" not in told(caught.value)
