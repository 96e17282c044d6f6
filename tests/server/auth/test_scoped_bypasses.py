"""Ways around the scopes of a tool, prompt or resource that must not be open."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any

import pytest

from bespeak import Complete, MCPServer
from bespeak.server import CacheHint, ResourceSecurity
from bespeak.server.features.subscriptions import MOST_URIS
from tests.server.auth.issuers import Issuer, protected_server
from tests.transports.http.legacy.older_client import MARCH, Older, hello, request
from tests.transports.http.raw_requests import Response, lines, message, send
from tests.wires import Listening

ISSUED = Issuer()
CUSTOMER, STAFF = ISSUED.token("alice", ""), ISSUED.token("bob", "staff")
PUBLIC = CacheHint(ttl_ms=1000, scope="public")


def names(value: str) -> list[str]:
    return ["secret"]


def make_inner() -> MCPServer[Any]:
    """A server to be included, with something scoped of each kind."""
    inner = MCPServer[Any]("inner")

    @inner.tool(scopes=["staff"])
    async def refund() -> str:
        return "secret"

    @inner.prompt(scopes=["staff"])
    async def apology(name: Annotated[str, Complete(names)]) -> str:
        return "secret"

    @inner.resource("orders://all", scopes=["staff"])
    async def orders() -> str:
        return "secret"

    @inner.resource("orders://{number}/history", scopes=["staff"])
    async def history(number: Annotated[str, Complete(names)]) -> str:
        return "secret"

    return inner


def make_server() -> MCPServer[Any]:
    mcp = protected_server(ISSUED, cache_hints={"resources/read": PUBLIC})
    mcp.include(make_inner())
    mcp.include(make_inner(), prefix="shop")

    @mcp.resource("docs://payroll", scopes=["staff"])
    async def payroll() -> str:
        return "secret"

    @mcp.resource("docs://private/{+path}", scopes=["staff"])
    async def private(path: str) -> str:
        return "secret"

    @mcp.resource("docs://{+path}", security=ResourceSecurity(exempt_params={"path"}))
    async def docs(path: str) -> str:
        return f"{path}"

    return mcp


@pytest.fixture
async def server() -> AsyncGenerator[Listening]:
    async with Listening(make_server().streamable_http_app()) as listening:
        yield listening


async def ask(server: Listening, token: str, method: str, **params: Any) -> Response:
    headers = lines(method, authorization=f"Bearer {token}", mcp_name=params.get("uri", params.get("name")))
    return await send(server, message(method, **params), headers)


def completing(**ref: str) -> dict[str, Any]:
    return {"ref": ref, "argument": {"name": "name" if "name" in ref else "number", "value": ""}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "refund"}),
        ("tools/call", {"name": "shop_refund"}),
        ("prompts/get", {"name": "shop_apology", "arguments": {"name": "x"}}),
        ("resources/read", {"uri": "orders://all"}),
        ("resources/read", {"uri": "orders://shop/all"}),
        ("resources/read", {"uri": "orders://shop/7/history"}),
        ("completion/complete", completing(type="ref/prompt", name="shop_apology")),
        ("completion/complete", completing(type="ref/resource", uri="orders://shop/{number}/history")),
        ("completion/complete", completing(type="ref/resource", uri="orders://shop/7/history")),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["orders://shop/all"]}}),
    ],
)
async def test_what_is_included_keeps_its_scopes(server: Listening, method: str, params: dict[str, Any]) -> None:
    refused = await ask(server, CUSTOMER, method, **params)
    assert refused.status == 403
    assert b"secret" not in refused.body
    if method != "subscriptions/listen":
        assert b"secret" in (await ask(server, STAFF, method, **params)).body


async def test_a_scoped_resource_behind_many_repeated_ones_is_found(server: Listening) -> None:
    uris = ["docs://open"] * (MOST_URIS + 1) + ["docs://payroll"]
    refused = await ask(server, CUSTOMER, "subscriptions/listen", notifications={"resourceSubscriptions": uris})
    assert refused.status == 403


@pytest.mark.parametrize(
    "uri",
    [
        *("docs://payroll", "docs://%70ayroll", "docs://payrol%6C", "docs://private/x"),
        *("docs://%70rivate/x", "docs://private%2Fx", "docs://private%2fa%2fb"),
    ],
)
async def test_an_open_template_does_not_read_what_is_scoped_under_another_spelling(
    server: Listening, uri: str
) -> None:
    response = await ask(server, CUSTOMER, "resources/read", uri=uri)
    assert response.status == 403
    listened = await ask(server, CUSTOMER, "subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
    assert listened.status == 403


async def test_a_value_that_a_scoped_template_refuses_is_not_passed_to_an_open_one(server: Listening) -> None:
    for token in (CUSTOMER, STAFF):
        response = await ask(server, token, "resources/read", uri="docs://private/a/../b")
        assert response.code == -32602, response.body


async def test_what_an_open_template_reads_stays_open(server: Listening) -> None:
    for uri, path in (("docs://open", "open"), ("docs://a%20b", "a b"), ("docs://100%25", "100%")):
        result = (await ask(server, CUSTOMER, "resources/read", uri=uri)).json()["result"]
        assert (result["contents"][0]["text"], result["cacheScope"]) == (path, "public")


async def test_what_staff_reads_under_another_spelling_is_private(server: Listening) -> None:
    result = (await ask(server, STAFF, "resources/read", uri="docs://%70ayroll")).json()["result"]
    assert result["cacheScope"] == "private"


async def test_a_batch_and_a_session_of_an_older_client_have_no_more_scopes(server: Listening) -> None:
    bearer = f"Bearer {CUSTOMER}"
    reply = await Older(server.port).post(hello(MARCH), authorization=bearer)
    older = Older(server.port, MARCH, reply.headers["mcp-session-id"])
    for sent in (("tools/call", {"name": "shop_refund"}), ("resources/read", {"uri": "docs://%70ayroll"})):
        for body in (request(*sent), [request("ping"), request(*sent, id_=2)]):
            assert (await older.post(body, authorization=bearer)).status == 403
    staff = await older.post(request("tools/call", {"name": "shop_refund"}), authorization=f"Bearer {STAFF}")
    assert staff.status == 404, "a session belongs to the principal that began it"
