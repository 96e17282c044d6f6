"""The public keys of an issuer: a JSON Web Key Set from a mapping, a file or a URL, kept for a while and loaded again if needed."""

import asyncio
import importlib.util
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from bespeak.protocol.origins import is_loopback
from bespeak.server.auth.access_tokens import TokensUnverifiable
from bespeak.transports.interfaces import MissingExtra

if TYPE_CHECKING:
    from joserfc.jwk import Key

logger = logging.getLogger("bespeak.auth")

LOAD_SECONDS = 5.0
"""How long loading may take, in all."""
KEEP_SECONDS = 600.0
"""How long keys are used before they are loaded again. If that fails, they are used for as long once more."""
PAUSE_SECONDS = 10.0
"""At least this long passes between two attempts, however many tokens name unknown keys."""
MOST_BYTES = 256 * 1024
MOST_KEYS = 100
SHORTEST_MODULUS = 342
"""Characters of an RSA modulus of 2048 bits."""

KEY_TYPES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "Ed25519": ("OKP", "Ed25519"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The type and the curve of the key that an algorithm needs."""

Load = Callable[[], Awaitable[bytes]]


class KeySource(Protocol):
    """Where the keys come from that verify tokens."""

    async def find(self, kid: str | None, algorithm: str) -> "Key | None":
        """The key that a token names, if it fits the algorithm. Raises `TokensUnverifiable` if the keys cannot be loaded."""
        ...


class KeySet:
    """Public keys that do not change."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        """Read a JSON Web Key Set. Raises `ValueError` if it is not one, or has no usable key."""
        keys: Any = content.get("keys")
        if not isinstance(keys, list) or len(cast("list[Any]", keys)) > MOST_KEYS:
            raise ValueError(f"a JSON Web Key Set must be an object with a list 'keys' of at most {MOST_KEYS} keys")
        read = map(_read_key, cast("list[Any]", keys))
        self._keys = [key for key in read if key is not None]
        if not self._keys:
            raise ValueError("the JSON Web Key Set contains no public key that can verify tokens")

    async def find(self, kid: str | None, algorithm: str) -> "Key | None":
        return self.get(kid, algorithm)

    def get(self, kid: str | None, algorithm: str) -> "Key | None":
        """The key with this id; without an id, the only key that fits. `None` if there is none."""
        fitting = [key for key in self._keys if _fits(key, algorithm) and (kid is None or key.kid == kid)]
        return fitting[0] if len(fitting) == 1 or (fitting and kid is not None) else None

    def knows(self, kid: str) -> bool:
        return any(key.kid == kid for key in self._keys)


def _read_key(data: Any) -> "Key | None":
    """One key of a set; `None` for a key that is not for verifying signatures, or that cannot be used."""
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    if not isinstance(data, dict):
        return None
    key = cast("dict[str, Any]", data)
    kind = key.get("kty")
    if kind not in ("RSA", "EC", "OKP") or key.get("use", "sig") != "sig":
        return None  # a secret has no place in a set of public keys
    if kind == "RSA" and (not isinstance(key.get("n"), str) or len(key["n"]) < SHORTEST_MODULUS):
        return None
    try:
        return import_key(key)
    except (JoseError, ValueError, TypeError, KeyError):
        logger.warning("skipped a key of type %s that cannot be read", kind)
        return None


def _fits(key: "Key", algorithm: str) -> bool:
    kind, curve = KEY_TYPES[algorithm]
    return (
        key.key_type == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("alg", algorithm) == algorithm
        and "verify" in (key.get("key_ops") or ["verify"])
    )


class LoadedKeys:
    """Public keys that are loaded when they are first needed, and again after a while or when a token names an unknown key."""

    def __init__(self, load: Load, where: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._where = where
        self._clock = clock
        self._keys: KeySet | None = None
        self._loaded = self._tried = float("-inf")
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def find(self, kid: str | None, algorithm: str) -> "Key | None":
        keys = self._keys
        # While somebody else loads them again, the old ones serve.
        if keys is None or (self._age() >= KEEP_SECONDS and not self._lock.locked()):
            keys = await self._load_again()
        if kid is not None and not keys.knows(kid):
            keys = await self._load_again()
        return keys.get(kid, algorithm)

    def _age(self) -> float:
        return self._clock() - self._loaded

    @property
    def _lock(self) -> asyncio.Lock:
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _load_again(self) -> KeySet:
        """The keys, loaded now unless that was tried a moment ago. Raises `TokensUnverifiable` if there are none."""
        async with self._lock:
            if self._clock() - self._tried >= PAUSE_SECONDS:
                self._tried = self._clock()
                try:
                    async with asyncio.timeout(LOAD_SECONDS):
                        self._keys = read_key_set(await self._load())
                    self._loaded = self._clock()
                except TimeoutError:
                    logger.warning("loading the keys from %s took more than %g s", self._where, LOAD_SECONDS)
                except (OSError, ValueError) as error:
                    logger.warning("the keys cannot be loaded from %s: %s", self._where, error)
        if self._keys is None or self._age() >= 2 * KEEP_SECONDS:
            raise TokensUnverifiable
        return self._keys


def read_key_set(raw: bytes) -> KeySet:
    """The keys in a document. Raises `ValueError`."""
    try:
        content: Any = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("the document is not valid JSON") from None
    if not isinstance(content, dict):
        raise ValueError("the document is not a JSON object")
    return KeySet(cast("dict[str, Any]", content))


def key_source(keys: Mapping[str, Any] | Path | str) -> KeySource:
    """The keys of an issuer: the key set itself, the path of a file, or a URL. Raises `ValueError` or `MissingExtra`."""
    if isinstance(keys, Mapping):
        return KeySet(keys)
    if isinstance(keys, Path):
        return LoadedKeys(lambda: asyncio.to_thread(_read_file, keys), str(keys))
    parts = urlsplit(keys)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise ValueError("keys must be a JSON Web Key Set as a dict, a pathlib.Path to one, or its https URL")
    if importlib.util.find_spec("httpx2") is None:
        raise MissingExtra("loading keys from a URL needs httpx2: pip install 'bespeak[auth]'")
    return LoadedKeys(lambda: _fetch(keys), f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return _bounded(file.read(MOST_BYTES + 1))


async def _fetch(url: str) -> bytes:
    """The document at a URL. Raises `OSError` or `ValueError`. Redirects are not followed."""
    import httpx2

    body = b""
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    try:
        async with (
            httpx2.AsyncClient(timeout=LOAD_SECONDS) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code != 200:
                raise OSError(f"HTTP status {response.status_code}")
            async for piece in response.aiter_raw():
                body = _bounded(body + piece)
    except httpx2.HTTPError as error:
        raise OSError(f"{type(error).__name__} of the HTTP client") from None
    return body


def _bounded(raw: bytes) -> bytes:
    if len(raw) > MOST_BYTES:
        raise ValueError(f"the document has more than {MOST_BYTES} bytes")
    return raw
