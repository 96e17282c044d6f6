"""A connection to a Redis server: one for each event loop, with bounded waits, and errors that do not show its password."""

import asyncio
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from logging import getLogger
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

from bespeak.state.forks import OfOneProcess, leave_to_parent
from bespeak.state.stores.store import BadStore, StoreUnavailable

logger = getLogger("bespeak.state")

T = TypeVar("T")

WAIT_SECONDS = 5.0
"""How long an operation may take, second tries included."""
TRIES = 3
"""How often an operation is tried whose connection broke. All of them can be repeated."""
_OUR_OPTIONS = ("decode_responses", "encoding", "encoding_errors", "socket_timeout", "socket_connect_timeout", "retry")
"""Options of the redis package that a URL may not change: replies would be misread, or waiting for mail would fail."""


class OutOfMemory(StoreUnavailable):
    """Redis has no memory left for what is to be added."""


class _Client(Protocol):
    """What is used of a client of the redis package, which has no complete types."""

    def ping(self) -> Awaitable[Any]: ...
    def info(self, section: str) -> Awaitable[dict[str, Any]]: ...
    def execute_command(self, *words: Any) -> Awaitable[Any]: ...
    def register_script(self, script: str) -> Any: ...
    def aclose(self) -> Awaitable[None]: ...


@dataclass(slots=True)
class _InLoop:
    client: _Client
    users: int = 0


class RedisConnection(OfOneProcess):
    """The connections of one server to Redis. A forked process makes its own."""

    def __init__(self, url: str, server: str) -> None:
        """Raises `BadStore` for a URL that cannot be used."""
        if find_spec("redis") is None:
            raise ImportError(f"a store at {redacted(url)} needs the redis package: pip install 'bespeak[redis]'")
        _check(url)
        self._url = url
        self.prefix = f"bespeak:{{{quote(server, safe='')}}}:"
        """Comes before all keys of this server. The braces keep them together in a cluster."""
        self._loops: dict[asyncio.AbstractEventLoop, _InLoop] = {}
        self._lock = threading.Lock()
        super().__init__()

    def __str__(self) -> str:
        return f"the store {redacted(self._url)}"

    def begin_anew(self) -> None:
        leave_to_parent(self._loops)
        self._loops, self._lock = {}, threading.Lock()

    async def start(self) -> None:
        """Connect, and check that Redis never drops keys to make room. Raises `StoreUnavailable`."""
        here = self._here()
        try:
            await self._bounded(here.client.ping())
            await self._check_policy(here.client)
        except BaseException:
            if not here.users:
                await self._drop()
            raise
        here.users += 1

    async def close(self) -> None:
        """Disconnect, when the last user in this event loop has left."""
        here = self._loops.get(asyncio.get_running_loop())
        if here is not None:
            here.users -= 1
            if here.users <= 0:
                await self._drop()

    async def _drop(self) -> None:
        with self._lock:
            here = self._loops.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.client.aclose()

    async def run(self, script: str, *values: Any) -> Any:
        """Run a script with the prefix as its key, and return its result. Raises `StoreUnavailable`."""
        return await self._bounded(self._here().client.register_script(script)(keys=[self.prefix], args=values))

    async def command(self, *words: Any) -> Any:
        """Run one command. Raises `StoreUnavailable`."""
        return await self._bounded(self._here().client.execute_command(*words))

    def _here(self) -> _InLoop:
        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            with self._lock:
                for closed in [other for other in self._loops if other.is_closed()]:
                    del self._loops[closed]
                here = self._loops[loop] = _InLoop(_connect(self._url))
        return here

    async def _bounded(self, work: Awaitable[T]) -> T:
        from redis.exceptions import OutOfMemoryError, RedisError

        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return await work
        except OutOfMemoryError:
            raise OutOfMemory(f"{self} has no memory left") from None
        except TimeoutError:
            raise StoreUnavailable(f"{self} did not answer within {WAIT_SECONDS:g} s") from None
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"{self} cannot be used: {type(error).__name__}: {error}") from error

    async def _check_policy(self, client: _Client) -> None:
        from redis.exceptions import ResponseError

        try:
            info = await self._bounded(client.info("memory"))
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, ResponseError):
                raise
            info = {}
        policy = info.get("maxmemory_policy")
        if policy is None:
            logger.warning(
                "%s does not say its maxmemory-policy; make sure that it is noeviction, or a spent approval could be forgotten",
                self,
            )
        elif policy != "noeviction":
            raise StoreUnavailable(
                f"{self} has the maxmemory-policy {policy}: it may drop a spent approval to make room, and the approval could be "
                "spent again. Set maxmemory-policy to noeviction"
            )


def _check(url: str) -> None:
    """Raises `BadStore` for a URL that cannot be used. Its password is not in the message."""
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError:
        raise BadStore(
            "the port in the URL of a Redis store is not a number; special characters in a password must be quoted, as in %2F for /"
        ) from None
    for name, _ in parse_qsl(parts.query):
        if name in _OUR_OPTIONS:
            raise BadStore(f"the option {name} of a Redis store cannot be changed")
    from redis.exceptions import RedisError

    try:
        _connect(url).connection_pool.make_connection()
    except (RedisError, TypeError, ValueError) as error:
        raise BadStore(f"the options of {redacted(url)} cannot be used: {error}") from None


def _connect(url: str) -> Any:
    """Return a client for a URL. It connects when it is first used."""
    redis: Any = import_module("redis.asyncio")
    retry: Any = import_module("redis.asyncio.retry")
    backoff: Any = import_module("redis.backoff")
    return redis.Redis.from_url(
        url,
        socket_timeout=WAIT_SECONDS,
        socket_connect_timeout=WAIT_SECONDS,
        retry=retry.Retry(backoff.ExponentialBackoff(cap=0.5, base=0.05), TRIES - 1),
        decode_responses=False,
    )


def redacted(url: str) -> str:
    """Return a URL without user, password and options."""
    parts = urlsplit(url)
    if "@" in parts.path + parts.query + parts.fragment:  # a password that is not quoted may end anywhere
        return f"{parts.scheme}://..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
