"""The Redis store: its keys and their expiry, its settings, servers that stop or have no memory left, and its own clock."""

import asyncio
import gc
import logging
import tempfile
import time
from collections.abc import AsyncGenerator
from importlib import import_module
from pathlib import Path

import pytest

from bespeak.state.stores import redis_connection
from bespeak.state.stores.redis import RedisStore
from bespeak.state.stores.redis_connection import redacted
from bespeak.state.stores.session_store import SessionLimits
from bespeak.state.stores.store import ClaimLimits, Forgotten, ShareTaken, StoreFull, StoreUnavailable
from tests.state.stores.claiming import (
    LEASE,
    KnownRedisStore,
    Redis,
    claim,
    done,
    entry,
    found,
    is_running,
    purge,
    read,
)
from tests.state.stores.redis_servers import RedisServer, client, keys_of, own_server

pytestmark = pytest.mark.timing
SECONDS = 20
LIMITS = SessionLimits(most=100, idle_seconds=1000.0, recent_seconds=100.0, pressure=2, share=10)


@pytest.fixture
async def kind(redis_url: str) -> AsyncGenerator[Redis]:
    kind = Redis(redis_url)
    yield kind
    await kind.close()


@pytest.fixture
async def own(own_redis: RedisServer) -> AsyncGenerator[RedisStore]:
    """A store at a server of its own."""
    store = KnownRedisStore(own_redis.url)
    await store.start()
    yield store
    await store.close()


# Keys


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("shop", "shop"), ("the {shop}: 50%/50%", "the%20%7Bshop%7D%3A%2050%25%2F50%25"), ("é", "%C3%A9")],
)
async def test_all_keys_begin_with_the_name_of_the_server(own_redis: RedisServer, name: str, quoted: str) -> None:
    store = KnownRedisStore(own_redis.url, server=name)
    await done(store, "call", holder="somebody")
    await _use_sessions(store)
    await store.close()
    keys = keys_of(own_redis.url, "")
    assert keys == keys_of(own_redis.url, f"bespeak:{{{quoted}}}:")
    assert len(keys) > 5
    assert not [key for key in keys if "somebody" in key]


async def _use_sessions(store: RedisStore) -> None:
    sessions = store.sessions
    await sessions.beat("w1", listening=True)
    await sessions.add_session(b"one", b"record", "somebody", LIMITS)
    await sessions.add_session(b"two", b"record", "somebody", LIMITS)
    await sessions.use_session(b"one", "w1", ["1"], used=True, idle_seconds=1000.0)
    await sessions.open_question(b"one", "question", "w1")
    await sessions.answer_question(b"one", "question", b"answer")
    await sessions.send(["w1"], b"mail")


async def test_every_key_expires_though_nobody_comes_back(kind: Redis) -> None:
    store = KnownRedisStore(kind.url, server=kind.server)
    await store.check_room(None, 0.0)
    await done(store, "old", claimed=5.0, kept_until=50.0)
    await done(store, "at its deadline", kept_until=50.0, deadline=50.0)
    await purge(store, 100.0)
    await claim(store, "call", "dead", holder="somebody", issued=100.0, claimed=100.0)
    assert await store.take_over("call", "dead", entry(), LEASE)
    await store.renew("call", "me", LEASE)
    await store.finish("call", "me", b"result")
    await _use_sessions(store)
    await store.close()
    with client(kind.url) as redis:
        lasting = {key: redis.ttl(key) for key in keys_of(kind.url, kind.prefix)}
    assert {key.removeprefix(kind.prefix).partition(":")[0] for key in lasting} == {
        *("c", "due", "held", "dropped", "results", "bytes"),
        *("s", "unused", "used", "sholder", "sheld", "r", "rw", "q", "qw", "a", "w", "workers", "m"),
    }
    assert not [key for key, seconds in lasting.items() if seconds <= 0]


async def test_two_names_have_their_own_claims_and_limits(own_redis: RedisServer) -> None:
    limits = ClaimLimits(max_claims=2, pressure=0, share=0.5, max_result_bytes=6)
    one, other = (KnownRedisStore(own_redis.url, server=name, limits=limits) for name in ("one", "other"))
    for store in (one, other):
        await done(store, "call", holder="somebody")
        with pytest.raises(ShareTaken):
            await store.claim("another", entry(holder="somebody"), LEASE)
        await claim(store, "another")
        with pytest.raises(StoreFull):
            await store.claim("third", entry(), LEASE)
    assert (await found(one, "call")).result == (await found(other, "call")).result == b"result"
    await one.close()
    await other.close()


async def test_a_claim_whose_key_is_gone_cannot_be_made_again_once_its_time_is_over(kind: Redis) -> None:
    store = await kind.open()
    await done(store, "call", kept_until=100.0)
    _lose_claims(kind.url, kind.prefix)
    await purge(store, 500.0)
    with pytest.raises(Forgotten):
        await store.claim("call", entry(issued=160.0, claimed=170.0), LEASE)


@pytest.mark.parametrize("purged", [True, False])
async def test_results_whose_claims_are_gone_do_not_keep_new_results_out(own_redis: RedisServer, purged: bool) -> None:
    store = KnownRedisStore(own_redis.url, limits=ClaimLimits(max_result_bytes=10))
    await done(store, "old", b"12345678", kept_until=50.0)
    await done(store, "older", b"12", kept_until=50.0)
    _lose_claims(own_redis.url)
    if purged:
        await purge(store, 200.0)
    for call in ("new", "newer"):
        await done(store, call, b"12345678", issued=200.0, claimed=20.0)
    assert [(await found(store, call)).result for call in ("new", "newer")] == [None, b"12345678"]
    await store.close()


def _lose_claims(url: str, prefix: str = "bespeak:{bespeak}:") -> None:
    """What expiry does when the server was not used for weeks."""
    with client(url) as redis:
        redis.delete(*keys_of(url, f"{prefix}c:"))


async def test_bytes_without_any_result_are_counted_anew(own: RedisStore, own_redis: RedisServer) -> None:
    with client(own_redis.url) as redis:
        redis.set("bespeak:{bespeak}:bytes", 10**12)
    await done(own, "call")
    await done(own, "another")
    assert (await found(own, "another")).result == b"result"


# Time


async def test_a_lease_lapses_by_the_clock_of_redis(kind: Redis) -> None:
    store = await kind.open()
    await store.claim("call", entry("dead"), 0.05)
    async with asyncio.timeout(SECONDS):
        while (await found(store, "call")).lease_left > 0:  # noqa: ASYNC110 - only Redis knows
            await asyncio.sleep(0.01)
    assert await store.take_over("call", "dead", entry("alive"), LEASE)
    assert is_running(await read(store, "call"), "alive")


# Settings


async def test_a_server_that_drops_keys_is_refused(own_redis: RedisServer) -> None:
    with client(own_redis.url) as redis:
        redis.config_set("maxmemory-policy", "allkeys-lru")
    store = KnownRedisStore(own_redis.url)
    with pytest.raises(StoreUnavailable) as refused:
        await store.start()
    assert str(refused.value) == (
        f"the store {own_redis.url} has the maxmemory-policy allkeys-lru: it may drop a spent approval to make room, and the "
        "approval could be spent again. Set maxmemory-policy to noeviction"
    )


async def test_a_server_that_does_not_tell_its_policy_is_only_a_warning(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with client(own_redis.url) as redis:
        redis.execute_command("ACL", "SETUSER", "weak", "on", ">secret", "~*", "+@all", "-info")
    store = KnownRedisStore(own_redis.url.replace("//", "//weak:secret@"))
    await store.start()
    await claim(store, "call")
    await store.close()
    text = (
        f"the store {own_redis.url} does not say its maxmemory-policy; make sure that it is noeviction, or a spent approval could "
        "be forgotten"
    )
    assert [(record.levelno, record.message) for record in caplog.records] == [(logging.WARNING, text)]


@pytest.mark.long
async def test_a_wrong_password_is_unavailable_and_not_shown(own_redis: RedisServer) -> None:
    with client(own_redis.url) as redis:
        redis.config_set("requirepass", "right")
        store = KnownRedisStore(own_redis.url.replace("//", "//:wrong-secret@"))
        with pytest.raises(StoreUnavailable, match="cannot be used: AuthenticationError") as refused:
            await store.start()
    assert "secret" not in str(refused.value)


async def test_a_store_may_be_at_a_socket() -> None:
    with tempfile.TemporaryDirectory(prefix="redis") as short:
        path = Path(short) / "socket"
        with own_server(Path(short), "--unixsocket", str(path)):
            store = KnownRedisStore(f"unix://{path}")
            await store.start()
            await claim(store, "call")
            assert str(store) == f"the store unix://{path}"
            await store.close()


def test_a_store_without_the_redis_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None: ...

    monkeypatch.setattr(redis_connection, "find_spec", nothing)
    with pytest.raises(ImportError) as missing:
        KnownRedisStore("redis://user:secret@cache:6379/0")
    text = "a store at redis://cache:6379/0 needs the redis package: pip install 'bespeak[redis]'"
    assert str(missing.value) == text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://cache:6379/0", "redis://cache:6379/0"),
        ("redis://user:secret@cache:6379/0?health_check_interval=3", "redis://cache:6379/0"),
        ("rediss://:sec%2Fret@cache", "rediss://cache"),
        ("redis://cache?password=secret", "redis://cache"),
        ("unix://user:secret@/run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("redis://user:s@ecret@cache/0", "redis://cache/0"),
        ("redis://user:sec/ret@cache/0", "redis://..."),
        ("redis://user:sec?ret@cache/0", "redis://..."),
        ("redis://user:sec#ret@cache/0", "redis://..."),
        ("redis://user:s@ec/ret@cache/0", "redis://..."),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert redacted(url) == shown


# Servers that cannot be reached


@pytest.mark.long
async def test_a_server_that_cannot_be_reached_is_unavailable_without_its_password() -> None:
    store = KnownRedisStore("redis://user:secret@127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable) as refused:
        await asyncio.wait_for(store.start(), SECONDS)
    text = str(refused.value)
    assert text.startswith("the store redis://127.0.0.1:1/0 cannot be used: ConnectionError: Error ")
    assert "secret" not in text
    assert "user" not in text


@pytest.mark.long
async def test_two_who_start_at_once_are_both_told_that_it_cannot_be_reached() -> None:
    store = KnownRedisStore("redis://127.0.0.1:1/0")
    outcomes = await asyncio.wait_for(asyncio.gather(store.start(), store.start(), return_exceptions=True), SECONDS)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 2
    await store.close()


async def test_a_server_that_stops_while_somebody_starts_is_unavailable_for_them_only(
    own: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis = import_module("redis.asyncio")

    async def gone(*_: object) -> None:
        raise redis.ConnectionError("it went away")

    monkeypatch.setattr(redis.Redis, "info", gone)
    with pytest.raises(StoreUnavailable, match="cannot be used: ConnectionError: it went away"):
        await own.start()
    await claim(own, "call")


@pytest.mark.long
async def test_a_server_that_stops_is_unavailable_until_it_is_back(own: RedisStore, own_redis: RedisServer) -> None:
    await claim(own, "before")
    own_redis.stop()
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="cannot be used: ConnectionError"):
            await asyncio.wait_for(own.claim("call", entry(), LEASE), SECONDS)
    own_redis.start()
    await claim(own, "call")
    assert is_running(await read(own, "call"))


@pytest.mark.long
async def test_a_server_that_does_not_answer_is_unavailable_after_a_bounded_time_until_it_does(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_connection, "WAIT_SECONDS", 0.2)
    store = KnownRedisStore(own_redis.url)
    await store.start()
    own_redis.freeze()
    for _ in range(2):
        before = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await store.read("call", 0.0, 1000.0, None)
        assert time.monotonic() - before < SECONDS
    own_redis.thaw()
    monkeypatch.undo()
    await claim(store, "call")
    await store.close()


@pytest.mark.long
async def test_a_wait_for_a_claim_ends_when_the_server_stops(own: RedisStore, own_redis: RedisServer) -> None:
    await claim(own, "call")
    waiting = asyncio.create_task(own.changed("call", 60))
    await asyncio.sleep(0)
    own_redis.stop()
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(waiting, SECONDS)


# No memory left


async def test_without_memory_new_claims_are_refused_and_what_is_there_goes_on(
    own: RedisStore, own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    sessions, full = own.sessions, f"the store {own_redis.url} has no memory left"
    await claim(own, "running", kept_until=40.0)
    await claim(own, "lapsed", "dead", kept_until=900.0)
    await claim(own, "old", holder="somebody", kept_until=50.0)
    await own.finish("old", "me", bytes(100))
    await sessions.add_session(b"one", b"record", "somebody", LIMITS)
    await sessions.use_session(b"one", "w1", ["1"], used=True, idle_seconds=None)
    _fill(own_redis)

    new = entry(issued=20.0, claimed=20.0)
    with pytest.raises(StoreFull, match=full):
        await own.claim("new", new, LEASE)
    with pytest.raises(StoreFull, match=full):
        await own.finish("running", "me", b"result")
    assert [record.message for record in caplog.records] == [full] * 2
    with pytest.raises(StoreUnavailable, match=full):
        await sessions.add_session(b"two", b"record", None, LIMITS)

    await own.renew("running", "me", 2 * LEASE)
    assert is_running(await read(own, "running"), left=2 * LEASE)
    assert await own.take_over("lapsed", "dead", entry("alive"), LEASE)
    await sessions.beat("w1", listening=False)
    await sessions.end_requests(b"one", "w1", ["1"])
    await sessions.end_idle_sessions(-60.0)
    assert await sessions.use_session(b"one", "w1", [], used=False, idle_seconds=None) is None
    await purge(own, 100.0)  # what may be dropped makes room

    with client(own_redis.url) as redis:
        redis.config_set("maxmemory", 0)
    await own.finish("running", "me", b"result")
    assert (await found(own, "running")).result == b"result"
    assert (await own.read("old", 200.0, 1000.0, None)) is None


def _fill(server: RedisServer) -> None:
    with client(server.url) as redis:
        redis.config_set("maxmemory", redis.info("memory")["used_memory"] // 2)


# Several event loops


async def test_connections_are_closed_when_the_last_user_of_a_loop_leaves(own_redis: RedisServer) -> None:
    store = KnownRedisStore(own_redis.url)
    await store.start()
    await store.start()
    await store.close()
    assert _connections(own_redis) == 1
    await store.close()
    assert _connections(own_redis) == 0
    await store.close()
    await claim(store, "call")
    assert _connections(own_redis) == 1
    await store.close()


def _connections(server: RedisServer) -> int:
    with client(server.url) as redis:
        return len(redis.client_list()) - 1


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.long
async def test_a_loop_that_ended_without_closing_the_store_disturbs_nobody(own_redis: RedisServer) -> None:
    store = KnownRedisStore(own_redis.url)
    await asyncio.to_thread(asyncio.run, store.start())
    await claim(store, "call")
    assert is_running(await read(store, "call"))
    await store.close()
    gc.collect()  # while warnings are ignored: what the loop left open is closed now
