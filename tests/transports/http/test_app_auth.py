"""Authentication at the HTTP endpoint: when it is checked, what is refused, and what stays open."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from bespeak import HttpRequest, HttpResponse, MCPServer
from bespeak.server.auth import AccessToken, TokensUnverifiable
from bespeak.transports.http.asgi import ASGIApp
from tests.server.auth.issuers import ISSUER, METADATA, RESOURCE, Issuer, protected_server, settings
from tests.transports.http.raw_requests import Lines, lines, message, send
from tests.wires import Listening

ISSUED = Issuer()
WELL_KNOWN = "/.well-known/oauth-protected-resource"


def make_server(**options: Any) -> MCPServer[Any]:
    mcp = protected_server(ISSUED, **options)

    @mcp.tool()
    async def echo(text: str = "") -> str:
        return text

    @mcp.custom_route("/open", ["GET"])
    async def open_(request: HttpRequest) -> HttpResponse:
        return HttpResponse("open")

    return mcp


@pytest.fixture
async def server() -> AsyncGenerator[Listening]:
    async with Listening(make_server().streamable_http_app()) as listening:
        yield listening


def bearing(token: str, **changed: Any) -> Lines:
    return lines(authorization=f"Bearer {token}", **changed)


async def test_a_request_with_a_valid_token_is_served(server: Listening) -> None:
    response = await send(server, message(arguments={"text": "hello"}), bearing(ISSUED.token()))
    assert response.status == 200
    assert response.json()["result"]["content"][0]["text"] == "hello"


async def test_a_request_without_a_token_is_told_where_to_get_one(server: Listening) -> None:
    response = await send(server, message())
    assert response.status == 401
    assert response.headers["www-authenticate"] == f'Bearer resource_metadata="{METADATA}"'
    assert response.code == -32600
    assert response.message == "this server requires an access token: send it in the header 'Authorization: Bearer ...'"


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "",
        ISSUED.token(exp=1),
        ISSUED.token(aud="https://other.example.com/mcp"),
        ISSUED.token(iss="https://evil.example.com"),
        Issuer("k1").token(),
        Issuer("k9").token(),
        "eyJhbGciOiJub25lIn0.e30.",
    ],
    ids=["nonsense", "empty", "expired", "audience", "issuer", "forged", "unknown key", "none"],
)
async def test_every_invalid_token_is_refused_in_the_same_words(server: Listening, token: str) -> None:
    response = await send(server, message(), bearing(token))
    assert response.status == 401
    assert response.headers["www-authenticate"] == f'Bearer error="invalid_token", resource_metadata="{METADATA}"'
    assert response.message == "the access token is not valid or has expired; get a new one"


async def test_a_repeated_header_is_refused(server: Listening) -> None:
    token = ISSUED.token()
    response = await send(server, message(), [*bearing(token), ("authorization", f"Bearer {token}")])
    assert response.status == 400
    assert 'error="invalid_request"' in response.headers["www-authenticate"]


async def test_a_token_in_the_query_is_not_looked_at(server: Listening) -> None:
    assert (await send(server, message(), path=f"/mcp?access_token={ISSUED.token()}")).status == 401


async def test_a_token_without_a_required_scope_is_not_enough() -> None:
    mcp = make_server(auth=settings(required_scopes=["orders", "profile"]))
    async with Listening(mcp.streamable_http_app()) as server:
        response = await send(server, message(), bearing(ISSUED.token(scope="orders")))
        assert response.status == 403
        needed = 'Bearer error="insufficient_scope", scope="orders profile"'
        assert response.headers["www-authenticate"] == f'{needed}, resource_metadata="{METADATA}"'
        assert response.message == "the access token lacks a scope; this request needs: orders profile"
        assert (await send(server, message(), bearing(ISSUED.token(scope="profile orders x")))).status == 200
        without = await send(server, message())
        assert without.headers["www-authenticate"] == f'Bearer scope="orders profile", resource_metadata="{METADATA}"'


# The order of checks


async def test_origin_is_checked_before_the_token_and_the_token_before_all_else(server: Listening) -> None:
    token = ISSUED.token()
    evil = {"origin": "http://evil.example"}
    assert (await send(server, message(), lines(**evil))).status == 403
    assert (await send(server, message(), bearing(token, **evil))).status == 403
    assert (await send(server, message(), lines(host="evil.example"))).status == 403
    for wrong in ({"accept": "text/html"}, {"content_type": "text/plain"}, {"mcp_method": "x"}):
        assert (await send(server, message(), lines(**wrong))).status == 401
        assert (await send(server, message(), bearing(token, **wrong))).status in (400, 406, 415)
    for verb in ("PUT", "GET", "DELETE", "OPTIONS"):
        assert (await send(server, b"", lines(), verb=verb)).status == 401
    assert (await send(server, b"", bearing(token), verb="PUT")).status == 405
    assert (await send(server, b"{", lines())).status == 401


async def test_an_allowed_combination_of_headers_does_not_let_the_next_request_in(server: Listening) -> None:
    assert (await send(server, message(), bearing(ISSUED.token()))).status == 200
    assert (await send(server, message(), lines())).status == 401


async def test_a_body_is_not_waited_for_before_the_token_is_checked(server: Listening) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = "".join(f"{name}: {value}\r\n" for name, value in [*lines(), ("content-length", "1000000")])
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
    async with asyncio.timeout(5):
        assert (await reader.readline()).split()[1] == b"401"
    writer.close()


class Failing:
    """A verifier that fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def verify_token(self, token: str) -> AccessToken | None:
        raise self._error


@pytest.mark.parametrize(("error", "status"), [(TokensUnverifiable(), 503), (RuntimeError("the-token"), 500)])
async def test_a_verifier_that_fails_lets_nobody_in(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = MCPServer("Shop", auth=settings(), token_verifier=Failing(error))
    async with Listening(mcp.streamable_http_app()) as server:
        response = await send(server, message(), bearing("the-token"))
    assert (response.status, response.code) == (status, -32603)
    assert ("retry-after" in response.headers) is (status == 503)
    assert "www-authenticate" not in response.headers
    assert "the-token" not in caplog.text


# Metadata and what else is open


async def test_the_metadata_is_open_to_everybody(server: Listening) -> None:
    for path in (f"{WELL_KNOWN}/mcp", WELL_KNOWN):
        response = await send(
            server, b"", [("host", "x.example"), ("origin", "http://page.example")], verb="GET", path=path
        )
        assert (response.status, response.headers["content-type"]) == (200, "application/json")
        assert response.headers["access-control-allow-origin"] == "*"
        assert response.json()["resource"] == RESOURCE
        assert response.json()["authorization_servers"] == [ISSUER]
    assert (await send(server, b"", lines(), verb="GET", path=f"{WELL_KNOWN}/other")).status == 404


async def test_a_browser_may_ask_first(server: Listening) -> None:
    response = await send(server, b"", lines(origin="http://page.example"), verb="OPTIONS", path=f"{WELL_KNOWN}/mcp")
    assert response.status == 204
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["access-control-allow-methods"] == "GET"
    assert response.headers["access-control-allow-headers"] == "mcp-protocol-version"


async def test_the_metadata_can_only_be_read(server: Listening) -> None:
    response = await send(server, b"", lines(), verb="POST", path=f"{WELL_KNOWN}/mcp")
    assert (response.status, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


async def test_custom_routes_and_health_stay_open(server: Listening) -> None:
    for path in ("/open", "/health"):
        assert (await send(server, b"", lines(), verb="GET", path=path)).status == 200


async def test_without_authentication_there_is_no_metadata() -> None:
    async with Listening(MCPServer("Open").streamable_http_app()) as server:
        assert (await send(server, b"", lines(), verb="GET", path=WELL_KNOWN)).status == 404


@asynccontextmanager
async def browsing(app: ASGIApp) -> AsyncGenerator[httpx2.AsyncClient]:
    async with (
        Listening(app) as listening,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{listening.port}") as client,
    ):
        yield client


async def test_mounted_below_a_path_the_metadata_is_where_the_resource_url_says() -> None:
    url = "https://example.com/api/mcp"
    mcp = make_server(auth=settings(resource_server_url=url))
    inner = mcp.streamable_http_app()
    app = FastAPI(lifespan=mcp.lifespan)
    app.mount("/api", inner)
    app.mount(WELL_KNOWN, inner)
    async with browsing(app) as client:
        challenge = (await client.post("/api/mcp")).headers["www-authenticate"]
        assert challenge == f'Bearer resource_metadata="https://example.com{WELL_KNOWN}/api/mcp"'
        for path in (f"{WELL_KNOWN}/api/mcp", f"/api{WELL_KNOWN}"):
            found = await client.get(path)
            assert (found.status_code, found.json()["resource"]) == (200, url)
        token = ISSUED.token(aud=url)
        served = await client.post("/api/mcp", json=message(), headers=dict(bearing(token, host=None)))
        assert served.status_code == 200


async def test_the_metadata_is_found_however_a_path_is_divided_between_mount_and_app() -> None:
    """Servers differ in whether `path` repeats `root_path`."""
    inner = make_server(auth=settings(resource_server_url="https://example.com/api/mcp")).streamable_http_app()
    sent: list[dict[str, Any]] = []

    async def collect(event: Any) -> None:
        sent.append(event)

    async def nothing() -> Any:
        raise AssertionError("a GET has no body")

    for path, root in ((f"{WELL_KNOWN}/api/mcp", "/api"), (f"/api{WELL_KNOWN}", "/api"), ("/api/mcp", WELL_KNOWN)):
        sent.clear()
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": path,
            "root_path": root,
            "headers": [],
            "query_string": b"",
        }
        await inner(scope, nothing, collect)
        assert sent[0]["status"] == 200, path


def test_a_custom_route_cannot_hide_the_metadata() -> None:
    mcp = make_server()

    @mcp.custom_route(WELL_KNOWN + "/{rest}", ["GET"])
    async def mine(request: HttpRequest) -> HttpResponse:
        raise AssertionError("it is not served")

    with pytest.raises(
        ValueError, match=r"a custom route matches a path of the protected-resource metadata, '/\.well-known/"
    ):
        mcp.streamable_http_app()


# Logs


async def test_tokens_do_not_reach_any_log(server: Listening, caplog: pytest.LogCaptureFixture) -> None:
    tokens = [ISSUED.token(), ISSUED.token(exp=1), Issuer("k1").token(), "nonsense-token"]
    with caplog.at_level(logging.DEBUG):
        for token in tokens:
            await send(server, message(), bearing(token))
            await send(server, {}, bearing(token))
    for token in tokens:
        for part in token.split("."):
            assert part not in caplog.text
    assert "alice" not in caplog.text


def settings_without(name: str) -> dict[str, Any]:
    whole: dict[str, Any] = {"auth": settings(), "token_verifier": Failing(RuntimeError())}
    del whole[name]
    return whole


@pytest.mark.parametrize("name", ["auth", "token_verifier"])
def test_settings_and_verifier_come_together(name: str) -> None:
    with pytest.raises(ValueError, match="auth and token_verifier"):
        MCPServer("Shop", **settings_without(name))
