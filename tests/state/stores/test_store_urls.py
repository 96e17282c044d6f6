"""Stores by their URLs: every form, its options, and what is said about a URL that cannot be used."""

import re
from pathlib import Path
from uuid import uuid4

import pytest

from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.redis import RedisStore
from bespeak.state.stores.sqlite import SQLiteStore
from bespeak.state.stores.store import Store, StoreFull, StoreUnavailable
from bespeak.state.stores.store_urls import STORE_VARIABLE, open_store, store_from_environment
from tests.state.stores.claiming import LEASE, claim, entry
from tests.state.stores.redis_servers import client, keys_of


@pytest.mark.parametrize(
    ("url", "kind", "shown"),
    [
        ("memory:", MemoryStore, None),
        ("memory:?max_claims=5&max_result_bytes=0&question_limit=1&pressure=0.2&share=0.5", MemoryStore, None),
        ("sqlite:/var/lib/shop.db", SQLiteStore, "the store sqlite:/var/lib/shop.db"),
        ("sqlite:///var/lib/shop.db", SQLiteStore, "the store sqlite:/var/lib/shop.db"),
        ("sqlite:/var/my%20shop%3F.db?create=no&durable=no", SQLiteStore, "the store sqlite:/var/my shop?.db"),
        ("sqlite:/var/shop#2.db", SQLiteStore, "the store sqlite:/var/shop#2.db"),
        ("redis://cache:6379/0", RedisStore, "the store redis://cache:6379/0"),
        ("redis://user:secret@cache?max_claims=5", RedisStore, "the store redis://cache"),
        ("rediss://cache/2?ssl_cert_reqs=none&max_claims=5", RedisStore, "the store rediss://cache/2"),
        ("unix:///run/redis.sock?db=1", RedisStore, "the store unix:///run/redis.sock"),
        ("REDIS://cache", RedisStore, "the store redis://cache"),
    ],
)
def test_a_url_names_a_store(url: str, kind: type[Store], shown: str | None) -> None:
    store = open_store(url, "shop")
    assert isinstance(store, kind)
    assert shown is None or str(store) == shown


def test_a_file_without_a_directory_is_in_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:shop.db", "shop")
    monkeypatch.undo()
    assert str(store) == f"the store sqlite:{tmp_path}/shop.db"


async def test_the_limits_of_a_url_hold(tmp_path: Path, redis_url: str) -> None:
    name = str(uuid4())
    for url in ("memory:", f"sqlite:{tmp_path}/shop.db", redis_url):
        store = open_store(f"{url}{'&' if '?' in url else '?'}max_claims=1", name)
        await store.start()
        incarnation = await store.check_room(None, 0.0)
        await claim(store, "one", incarnation=incarnation)
        with pytest.raises(StoreFull):
            await store.claim("two", entry(incarnation=incarnation), LEASE)
        await store.close()
    with client(redis_url) as redis:
        redis.delete(*keys_of(redis_url, f"bespeak:{{{name}}}:"))


async def test_a_file_is_created_unless_the_url_forbids_it(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/shop.db"
    with pytest.raises(StoreUnavailable, match="does not exist"):
        await open_store(f"{url}?create=no", "shop").start()
    for options in ("?create=yes&durable=no", "?create=no"):
        store = open_store(url + options, "shop")
        await store.start()
        await store.close()


FORMS = "use memory:, sqlite:/path/to/file or redis://host:port/0"
NO_FILE = "a SQLite store needs the path of a file, as in sqlite:/var/lib/shop.db"
LIMITS = "max_claims, max_result_bytes, question_limit, pressure, share"
NO_PORT = "the port in the URL of a Redis store is not a number; special characters in a password must be quoted, as in %2F for /"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", f"'' is not a store; {FORMS}"),
        ("shop.db", f"'shop.db' is not a store; {FORMS}"),
        (":secret@db/shop", f"a URL without a scheme is not a store; {FORMS}"),
        ("postgres://user:secret@db/shop", f"postgres: is not a store; {FORMS}"),
        ("sqlite:", NO_FILE),
        ("sqlite::memory:", NO_FILE),
        ("sqlite:/var/lib/", NO_FILE),
        ("sqlite://shop.db", NO_FILE),
        ("memory:?max_claims=many", "the option max_claims of a store must be a number"),
        ("sqlite:/shop.db?share=", "the option share of a store must be a number"),
        ("redis://cache?max_claims=0", "max_claims must be at least 1"),
        ("sqlite:/shop.db?create=maybe", "the option create of a store must be yes or no"),
        ("sqlite:/shop.db?durable=", "the option durable of a store must be yes or no"),
        ("memory:?create=no", f"this store has no option 'create'; it has {LIMITS}"),
        ("sqlite:/shop.db?mode=ro", f"this store has no option 'mode'; it has {LIMITS}, create, durable"),
        ("redis://cache:port", NO_PORT),
        ("redis://user:sec/ret@cache", NO_PORT),
        ("redis://cache?decode_responses=yes", "the option decode_responses of a Redis store cannot be changed"),
        ("redis://cache?socket_timeout=1", "the option socket_timeout of a Redis store cannot be changed"),
        (
            "redis://user:secret@cache?db=first",
            "the options of redis://cache cannot be used: Invalid value for 'db' in connection URL.",
        ),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        open_store(url, "shop")


def test_an_option_that_redis_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the options of redis://cache cannot be used: .*max_claim") as refused:
        open_store("redis://user:secret@cache?max_claim=5", "shop")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("value", "url"), [(None, None), ("", None), (" memory: ", "memory:")])
def test_a_store_may_be_named_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str | None, url: str | None
) -> None:
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(STORE_VARIABLE, value)
    assert store_from_environment() == url
