"""The cache of a client: when a result is used again, and when it is not."""

import json
import logging
from typing import Any

import pytest
from mcp_types import ListToolsResult, PromptReference

from bespeak import Client, MCPError
from bespeak.client import CacheConfig, CacheEntry, CacheKey, InMemoryResponseCacheStore
from bespeak.client.cache import MAX_TTL_MS, MOST_PAGES, ResponseCache
from bespeak.client.server_responses import with_valid_hints
from bespeak.client.transport_choice import cache_target
from tests.client.sample_questions import FORM, say_yes
from tests.client.scripted_transport import DISCOVERED, Fake, asking, fails, tool

DAY = 24 * 60 * 60


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def page(*names: str, ttl: Any = 5000, scope: Any = "private", more: str | None = None) -> dict[str, Any]:
    result = {"resultType": "complete", "tools": [tool(name) for name in names], "ttlMs": ttl, "cacheScope": scope}
    return result if more is None else {**result, "nextCursor": more}


def contents(text: str, ttl: int = 5000) -> dict[str, Any]:
    read = [{"uri": "a://b", "text": text}]
    return {"resultType": "complete", "contents": read, "ttlMs": ttl, "cacheScope": "private"}


def saying(method: str, result: Any, **params: Any) -> Any:
    """A reply that is preceded by a notification."""

    def reply(request: Any, notify: Any) -> Any:
        notify(json.dumps({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}).encode())
        return result

    return reply


async def names(client: Client, **options: Any) -> list[str]:
    return [one.name for one in (await client.list_tools(**options)).tools]


# Lifetimes


async def test_a_result_is_used_again_until_its_time_has_passed() -> None:
    clock, fake = Clock(), Fake(page("first"), page("second"))
    async with Client(fake, cache=CacheConfig(clock=clock)) as client:
        assert await names(client) == ["first"]
        clock.now += 4.999
        assert await names(client) == ["first"]
        clock.now += 0.001
        assert await names(client) == ["second"]
    assert len(fake.requests) == 2


@pytest.mark.parametrize("ttl", [0, -1, 2.5, "5000", None, True])
async def test_a_lifetime_of_zero_or_one_that_is_not_valid_means_that_nothing_is_cached(ttl: Any) -> None:
    fake = Fake(page("first", ttl=ttl), page("second"))
    async with Client(fake) as client:
        assert (await client.list_tools()).ttl_ms == 0
        assert await names(client) == ["second"]


async def test_a_scope_that_is_not_valid_means_that_nothing_is_cached() -> None:
    fake = Fake(page("first", scope="everyone"), page("second"))
    async with Client(fake) as client:
        assert (await client.list_tools()).cache_scope == "private"
        assert await names(client) == ["second"]


async def test_hints_that_are_not_valid_do_not_spoil_the_handshake() -> None:
    async with Client(Fake({}, discovered={**DISCOVERED, "ttlMs": -5})) as client:
        assert client.server_capabilities.tools is not None


def test_valid_hints_are_kept_and_absent_ones_stay_absent() -> None:
    assert with_valid_hints({"ttlMs": 5, "cacheScope": "public"}) == {"ttlMs": 5, "cacheScope": "public"}
    assert with_valid_hints({"a": 1}) == {"a": 1}


async def test_nothing_is_cached_for_longer_than_a_day() -> None:
    clock, fake = Clock(), Fake(page("first", ttl=10 * MAX_TTL_MS), page("second"))
    async with Client(fake, cache=CacheConfig(clock=clock)) as client:
        await names(client)
        clock.now += DAY - 1
        assert await names(client) == ["first"]
        clock.now += 1
        assert await names(client) == ["second"]


async def test_a_clock_that_is_set_back_does_not_extend_a_lifetime_beyond_a_day() -> None:
    clock, fake = Clock(), Fake(page("first", ttl=MAX_TTL_MS), page("second"))
    async with Client(fake, cache=CacheConfig(clock=clock)) as client:
        await names(client)
        clock.now -= 100
        assert await names(client) == ["second"]


async def test_results_without_a_lifetime_have_the_one_that_the_client_sets() -> None:
    bare = {"tools": [tool("first")]}
    for lifetime, requests in ((0, 2), (1000, 1)):
        fake = Fake(bare)
        async with Client(fake, cache=CacheConfig(default_ttl_ms=lifetime)) as client:
            await names(client)
            await names(client)
        assert len(fake.requests) == requests


# What is cached


@pytest.mark.parametrize(
    ("send", "result"),
    [
        ("list_tools", page("tool")),
        ("list_prompts", {"prompts": [], "ttlMs": 5000, "cacheScope": "public"}),
        ("list_resources", {"resources": [], "ttlMs": 5000, "cacheScope": "public"}),
        ("list_resource_templates", {"resourceTemplates": [], "ttlMs": 5000, "cacheScope": "public"}),
    ],
)
async def test_each_list_is_cached_by_its_cursor(send: str, result: dict[str, Any]) -> None:
    fake = Fake(result)
    async with Client(fake) as client:
        for cursor in (None, "", "two", None, "", "two"):
            await getattr(client, send)(cursor=cursor)
    assert [params.get("cursor") for params in fake.params] == [None, "", "two"]


async def test_resources_are_cached_by_their_uri() -> None:
    fake = Fake(contents("7"))
    async with Client(fake) as client:
        for uri in ("a://b", "a://c", "a://b"):
            await client.read_resource(uri)
    assert [params["uri"] for params in fake.params] == ["a://b", "a://c"]


async def test_prompts_completions_and_calls_are_never_cached() -> None:
    hints = {"ttlMs": 5000, "cacheScope": "public"}
    fake = Fake({"messages": [], "content": [], "completion": {"values": []}, **hints})
    async with Client(fake, cache=CacheConfig(default_ttl_ms=5000)) as client:
        for _ in range(2):
            await client.get_prompt("p")
            await client.call_tool("t")
            await client.complete(PromptReference(name="p"), {"name": "a", "value": ""})
    assert len(fake.requests) == 6


async def test_a_result_that_answers_were_needed_for_is_not_cached() -> None:
    fake = Fake(asking({"q": FORM}, "s"), contents("yours"), contents("anybody's"))
    async with Client(fake, elicitation_callback=say_yes) as client:
        texts = [(await client.read_resource("a://b")).model_dump()["contents"][0]["text"] for _ in range(3)]
    assert texts == ["yours", "anybody's", "anybody's"]
    assert len(fake.requests) == 3


async def test_a_request_that_carries_answers_or_a_state_neither_uses_nor_fills_the_cache() -> None:
    fake = Fake(contents("7"))
    async with Client(fake) as client:
        await client.read_resource("a://b", request_state="")
        await client.read_resource("a://b")
        await client.read_resource("a://b", input_responses={"q": {"action": "decline"}})
        await client.read_resource("a://b")
    assert len(fake.requests) == 3


async def test_a_request_with_metadata_that_may_change_its_result_bypasses_the_cache() -> None:
    fake = Fake(page("tool"))
    async with Client(fake) as client:
        await names(client, meta={"com.example/tenant": "a"})
        await names(client, meta={"traceparent": "00-1"})
        await names(client, meta={"traceparent": "00-2", "tracestate": "x", "baggage": "y"})
        await names(client, meta={"com.example/tenant": "b"})
    assert len(fake.requests) == 3


async def test_what_a_caller_does_to_a_result_does_not_reach_the_cache() -> None:
    fake = Fake(page("tool"))
    async with Client(fake) as client:
        for _ in range(3):
            tools = (await client.list_tools()).tools
            assert [one.name for one in tools] == ["tool"]
            tools[0].name = "changed"
            tools.clear()
    assert len(fake.requests) == 1


# Modes


async def test_refresh_requests_and_caches_and_bypass_does_neither_use_nor_fill_the_cache() -> None:
    fake = Fake(page("one"), page("two"), page("three"), page("four"))
    async with Client(fake) as client:
        assert await names(client, cache_mode="bypass") == ["one"]
        assert await names(client) == ["two"]
        assert await names(client, cache_mode="refresh") == ["three"]
        assert await names(client) == ["three"]
        assert await names(client, cache_mode="bypass") == ["four"]
        assert await names(client) == ["three"]


async def test_a_refreshed_result_that_must_not_be_cached_replaces_the_old_one() -> None:
    fake = Fake(page("one"), page("two", ttl=0), page("three"))
    async with Client(fake) as client:
        await names(client)
        await names(client, cache_mode="refresh")
        assert await names(client) == ["three"]


async def test_an_unknown_mode_is_refused() -> None:
    async with Client(Fake(page("tool"))) as client:
        with pytest.raises(ValueError, match="cache_mode must be one of 'use', 'refresh', 'bypass', not 'always'"):
            await client.list_tools(cache_mode="always")  # pyright: ignore[reportArgumentType]


async def test_a_client_without_a_cache_requests_everything() -> None:
    fake = Fake(page("tool"))
    async with Client(fake, cache=None) as client:
        await names(client)
        await names(client)
    assert len(fake.requests) == 2


async def test_the_cache_ends_with_the_connection() -> None:
    fake = Fake(page("tool"))
    client = Client(fake)
    for _ in range(2):
        async with client:
            await names(client)
    assert len(fake.requests) == 2


# Changes


@pytest.mark.parametrize(
    ("method", "list_", "is_dropped"),
    [
        ("tools/list_changed", "list_tools", True),
        ("prompts/list_changed", "list_prompts", True),
        ("resources/list_changed", "list_resources", True),
        ("resources/list_changed", "list_resource_templates", True),
        ("prompts/list_changed", "list_tools", False),
        ("message", "list_tools", False),
    ],
)
async def test_a_notification_drops_the_lists_that_it_is_about(method: str, list_: str, is_dropped: bool) -> None:
    everything: dict[str, Any] = {**page("tool"), "prompts": [], "resources": [], "resourceTemplates": []}
    fake = Fake(everything, everything, saying(method, {"content": []}), everything)
    async with Client(fake) as client:
        await getattr(client, list_)()
        await getattr(client, list_)(cursor="two")
        await client.call_tool("tool")
        await getattr(client, list_)()
        await getattr(client, list_)(cursor="two")
    assert len(fake.requests) == (5 if is_dropped else 3)


async def test_a_resource_that_was_updated_is_read_again_and_others_are_not() -> None:
    fake = Fake(contents("7"), contents("7"), saying("resources/updated", {"content": []}, uri="a://b"), contents("8"))
    async with Client(fake) as client:
        await client.read_resource("a://b")
        await client.read_resource("a://c")
        await client.call_tool("tool")
        await client.read_resource("a://b")
        await client.read_resource("a://c")
    assert [params.get("uri") for params in fake.params] == ["a://b", "a://c", None, "a://b"]


@pytest.mark.parametrize(
    ("method", "result", "send"),
    [("tools/list_changed", page("old"), "list_tools"), ("resources/updated", contents("old"), "read_resource")],
)
async def test_a_result_that_changed_while_it_was_requested_is_not_cached(method: str, result: Any, send: str) -> None:
    fake = Fake(saying(method, result, uri="a://b"), result)
    async with Client(fake) as client:
        for _ in range(3):
            await (client.list_tools() if send == "list_tools" else client.read_resource("a://b"))
    assert len(fake.requests) == 2


async def test_an_invalid_cursor_drops_the_pages_that_led_to_it() -> None:
    fake = Fake(page("tool", more="two"), fails({"code": -32602, "message": "no such cursor"}), page("tool"))
    async with Client(fake) as client:
        await names(client)
        with pytest.raises(MCPError, match="no such cursor"):
            await names(client, cursor="two")
        await names(client)
    assert len(fake.requests) == 3


async def test_another_error_drops_nothing() -> None:
    fake = Fake(page("tool"), fails({"code": -32603, "message": "out of order"}))
    async with Client(fake) as client:
        await names(client)
        with pytest.raises(MCPError, match="out of order"):
            await names(client, cursor="two")
        assert await names(client) == ["tool"]


# A store that clients share


def shared(
    store: Any, partition: str = "ana", *, target_id: str | None = "shop", share_public: bool = False
) -> CacheConfig:
    return CacheConfig(store=store, partition=partition, target_id=target_id, share_public=share_public)


async def test_callers_share_nothing_unless_it_is_public_and_they_agree_to() -> None:
    for scope, share, requests in (("private", True, 2), ("public", False, 2), ("public", True, 1)):
        store = InMemoryResponseCacheStore()
        fake = Fake(page("tool", scope=scope))
        for partition in ("ana", "bob"):
            async with Client(fake, cache=shared(store, partition, share_public=share)) as client:
                await names(client)
        assert len(fake.requests) == requests


async def test_a_result_that_became_private_is_not_kept_as_a_public_one() -> None:
    store = InMemoryResponseCacheStore()
    fake = Fake(page("public", scope="public"), page("private"), page("bob's"))
    async with Client(fake, cache=shared(store, share_public=True)) as client:
        await names(client)
        await names(client, cache_mode="refresh")
        assert await names(client) == ["private"]
    async with Client(fake, cache=shared(store, "bob", share_public=True)) as client:
        assert await names(client) == ["bob's"]


async def test_servers_and_versions_are_kept_apart() -> None:
    store = InMemoryResponseCacheStore()
    config = shared(store)
    places = [
        ResponseCache(config, "ignored", lambda: "2026-07-28").place("tools/list", {}),
        ResponseCache(config, "ignored", lambda: "2027-01-01").place("tools/list", {}),
        ResponseCache(shared(store, target_id="other"), "ignored", lambda: "2026-07-28").place("tools/list", {}),
        ResponseCache(shared(store, target_id=None), "the url", lambda: "2026-07-28").place("tools/list", {}),
    ]
    assert len({place.private for place in places}) == 4


async def test_clients_of_the_same_url_share_and_others_do_not() -> None:
    assert cache_target("https://a.example/mcp") == cache_target("https://a.example/mcp")
    assert cache_target("https://a.example/mcp?key=secret").isalnum()
    assert cache_target("https://a.example/mcp") != cache_target("https://b.example/mcp")
    fake = Fake()
    assert cache_target(fake) != cache_target(fake)


async def test_a_client_that_was_told_of_a_change_does_not_use_what_others_stored_before() -> None:
    store = InMemoryResponseCacheStore()
    other = Fake(page("old", more="two"))
    async with Client(other, cache=shared(store)) as client:
        await names(client, cursor="two")
    fake = Fake(saying("tools/list_changed", {"content": []}), page("new"))
    async with Client(fake, cache=shared(store)) as client:
        await client.call_tool("tool")
        assert await names(client, cursor="two") == ["new"]
        assert await names(client, cursor="two") == ["new"]
    assert len(fake.requests) == 2


async def test_a_known_server_is_not_asked_for_its_description_again() -> None:
    store, asked = InMemoryResponseCacheStore(), list[Any]()

    def discovered(request: Any, notify: Any) -> Any:
        asked.append(request)
        return {**DISCOVERED, "ttlMs": 5000, "instructions": "Ask."}

    for mode in ("auto", "auto", "2026-07-28"):
        async with Client(Fake(page("tool"), discovered=discovered), mode=mode, cache=shared(store)) as client:
            assert client.instructions == "Ask."
            assert client.protocol_version == "2026-07-28"
    assert len(asked) == 2  # a client that requires a revision asks


async def test_a_description_without_a_version_that_this_client_supports_is_not_used() -> None:
    store = InMemoryResponseCacheStore()
    async with Client(Fake(page("tool"), discovered={**DISCOVERED, "ttlMs": 5000}), cache=shared(store)):
        pass
    ((key, (entry, _)),) = store._entries.items()  # pyright: ignore[reportPrivateUsage]
    entry.value.supported_versions = ["2099-01-01"]
    asked: list[Any] = []

    def discovered(request: Any, notify: Any) -> Any:
        asked.append(request)
        return DISCOVERED

    async with Client(Fake(page("tool"), discovered=discovered), cache=shared(store)):
        assert len(asked) == 1
    assert key.method == "server/discover"


class Broken:
    async def get(self, key: CacheKey) -> CacheEntry | None:
        raise OSError("the disk is full")

    async def set(self, key: CacheKey, entry: CacheEntry) -> None:
        raise OSError("the disk is full")

    async def delete(self, key: CacheKey) -> None:
        raise OSError("the disk is full")

    async def clear(self) -> None:
        raise OSError("the disk is full")


async def test_a_store_that_fails_is_logged_and_the_server_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "bespeak.client")
    fake = Fake(page("tool"))
    async with Client(fake, cache=shared(Broken())) as client:
        assert await names(client) == ["tool"]
    assert [record.getMessage() for record in caplog.records] == [
        "The cache store failed. The result is requested from the server.",
        "The cache store failed. A result that has changed may still be cached.",
        "The cache store failed. The result is requested from the server.",
        "The cache store failed. The result is not cached.",
    ]


class Wrong(InMemoryResponseCacheStore):
    def __init__(self, entry: CacheEntry) -> None:
        super().__init__()
        self._entry = entry

    async def get(self, key: CacheKey) -> CacheEntry | None:
        return self._entry


@pytest.mark.parametrize("entry", [CacheEntry({}, "private", 1e12), CacheEntry(None, "private", None)])
async def test_an_entry_of_the_wrong_shape_is_not_used(entry: CacheEntry) -> None:
    fake = Fake(page("tool"))
    async with Client(fake, cache=shared(Wrong(entry))) as client:
        assert await names(client) == ["tool"]


class ChangesMeanwhile(InMemoryResponseCacheStore):
    cache: ResponseCache

    async def set(self, key: CacheKey, entry: CacheEntry) -> None:
        await self.cache.changed("notifications/tools/list_changed", {})
        await super().set(key, entry)


async def test_a_result_that_changed_while_it_was_being_stored_is_deleted() -> None:
    store = ChangesMeanwhile()
    cache = store.cache = ResponseCache(shared(store), "shop", lambda: "2026-07-28")
    place = cache.place("tools/list", {})
    await cache.put(place, ListToolsResult(tools=[], ttl_ms=5000))
    assert await store.get(place.private) is None


async def test_pages_that_could_not_be_dropped_are_not_cached() -> None:
    store = InMemoryResponseCacheStore(max_entries=0)
    cache = ResponseCache(shared(store), "shop", lambda: "2026-07-28")
    for number in range(MOST_PAGES + 1):
        await cache.put(cache.place("tools/list", {"cursor": str(number)}), ListToolsResult(tools=[], ttl_ms=5000))
    last = cache.place("tools/list", {"cursor": str(MOST_PAGES)})
    assert await store.get(last.private) is None


# The settings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"store": InMemoryResponseCacheStore()},
            "a shared cache store needs partition=: it keeps the results of different callers apart",
        ),
        ({"target_id": ""}, "target_id cannot be empty"),
        ({"default_ttl_ms": -1}, "default_ttl_ms cannot be negative"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        CacheConfig(**settings)
