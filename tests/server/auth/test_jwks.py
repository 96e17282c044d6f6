"""The keys of an issuer: which are used, and when they are loaded again."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import OctKey, RSAKey

from bespeak.server.auth import JWTVerifier, TokensUnverifiable
from bespeak.server.auth.jwks import KEEP_SECONDS, MOST_BYTES, PAUSE_SECONDS, KeySet, LoadedKeys, key_source
from bespeak.transports.http.asgi import Receive, Scope, Send, respond
from bespeak.transports.interfaces import MissingExtra
from tests.server.auth.issuers import Issuer, settings
from tests.wires import Listening

OLD, NEW = Issuer("old"), Issuer("new")


class Shelf:
    """A document that is loaded, with a clock that the test puts forward."""

    def __init__(self, *issuers: Issuer) -> None:
        self.content: bytes | Exception = json.dumps({"keys": [issuer.jwk for issuer in issuers]}).encode()
        self.loads = 0
        self.gate: asyncio.Event | None = None
        self.now = 1000.0
        self.keys = LoadedKeys(self._load, "https://login.example.com/keys", lambda: self.now)

    def put(self, *issuers: Issuer) -> None:
        self.content = json.dumps({"keys": [issuer.jwk for issuer in issuers]}).encode()

    async def _load(self) -> bytes:
        self.loads += 1
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    async def has(self, issuer: Issuer) -> bool:
        return await self.keys.find(issuer.kid, "ES256") is not None


# One set


def test_a_key_is_found_by_its_id() -> None:
    keys = KeySet({"keys": [OLD.jwk, NEW.jwk]})
    found = keys.get("new", "ES256")
    assert found is not None
    assert found.kid == "new"
    assert keys.get("other", "ES256") is None


def test_without_an_id_the_only_key_that_fits_is_used() -> None:
    unnamed, rsa = Issuer(None), Issuer("rsa", RSAKey.generate_key(2048), "RS256")
    keys = KeySet({"keys": [unnamed.jwk, rsa.jwk]})
    assert keys.get(None, "ES256") is not None
    assert keys.get(None, "ES384") is None
    assert KeySet({"keys": [OLD.jwk, NEW.jwk]}).get(None, "ES256") is None


@pytest.mark.parametrize(
    "more",
    [{"use": "enc"}, {"alg": "ES384"}, {"key_ops": ["encrypt"]}, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "made up"}],
)
def test_a_key_for_something_else_is_not_used(more: dict[str, Any]) -> None:
    keys = KeySet({"keys": [NEW.jwk, {**OLD.jwk, **more}]})
    assert keys.get("old", "ES256") is None
    assert keys.get("new", "ES256") is not None


def test_a_key_that_cannot_be_read_is_skipped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    broken = {"kty": "EC", "crv": "P-256", "kid": "old", "x": "secret-number"}
    assert KeySet({"keys": [broken, "text", NEW.jwk]}).get("new", "ES256") is not None
    assert caplog.messages == ["skipped a key of type EC that cannot be read"]


def test_a_short_rsa_key_is_not_used() -> None:
    long = Issuer("long", RSAKey.generate_key(2048), "RS256").jwk
    assert not KeySet({"keys": [NEW.jwk, {**long, "n": long["n"][:171]}]}).knows("long")
    assert not KeySet({"keys": [NEW.jwk, {**long, "n": 7}]}).knows("long")


SECRET_JWK = {"kty": "oct", "k": OctKey.generate_key(256).as_dict(private=True)["k"], "kid": "s"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "a JSON Web Key Set must be an object with a list 'keys' of at most 100 keys"),
        ({"keys": {}}, "a JSON Web Key Set must be an object with a list 'keys' of at most 100 keys"),
        ({"keys": [NEW.jwk] * 101}, "a JSON Web Key Set must be an object with a list 'keys' of at most 100 keys"),
        ({"keys": []}, "the JSON Web Key Set contains no public key that can verify tokens"),
        ({"keys": [SECRET_JWK]}, "the JSON Web Key Set contains no public key that can verify tokens"),
    ],
)
def test_a_set_without_usable_keys_is_an_error(content: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        JWTVerifier(settings(), content)


# Keys that are loaded


async def test_keys_are_loaded_when_they_are_first_needed_and_kept() -> None:
    shelf = Shelf(OLD)
    assert shelf.loads == 0
    assert all([await shelf.has(OLD) for _ in range(3)])
    assert shelf.loads == 1


async def test_keys_are_loaded_again_after_a_while() -> None:
    shelf = Shelf(OLD)
    assert await shelf.has(OLD)
    shelf.put(NEW)
    shelf.now += KEEP_SECONDS
    assert not await shelf.has(OLD)
    assert await shelf.has(NEW)
    assert shelf.loads == 2


async def test_an_unknown_key_is_looked_for_once_and_not_again_for_a_while() -> None:
    shelf = Shelf(OLD)
    assert await shelf.has(OLD)
    shelf.now += PAUSE_SECONDS
    shelf.put(OLD, NEW)
    assert await shelf.has(NEW)
    assert shelf.loads == 2
    assert not any([await shelf.has(Issuer(f"made up {number}", NEW.key)) for number in range(50)])
    assert shelf.loads == 2
    shelf.now += PAUSE_SECONDS
    assert not await shelf.has(Issuer("made up", NEW.key))
    assert shelf.loads == 3


async def test_a_token_without_an_id_does_not_cause_loading() -> None:
    shelf = Shelf(OLD, NEW)
    assert await shelf.keys.find(None, "ES256") is None
    shelf.now += PAUSE_SECONDS
    assert await shelf.keys.find(None, "ES256") is None
    assert shelf.loads == 1


async def test_requests_at_the_same_time_load_once() -> None:
    shelf = Shelf(OLD)
    shelf.gate = asyncio.Event()
    waiting = asyncio.gather(*(shelf.has(OLD) for _ in range(20)))
    await asyncio.sleep(0)
    shelf.gate.set()
    assert all(await waiting)
    assert shelf.loads == 1


async def test_while_keys_are_loaded_again_the_old_ones_serve() -> None:
    shelf = Shelf(OLD)
    assert await shelf.has(OLD)
    shelf.now += KEEP_SECONDS
    shelf.gate = asyncio.Event()
    loading = asyncio.ensure_future(shelf.has(OLD))
    await asyncio.sleep(0)
    assert await shelf.has(OLD)
    assert not loading.done()
    shelf.gate.set()
    assert await loading


FAULTS: list[tuple[Callable[[], bytes | Exception], str]] = [
    (lambda: ConnectionError("refused"), "the keys cannot be loaded from https://login.example.com/keys: refused"),
    (TimeoutError, "loading the keys from https://login.example.com/keys took more than 5 s"),
    (lambda: b"{", "the keys cannot be loaded from https://login.example.com/keys: the document is not valid JSON"),
    (
        lambda: b"[" * 100_000,
        "the keys cannot be loaded from https://login.example.com/keys: the document is not valid JSON",
    ),
    (lambda: b"[]", "the keys cannot be loaded from https://login.example.com/keys: the document is not a JSON object"),
    (lambda: b'{"keys": []}', "contains no public key that can verify tokens"),
]


@pytest.mark.parametrize(("fault", "logged"), FAULTS)
async def test_if_keys_cannot_be_loaded_old_ones_serve_for_a_while(
    fault: Callable[[], bytes | Exception], logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf(OLD)
    assert await shelf.has(OLD)
    shelf.content = fault()
    shelf.now += KEEP_SECONDS
    assert await shelf.has(OLD)
    assert caplog.messages[-1].endswith(logged)
    shelf.now += KEEP_SECONDS
    with pytest.raises(TokensUnverifiable):
        await shelf.has(OLD)


async def test_without_any_keys_tokens_cannot_be_verified_and_loading_is_not_tried_for_every_request() -> None:
    shelf = Shelf()
    shelf.content = ConnectionError("refused")
    for _ in range(5):
        with pytest.raises(TokensUnverifiable):
            await shelf.has(OLD)
    assert shelf.loads == 1
    shelf.put(OLD)
    shelf.now += PAUSE_SECONDS
    assert await shelf.has(OLD)


def test_keys_may_be_used_in_several_event_loops() -> None:
    shelf = Shelf(OLD)
    assert asyncio.run(shelf.has(OLD))
    shelf.now += KEEP_SECONDS
    assert asyncio.run(shelf.has(OLD))


# Where they come from


async def test_keys_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(OLD.jwks))
    assert await key_source(file).find("old", "ES256") is not None


@pytest.mark.parametrize("content", [None, b"{" + b" " * MOST_BYTES])
async def test_a_file_that_is_missing_or_too_large_is_logged(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TokensUnverifiable):
        await key_source(file).find("old", "ES256")
    assert f"the keys cannot be loaded from {file}: " in caplog.text


@pytest.mark.parametrize("url", ["http://login.example.com/keys", "ftp://x/keys", "keys.json", "", "file:///keys"])
def test_keys_are_fetched_over_https_only(url: str) -> None:
    with pytest.raises(ValueError, match=r"as a dict, a pathlib.Path to one, or its https URL"):
        key_source(url)


def test_without_httpx2_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    with pytest.raises(MissingExtra, match=r"needs httpx2: pip install 'bespeak\[auth\]'"):
        key_source("https://login.example.com/keys")


class KeyServer:
    """Serves a document over HTTP, as an issuer does."""

    def __init__(self, status: int = 200, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
        self._answer = status, body, *headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "no lifespan here"
        await respond(send, *self._answer)


async def test_keys_are_fetched_from_a_url() -> None:
    async with Listening(KeyServer(200, json.dumps(OLD.jwks).encode())) as server:
        assert await key_source(server.url).find("old", "ES256") is not None


@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        (KeyServer(500), "HTTP status 500"),
        (KeyServer(302, b"", (b"location", b"/elsewhere")), "HTTP status 302"),
        (KeyServer(200, b" " * (MOST_BYTES + 1)), f"the document has more than {MOST_BYTES} bytes"),
    ],
)
async def test_what_is_not_a_document_of_a_url_is_refused(
    answer: KeyServer, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with Listening(answer) as server:
            with pytest.raises(TokensUnverifiable):
                await key_source(server.url + "?token=hidden").find("old", "ES256")
        assert caplog.messages[-1] == f"the keys cannot be loaded from {server.url}: {logged}"


async def test_an_issuer_that_does_not_listen_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with Listening(KeyServer()) as server:
        url = server.url
    with pytest.raises(TokensUnverifiable):
        await key_source(url).find("old", "ES256")
    assert caplog.messages[-1] == f"the keys cannot be loaded from {url}: ConnectError of the HTTP client"
