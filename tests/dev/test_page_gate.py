"""Who reaches the page: nobody without its token, by another name, or from another page. Each response has its headers."""

import hmac
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx2
import pytest

from bespeak import MCPServer
from bespeak.dev.page_files import KINDS
from bespeak.dev.page_gate import PREFIX, WRONG_HOST, WRONG_ORIGIN, WRONG_TOKEN, PageGate, Refused
from tests.dev.pages import TOKEN, listening

ROUTES = [
    ("GET", ""),
    *(("GET", name) for name in KINDS),
    ("GET", "api/server"),
    ("GET", "api/graph?kind=tool&name=buy"),
    ("POST", "api/list"),
    ("POST", "api/call"),
    ("POST", "api/call/some-call/answers"),
    ("POST", "api/call/some-call/stop"),
    ("GET", "api/nothing"),
    ("DELETE", ""),
]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


Ask = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
async def port() -> AsyncGenerator[int]:
    async with listening(MCPServer("shop").streamable_http_app()) as (port, _):
        yield port


@pytest.fixture
async def ask(port: int) -> AsyncGenerator[Ask]:
    """Sends one request to a path below a token."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:

        async def asked(
            method: str, path: str, token: str = TOKEN, headers: dict[str, str] | None = None
        ) -> httpx2.Response:
            return await http.request(
                method, f"{PREFIX}{token}/{path}", headers=headers, json={} if method == "POST" else None
            )

        yield asked


WRONG_TOKENS = ["", "x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "%00", "\u00e9", f"/{TOKEN}", f"x/{TOKEN}"]


async def test_no_route_answers_without_the_token(ask: Ask) -> None:
    for method, path in ROUTES:
        response = await ask(method, path, "wrong")
        assert (response.status_code, response.text) == (404, WRONG_TOKEN), path
    for token in WRONG_TOKENS:
        assert (await ask("GET", "api/server", token)).status_code == 404, token
    assert "printed in the terminal" in WRONG_TOKEN


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://evil.example:PORT", "null", "http://127.0.0.1:1", "http://localhost", ""]
)
async def test_no_route_answers_another_page(ask: Ask, port: int, origin: str) -> None:
    for method, path in ROUTES:
        response = await ask(method, path, headers={"Origin": origin.replace("PORT", str(port))})
        assert (response.status_code, response.text) == (403, WRONG_ORIGIN), path


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:PORT"]
)
async def test_no_route_answers_under_a_rebound_name(ask: Ask, port: int, host: str) -> None:
    for method, path in ROUTES:
        response = await ask(method, path, headers={"Host": host.replace("PORT", str(port))})
        assert (response.status_code, response.text) == (403, WRONG_HOST), path


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_the_page_answers_by_both_names_of_this_machine(ask: Ask, port: int, name: str) -> None:
    headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
    response = await ask("GET", "", headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("how", ["right", "token", "origin", "host"])
async def test_every_response_has_the_headers_that_keep_others_out(ask: Ask, how: str) -> None:
    given = {"origin": {"Origin": "https://evil.example"}, "host": {"Host": "evil.example"}}.get(how, {})
    for method, path in ROUTES:
        headers = (await ask(method, path, "wrong" if how == "token" else TOKEN, given)).headers
        drawn = how == "right" and path.startswith("api/graph")
        wanted = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox" if drawn else POLICY
        assert headers["content-security-policy"] == wanted, path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"


def scope(path: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "path": PREFIX + path, "headers": list(headers)}


HERE = (b"host", b"127.0.0.1:8000")


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, right: bytes) -> bool:
        compared.append((given, right))
        return given == right

    monkeypatch.setattr(hmac, "compare_digest", compare)
    gate = PageGate("right", 8000)
    assert gate.admit(scope("right/page.js", HERE)) == "page.js"
    assert gate.admit(scope("wrong/page.js", HERE)) == Refused(404, WRONG_TOKEN)
    assert compared == [(b"right", b"right"), (b"wrong", b"right")]


def test_the_url_of_the_page_ends_with_a_slash() -> None:
    assert PageGate("right", 8000).admit(scope("right", HERE)) == Refused(404, WRONG_TOKEN)


def test_a_header_that_occurs_twice_is_refused() -> None:
    gate = PageGate("right", 8000)
    assert gate.admit(scope("right/", HERE, HERE)) == Refused(403, WRONG_HOST)
    origins = [(b"origin", b"http://127.0.0.1:8000")] * 2
    assert isinstance(gate.admit(scope("right/", HERE, *origins)), Refused)
    assert gate.admit(scope("right/")) == Refused(403, WRONG_HOST)


def test_at_port_80_browsers_leave_the_port_out() -> None:
    gate = PageGate("right", 80)
    here, there = (b"host", b"localhost"), (b"origin", b"http://localhost")
    assert gate.admit(scope("right/", here, there)) == ""
    assert gate.admit(scope("right/", (b"host", b"localhost:80"))) == ""
    assert gate.admit(scope("right/", (b"host", b"localhost:8000"))) == Refused(403, WRONG_HOST)


async def test_everything_else_goes_to_the_server(port: int) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"http://127.0.0.1:{port}/health")).json() == {"status": "ok"}
        assert "MCP messages go to '/mcp'" in (await http.get(f"http://127.0.0.1:{port}/")).text
