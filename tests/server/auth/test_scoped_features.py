"""Scopes of single tools, prompts and resources: what a caller may not use is not listed to it, and refused with a challenge."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from bespeak import Client, MCPError, MCPServer
from bespeak.client import streamable_http_client
from bespeak.server import CacheHint, Tool
from bespeak.server.features.prompts import Prompt
from tests.server.auth.issuers import METADATA, Issuer, protected_server, settings
from tests.transports.http.legacy.older_client import MARCH, NOVEMBER, Older, hello, request
from tests.transports.http.raw_requests import Response, lines, message, send
from tests.wires import Listening

ISSUED = Issuer()
PUBLIC = CacheHint(ttl_ms=1000, scope="public")
Method = Literal["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
METHODS: dict[Method, tuple[str, str]] = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
SCOPED: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "refund", "arguments": {}}),
    ("prompts/get", {"name": "apology"}),
    ("resources/read", {"uri": "orders://all"}),
    ("resources/read", {"uri": "orders://7/history"}),
]


def make_server(**options: Any) -> MCPServer[Any]:
    hints = dict.fromkeys([*METHODS, "resources/read"], PUBLIC)
    mcp = protected_server(ISSUED, cache_hints=hints, auth=settings(required_scopes=["shop"]), **options)
    register(mcp, ["refunds", "staff"])
    return mcp


def register(mcp: MCPServer[Any], scopes: list[str]) -> None:
    """One open thing and one that requires scopes, of each kind."""

    @mcp.tool()
    async def search() -> str:
        return "found"

    @mcp.tool(scopes=scopes)
    async def refund() -> str:
        return "refunded"

    @mcp.prompt()
    async def greeting() -> str:
        return "hello"

    @mcp.prompt(scopes=scopes)
    async def apology() -> str:
        return "sorry"

    @mcp.resource("shop://hours")
    async def hours() -> str:
        return "9 to 5"

    @mcp.resource("orders://all", scopes=scopes, cache=PUBLIC)
    async def orders() -> str:
        return "all orders"

    @mcp.resource("shop://{shelf}/books")
    async def books(shelf: str) -> str:
        return shelf

    @mcp.resource("orders://{number}/history", scopes=scopes)
    async def history(number: str) -> str:
        return number


@pytest.fixture
async def server() -> AsyncGenerator[Listening]:
    async with Listening(make_server().streamable_http_app()) as listening:
        yield listening


CUSTOMER = ISSUED.token("alice", "shop")
HALF = ISSUED.token("carol", "shop refunds")
STAFF = ISSUED.token("bob", "staff shop refunds")


async def ask(server: Listening, token: str, method: str, **params: Any) -> Response:
    headers = lines(method, authorization=f"Bearer {token}", mcp_name=params.get("uri", params.get("name")))
    return await send(server, message(method, **params), headers)


# Lists


@pytest.mark.parametrize("method", METHODS)
async def test_what_a_caller_may_not_use_is_not_listed_to_it(server: Listening, method: Method) -> None:
    member, _ = METHODS[method]
    counts = [len((await ask(server, token, method)).json()["result"][member]) for token in (CUSTOMER, HALF, STAFF)]
    assert counts == [1, 1, 2]


@pytest.mark.parametrize("method", METHODS)
async def test_a_list_that_depends_on_the_caller_is_private_whatever_the_author_set(
    server: Listening, method: Method
) -> None:
    for token in (CUSTOMER, STAFF):
        result = (await ask(server, token, method)).json()["result"]
        assert (result["cacheScope"], result["ttlMs"]) == ("private", 1000)


async def test_a_list_that_does_not_depend_on_the_caller_keeps_the_authors_hint() -> None:
    mcp = protected_server(ISSUED, cache_hints={"tools/list": PUBLIC})

    @mcp.tool()
    async def search() -> str:
        return "found"

    async with Listening(mcp.streamable_http_app()) as server:
        assert (await ask(server, CUSTOMER, "tools/list")).json()["result"]["cacheScope"] == "public"


async def test_all_pages_of_such_a_list_are_private() -> None:
    async with Listening(make_server(page_size=1).streamable_http_app()) as server:
        first = (await ask(server, STAFF, "tools/list")).json()["result"]
        assert ([tool["name"] for tool in first["tools"]], first["cacheScope"]) == (["search"], "private")
        second = (await ask(server, STAFF, "tools/list", cursor=first["nextCursor"])).json()["result"]
        assert ([tool["name"] for tool in second["tools"]], second["cacheScope"]) == (["refund"], "private")
        assert "nextCursor" not in (await ask(server, CUSTOMER, "tools/list")).json()["result"]


@pytest.mark.parametrize(
    ("uri", "scope"), [("shop://hours", "public"), ("orders://all", "private"), ("orders://7/history", "private")]
)
async def test_what_is_read_from_a_scoped_resource_is_private(server: Listening, uri: str, scope: str) -> None:
    result = (await ask(server, STAFF, "resources/read", uri=uri)).json()["result"]
    assert (result["cacheScope"], result["ttlMs"]) == (scope, 1000)


@pytest.mark.parametrize("method", METHODS)
async def test_what_one_caller_has_listed_is_not_listed_to_the_next(server: Listening, method: Method) -> None:
    member, name = METHODS[method]
    in_turn = (STAFF, CUSTOMER, HALF, STAFF, CUSTOMER)
    seen = [(await ask(server, token, method)).json()["result"][member] for token in in_turn]
    assert [len(one) for one in seen] == [2, 1, 1, 2, 1]
    assert [[entry[name] for entry in one] for one in seen[:2]] == [[entry[name] for entry in one] for one in seen[3:]]


@pytest.mark.parametrize("version", [MARCH, NOVEMBER])
@pytest.mark.parametrize("method", METHODS)
async def test_nor_if_they_are_older_clients(server: Listening, method: Method, version: str) -> None:
    sessions: dict[str, Older] = {}
    for token in (STAFF, CUSTOMER):
        reply = await Older(server.port).post(hello(version), authorization=f"Bearer {token}")
        sessions[token] = Older(server.port, version, reply.headers["mcp-session-id"])
    seen = [
        len(
            (await sessions[token].post(request(method), authorization=f"Bearer {token}")).json["result"][
                METHODS[method][0]
            ]
        )
        for token in (STAFF, CUSTOMER, STAFF, CUSTOMER)
    ]
    assert seen == [2, 1, 2, 1]


# Calls


@pytest.mark.parametrize(("method", "params"), SCOPED, ids=str)
async def test_a_call_without_the_scopes_is_challenged_and_names_all_of_them(
    server: Listening, method: str, params: dict[str, Any]
) -> None:
    for token in (CUSTOMER, HALF):
        response = await ask(server, token, method, **params)
        assert response.status == 403
        needed = 'Bearer error="insufficient_scope", scope="shop refunds staff"'
        assert response.headers["www-authenticate"] == f'{needed}, resource_metadata="{METADATA}"'
        assert response.json()["id"] == 1
        assert response.message == "the access token lacks a scope; this request needs: shop refunds staff"
    assert (await ask(server, STAFF, method, **params)).status == 200


async def test_what_does_not_exist_or_is_not_named_is_not_challenged(server: Listening) -> None:
    for method, params, said in (
        ("tools/call", {"name": "nothing"}, "unknown tool 'nothing'"),
        ("prompts/get", {"name": "nothing"}, "unknown prompt 'nothing'"),
        ("resources/read", {"uri": "no://thing"}, "unknown resource 'no://thing'"),
        ("prompts/get", {}, "params.name must be the name of a prompt"),
    ):
        response = await ask(server, CUSTOMER, method, **params)
        assert (response.code, response.message) == (-32602, said)


async def test_open_things_need_no_more_than_every_request(server: Listening) -> None:
    assert (await ask(server, CUSTOMER, "tools/call", name="search")).status == 200


@pytest.mark.parametrize("version", [MARCH, NOVEMBER])
async def test_an_older_client_is_challenged_as_well(server: Listening, version: str) -> None:
    customer = f"Bearer {CUSTOMER}"
    reply = await Older(server.port).post(hello(version), authorization=customer)
    older = Older(server.port, version, reply.headers["mcp-session-id"])
    for method, params in SCOPED:
        refused = await older.post(request(method, params), authorization=customer)
        assert (refused.status, refused.json["id"]) == (403, 1)
        assert 'scope="shop refunds staff"' in refused.headers["www-authenticate"]
    listed = await older.post(request("tools/list"), authorization=customer)
    assert [tool["name"] for tool in listed.json["result"]["tools"]] == ["search"]


async def test_an_older_client_with_the_scopes_is_served(server: Listening) -> None:
    staff = f"Bearer {STAFF}"
    reply = await Older(server.port).post(hello(NOVEMBER), authorization=staff)
    older = Older(server.port, NOVEMBER, reply.headers["mcp-session-id"])
    for method, params in SCOPED:
        result = (await older.post(request(method, params), authorization=staff)).json["result"]
        assert "cacheScope" not in result


async def test_a_batch_with_a_request_that_needs_more_scopes_is_challenged_as_a_whole(server: Listening) -> None:
    customer = f"Bearer {CUSTOMER}"
    reply = await Older(server.port).post(hello(MARCH), authorization=customer)
    older = Older(server.port, MARCH, reply.headers["mcp-session-id"])
    allowed = request("tools/call", {"name": "search"}, id_="allowed")
    assert (await older.post([allowed], authorization=customer)).status == 200
    for method, params in [*SCOPED, ("resources/subscribe", {"uri": "orders://all"})]:
        refused = await older.post([allowed, request(method, params)], authorization=customer)
        assert refused.status == 403
        assert 'scope="shop refunds staff"' in refused.headers["www-authenticate"]


async def test_updates_of_a_resource_go_to_those_who_may_read_it(server: Listening) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["shop://hours", "orders://7/history", "no://thing"]}
    refused = await ask(server, CUSTOMER, "subscriptions/listen", notifications=wanted)
    assert (refused.status, refused.json()["id"]) == (403, 1)
    for malformed in (None, {"resourceSubscriptions": 7}, {"resourceSubscriptions": [7]}):
        response = await ask(server, CUSTOMER, "subscriptions/listen", notifications=malformed)
        assert response.code == -32602


async def test_an_older_client_subscribes_to_what_it_may_read(server: Listening) -> None:
    for token, status in ((CUSTOMER, 403), (STAFF, 200)):
        reply = await Older(server.port).post(hello(NOVEMBER), authorization=f"Bearer {token}")
        older = Older(server.port, NOVEMBER, reply.headers["mcp-session-id"])
        wanted = request("resources/subscribe", {"uri": "orders://all"})
        assert (await older.post(wanted, authorization=f"Bearer {token}")).status == status


@pytest.mark.parametrize(
    ("ref", "needed"),
    [
        ({"type": "ref/prompt", "name": "apology"}, ("refunds", "staff")),
        ({"type": "ref/prompt", "name": "greeting"}, ()),
        ({"type": "ref/resource", "uri": "orders://{number}/history"}, ("refunds", "staff")),
        ({"type": "ref/resource", "uri": "orders://all"}, ("refunds", "staff")),
        ({"type": "ref/resource", "uri": "no://thing"}, ()),
        (None, ()),
    ],
)
def test_completions_need_the_scopes_of_what_they_complete(ref: Any, needed: tuple[str, ...]) -> None:
    mcp = MCPServer("Shop")
    register(mcp, ["refunds", "staff"])
    assert mcp._catalogue.scopes_needed("completion/complete", {"ref": ref}) == needed  # pyright: ignore[reportPrivateUsage]


# Without authentication


async def test_without_http_everything_is_listed_and_may_be_used() -> None:
    async with Client(make_server()) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "refund"]
        assert not (await client.call_tool("refund")).is_error


def test_scopes_without_authentication_cannot_be_served_over_http() -> None:
    mcp = MCPServer("Open")
    register(mcp, ["refunds"])
    with pytest.raises(ValueError, match="cannot be served over HTTP: scopes need authentication") as caught:
        mcp.streamable_http_app()
    assert (
        "tool 'refund', prompt 'apology', resource 'orders://all', resource template 'orders://{number}/history'"
        in str(caught.value)
    )


async def test_what_is_registered_later_without_authentication_is_closed() -> None:
    mcp = MCPServer("Open")
    app = mcp.streamable_http_app()
    register(mcp, ["refunds"])
    async with Listening(app) as server:
        assert (await ask(server, "x", "tools/call", name="refund")).message == "unknown tool 'refund'"
        assert [tool["name"] for tool in (await ask(server, "x", "tools/list")).json()["result"]["tools"]] == ["search"]


# Registration


async def fn() -> str:
    return "x"


def test_scopes_are_checked_when_something_is_registered() -> None:
    mcp = MCPServer("Open")
    for register_ in (
        lambda: mcp.tool(scopes="admin")(fn),
        lambda: mcp.add_tool(fn, scopes="admin"),
        lambda: Tool.from_function(fn, scopes="admin"),
        lambda: mcp.prompt(scopes="admin")(fn),
        lambda: Prompt.from_function(fn, scopes="admin"),
        lambda: mcp.resource("a://b", scopes="admin")(fn),
    ):
        with pytest.raises(TypeError, match="scopes must be a list of scope names"):
            register_()


def test_scopes_may_be_given_wherever_something_is_registered() -> None:
    mcp = MCPServer("Open", tools=[Tool.from_function(fn, "first", scopes=["a"])])
    mcp.add_tool(fn, "second", scopes=["b"])
    mcp.add_prompt(Prompt.from_function(fn, scopes=["c"]))
    with pytest.raises(ValueError, match="tool 'first', tool 'second', prompt 'fn' cannot be served"):
        mcp.streamable_http_app()


@asynccontextmanager
async def calling(server: Listening, token: str) -> AsyncGenerator[Client]:
    async with Client(streamable_http_client(server.url, headers={"Authorization": f"Bearer {token}"})) as client:
        yield client


async def test_a_client_sees_the_tools_of_its_token(server: Listening) -> None:
    async with calling(server, CUSTOMER) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search"]
        with pytest.raises(MCPError, match="the access token lacks a scope; this request needs: shop refunds staff"):
            await client.call_tool("refund")
