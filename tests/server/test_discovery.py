"""Lists are written once for everybody who may see the same, until something changes; the bytes are those of any other response."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from bespeak import Complete, MCPError, MCPServer, Resolve
from bespeak.protocol.callers import AccessToken, Caller
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import LegacyRequest, Request, read_meta, write_result, write_result_alone
from bespeak.server import discovery
from bespeak.server.features.prompts import Prompt
from bespeak.server.features.resource_types import TextResource
from bespeak.server.middleware import RequestEnd, RequestInfo
from tests.serving import OneWay

MODERN, VERSIONS = "2026-07-28", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
MEMBERS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
LISTS = pytest.mark.parametrize("method", MEMBERS)
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)


async def nothing() -> str:
    return ""


async def spoken(word: str) -> str:
    return word


def words(value: str) -> list[str]:
    return [value]


async def completed(word: Annotated[str, Complete(words)]) -> str:
    return word


async def handle(ref: Any, argument: Any, context: Any) -> None: ...


def add(mcp: MCPServer[Any], name: str, scopes: tuple[str, ...] = ()) -> None:
    """One of each kind."""
    mcp.add_tool(nothing, name=name, title="Größe", meta={"why": 1.5, "not": float("nan")}, scopes=scopes)
    mcp.prompt(name=name, title=name, scopes=scopes)(spoken)
    mcp.resource(f"shop://{name}", name=name, scopes=scopes)(nothing)
    mcp.resource(f"{name}://{{word}}", name=name, scopes=scopes)(spoken)


def shop(*names: str, **options: Any) -> MCPServer[Any]:
    mcp = MCPServer[Any]("shop", instructions="Say “please”.", **options)
    for name in names:
        add(mcp, name)
    return mcp


def sender(*scopes: str) -> Headers:
    headers = Headers([])
    headers.caller = Caller("someone", frozenset(scopes), AccessToken(token="t", client_id="c", scopes=list(scopes)))
    return headers


async def raw(
    mcp: MCPServer[Any],
    method: str,
    version: str = MODERN,
    headers: Headers | None = None,
    id_: str | int = 1,
    **params: Any,
) -> bytes:
    """The response as it is sent."""
    if version == MODERN:
        params["_meta"] = {PROTOCOL_VERSION_META_KEY: version, CLIENT_CAPABILITIES_META_KEY: {}}
        request = Request(id_, method, params, read_meta(params))
        return (await mcp.answer(request, lambda _: None, headers)).message
    peer = mcp.peer(None, version)
    return (await peer.answer(LegacyRequest(id_, method, params), OneWay(lambda _: None), headers)).message


async def result(mcp: MCPServer[Any], method: str, *more: Any, **params: Any) -> dict[str, Any]:
    return json.loads(await raw(mcp, method, *more, **params))["result"]


async def names(mcp: MCPServer[Any], method: str, *more: Any, **params: Any) -> list[str]:
    return [one["name"] for one in (await result(mcp, method, *more, **params))[MEMBERS[method]]]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The results that were written, and not taken from the cache."""
    found: list[dict[str, Any]] = []

    def write(one: dict[str, Any]) -> bytes:
        found.append(one)
        return write_result_alone(one)

    monkeypatch.setattr(discovery, "write_result_alone", write)
    return found


# The same bytes


@EVERY_VERSION
@LISTS
async def test_a_list_is_written_once_and_every_response_has_the_bytes_it_would_have_without_a_cache(
    method: str, version: str, written: list[Any]
) -> None:
    mcp = shop("a", "b")
    for id_ in (1, -7, 2**70, "x", 'é"\\\n', ""):
        sent = await raw(mcp, method, version, id_=id_)
        assert sent == write_result(id_, json.loads(sent)["result"])
        assert json.loads(sent)["id"] == id_
    assert len(written) == 1
    assert sent == write_result("", json.loads(await raw(shop("a", "b"), method, version))["result"])


@EVERY_VERSION
@LISTS
async def test_each_page_is_written_once(method: str, version: str, written: list[Any]) -> None:
    mcp = shop("a", "b", "c", page_size=1)
    found: list[bytes] = []
    for _ in range(2):
        more: dict[str, Any] | None = {}
        while more is not None:
            found.append(await raw(mcp, method, version, **more))
            cursor = json.loads(found[-1])["result"].get("nextCursor")
            more = {"cursor": cursor} if cursor else None
    assert found[:3] == found[3:]
    assert len({*found}) == len(written) == 3


@EVERY_VERSION
async def test_each_revision_has_lists_of_its_own(version: str) -> None:
    mcp = shop("a")
    for other in VERSIONS:
        await raw(mcp, "tools/list", other)
    assert await raw(mcp, "tools/list", version) == await raw(shop("a"), "tools/list", version)


async def test_what_the_server_is_is_written_once(written: list[Any]) -> None:
    mcp = shop("a")
    first, second = await raw(mcp, "server/discover"), await raw(mcp, "server/discover")
    assert first == second == write_result(1, json.loads(first)["result"])
    assert json.loads(first)["result"]["instructions"] == "Say “please”."
    assert len(written) == 1


async def test_request_hooks_run_for_what_is_not_written_again() -> None:
    mcp = shop("a")
    seen: list[str] = []

    @mcp.on_request
    async def hook(request: RequestInfo, proceed: Callable[[], Any]) -> RequestEnd:
        if len(seen) == 4:
            raise MCPError(-32000, "enough")
        seen.append(request.method)
        return await proceed()

    for method in ("tools/list", "server/discover"):
        assert await raw(mcp, method) == await raw(mcp, method) == await raw(shop("a"), method)
    assert seen == ["tools/list", "tools/list", "server/discover", "server/discover"]
    assert json.loads(await raw(mcp, "tools/list"))["error"]["message"] == "enough"


# Callers


@EVERY_VERSION
@LISTS
async def test_callers_get_what_they_may_use_in_whatever_order_they_come(
    method: str, version: str, written: list[Any]
) -> None:
    mcp = shop("open")
    add(mcp, "one", ("a",))
    add(mcp, "both", ("a", "b"))
    callers: list[tuple[Headers | None, list[str]]] = [
        (sender("a"), ["open", "one"]),
        (Headers([]), ["open"]),
        (sender("a", "b"), ["open", "one", "both"]),
        (sender("b"), ["open"]),
        (None, ["open", "one", "both"]),
        (sender(), ["open"]),
    ]
    for _ in range(2):
        for headers, seen in callers:
            assert await names(mcp, method, version, headers) == seen
    assert len(written) == 4, "one for each set of scopes that makes a difference: none, a, b, and both"


@EVERY_VERSION
async def test_pages_with_scopes_have_the_bytes_they_would_have_without_a_cache(version: str) -> None:
    def make() -> MCPServer[Any]:
        mcp = shop("open", page_size=1)
        add(mcp, "closed", ("a",))
        add(mcp, "late")
        return mcp

    mcp = make()
    for headers, after in ((sender("a"), "closed"), (sender(), "late")) * 2:
        first = await raw(mcp, "tools/list", version, headers)
        assert first == await raw(make(), "tools/list", version, headers)
        cursor = json.loads(first)["result"]["nextCursor"]
        second = await raw(mcp, "tools/list", version, headers, cursor=cursor)
        assert second == await raw(make(), "tools/list", version, headers, cursor=cursor)
        assert [tool["name"] for tool in json.loads(second)["result"]["tools"]] == [after]


async def test_the_cursor_of_one_caller_shows_another_nothing_more() -> None:
    mcp = shop("open", page_size=1)
    add(mcp, "closed", ("a",))
    add(mcp, "secret", ("a",))
    cursor = urlsafe_b64encode(b"closed").decode()
    assert await names(mcp, "tools/list", MODERN, sender("a"), cursor=cursor) == ["secret"]
    refused = json.loads(await raw(mcp, "tools/list", MODERN, sender(), cursor=cursor))
    assert refused["error"]["message"] == "invalid cursor; list again from the start"


# Changes


@EVERY_VERSION
async def test_what_is_added_and_removed_is_seen_at_once(version: str) -> None:
    mcp = shop("a")
    for method in MEMBERS:
        assert await names(mcp, method, version) == ["a"]
    add(mcp, "b")
    mcp.add_prompt(Prompt.from_function(spoken, "c"))
    mcp.add_resource(TextResource(uri="shop://c", name="c", text=""))
    assert await names(mcp, "tools/list", version) == ["a", "b"]
    assert await names(mcp, "prompts/list", version) == ["a", "b", "c"]
    assert await names(mcp, "resources/list", version) == ["a", "b", "c"]
    assert await names(mcp, "resources/templates/list", version) == ["a", "b"]
    mcp.remove_tool("a")
    mcp.remove_prompt("a")
    mcp.remove_resource("shop://a")
    mcp.remove_resource("a://{word}")
    assert await names(mcp, "tools/list", version) == ["b"]
    assert await names(mcp, "prompts/list", version) == ["b", "c"]
    assert await names(mcp, "resources/list", version) == ["b", "c"]
    assert await names(mcp, "resources/templates/list", version) == ["b"]


@EVERY_VERSION
async def test_a_tool_that_is_replaced_is_listed_as_the_new_one_is(version: str) -> None:
    mcp = shop()
    mcp.add_tool(nothing, name="a", description="old")
    await raw(mcp, "tools/list", version)
    mcp.remove_tool("a")
    mcp.add_tool(nothing, name="a", description="new")
    (tool,) = (await result(mcp, "tools/list", version))["tools"]
    assert tool["description"] == "new"


@EVERY_VERSION
async def test_what_an_included_server_has_and_gets_is_seen_at_once_under_its_names_here(version: str) -> None:
    inner, middle, outer = shop("a"), shop(), shop()
    servers = (inner, middle, outer)
    for mcp in servers:
        await raw(mcp, "tools/list", version)
    middle.include(inner, prefix="in")
    outer.include(middle, prefix="out")
    assert [await names(mcp, "tools/list", version) for mcp in servers] == [["a"], ["in_a"], ["out_in_a"]]
    add(inner, "b")
    assert await names(outer, "tools/list", version) == ["out_in_a", "out_in_b"]
    listed = (await result(outer, "resources/list", version))["resources"]
    assert [one["uri"] for one in listed] == ["shop://out/in/a", "shop://out/in/b"]
    inner.remove_tool("a")
    inner.remove_resource("b://{word}")
    assert await names(outer, "tools/list", version) == ["out_in_b"]
    listed = (await result(outer, "resources/templates/list", version))["resourceTemplates"]
    assert [one["uriTemplate"] for one in listed] == ["a://out/in/{word}"]


async def test_scopes_that_come_and_go_with_a_tool_change_who_sees_what() -> None:
    mcp = shop("open")
    assert (await result(mcp, "tools/list", MODERN, sender()))["cacheScope"] == "private"
    assert await names(mcp, "tools/list", MODERN, sender()) == ["open"]
    mcp.add_tool(nothing, name="closed", scopes=["a"])
    assert await names(mcp, "tools/list", MODERN, sender()) == ["open"]
    assert await names(mcp, "tools/list", MODERN, sender("a")) == ["open", "closed"]
    mcp.remove_tool("closed")
    mcp.add_tool(nothing, name="closed")
    assert await names(mcp, "tools/list", MODERN, sender()) == ["open", "closed"]


async def declares_completions(mcp: MCPServer[Any]) -> bool:
    """Whether a server declares them, to clients of both eras."""
    modern = "completions" in (await result(mcp, "server/discover"))["capabilities"]
    hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}
    answer = await mcp.peer().answer(LegacyRequest(1, "initialize", hello), OneWay(lambda _: None))
    assert ("completions" in json.loads(answer.message)["result"]["capabilities"]) is modern
    return modern


async def test_completions_that_come_and_go_change_the_capabilities() -> None:
    mcp = shop("a")
    assert not await declares_completions(mcp)
    mcp.prompt(name="b")(completed)
    assert await declares_completions(mcp)
    mcp.remove_prompt("b")
    assert not await declares_completions(mcp)
    mcp.resource("b://{word}")(completed)
    assert await declares_completions(mcp)
    mcp.remove_resource("b://{word}")
    assert not await declares_completions(mcp)
    mcp.completion()(handle)
    assert await declares_completions(mcp)


async def test_completions_of_included_servers_change_the_capabilities() -> None:
    inner, middle, outer = MCPServer[Any]("inner"), MCPServer[Any]("middle"), MCPServer[Any]("outer")
    outer.include(middle)
    assert not await declares_completions(outer)
    middle.include(inner)
    assert not await declares_completions(outer)
    inner.completion()(handle)
    assert [await declares_completions(mcp) for mcp in (inner, middle, outer)] == [True] * 3
    another = MCPServer[Any]("another")
    assert not await declares_completions(another)
    another.include(inner)
    assert await declares_completions(another)


async def test_an_override_leaves_lists_as_they_are(written: list[Any]) -> None:
    async def price() -> int:
        return 1

    async def buy(price: Annotated[int, Resolve(price)]) -> int:
        return price

    mcp = shop("a")
    mcp.add_tool(buy)
    before = await raw(mcp, "tools/list")
    with mcp.override(price, value=2):
        assert await raw(mcp, "tools/list") == before
    assert await raw(mcp, "tools/list") == before
    assert len(written) == 1


# Bounds


async def test_cursors_that_a_client_makes_up_add_no_pages(written: list[Any]) -> None:
    mcp = shop(*"abcdef", page_size=2)
    cursor = (await result(mcp, "tools/list"))["nextCursor"]
    for number in range(5):
        spelled = "!" * number + cursor  # as it is read, characters of no cursor do not count
        assert await names(mcp, "tools/list", cursor=spelled) == ["c", "d"]
    assert len(written) == 2, "however it is spelled, it is one page"
    for _ in range(2):  # a cursor that pages do not give, which may be left over from before a change
        assert await names(mcp, "tools/list", cursor=urlsafe_b64encode(b"a").decode()) == ["b", "c"]
    assert len(written) == 4, "it is served, and not kept"
    for cursor in ("nonsense", "bm9ib2R5", None, 7):
        assert b"invalid cursor" in await raw(mcp, "tools/list", cursor=cursor)
    assert len(written) == 4


async def test_of_a_list_without_pages_only_the_whole_is_kept(written: list[Any]) -> None:
    mcp = shop("a", "b", "c")
    assert await names(mcp, "tools/list") == ["a", "b", "c"]
    for _ in range(2):
        assert await names(mcp, "tools/list", cursor=urlsafe_b64encode(b"a").decode()) == ["b", "c"]
    assert len(written) == 3


async def test_scopes_that_nothing_requires_add_no_pages(written: list[Any]) -> None:
    mcp = shop("open")
    add(mcp, "closed", ("a",))
    for number in range(20):
        assert await names(mcp, "tools/list", MODERN, sender(f"s{number}")) == ["open"]
        assert await names(mcp, "tools/list", MODERN, sender(f"s{number}", "a")) == ["open", "closed"]
    assert len(written) == 2
