"""Opening a store by its URL: `memory:`, `sqlite:/path/to/file` or `redis://host:port/0`."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import BadStore, ClaimLimits, Store

STORE_VARIABLE = "BESPEAK_STORE"
_FORMS = "memory:, sqlite:/path/to/file or redis://host:port/0"
_LIMITS: Mapping[str, type[int] | type[float]] = {
    "max_claims": int,
    "max_result_bytes": int,
    "question_limit": float,
    "pressure": float,
    "share": float,
}


def store_from_environment() -> str | None:
    """Return the URL in the environment; `None` if there is none."""
    return os.environ.get(STORE_VARIABLE, "").strip() or None


def open_store(url: str, server: str) -> Store:
    """Return the store at a URL, for one server. Nothing is connected yet. Raises `BadStore` for a URL that cannot be used.

    Limits may be given in its query, as in `sqlite:/var/lib/shop.db?max_claims=100000`. A SQLite store is created unless it says
    `create=no`, and with `durable=no` it may lose claims in a power failure.
    """
    parts = urlsplit(url, allow_fragments=False)  # a # may be part of a path
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    limits = _limits(query)
    if parts.scheme == "memory":
        _check_rest(query)
        return MemoryStore(**limits)
    if parts.scheme == "sqlite":
        from bespeak.state.stores.sqlite import SQLiteStore

        path = unquote(parts.path)
        if parts.netloc or not path or path.endswith("/") or path == ":memory:":
            raise BadStore("a SQLite store needs the path of a file, as in sqlite:/var/lib/shop.db")
        create, durable = _yes_or_no(query, "create"), _yes_or_no(query, "durable")
        _check_rest(query, "create", "durable")
        return SQLiteStore(Path(path), server=server, limits=ClaimLimits(**limits), create=create, durable=durable)
    if parts.scheme in ("redis", "rediss", "unix"):
        from bespeak.state.stores.redis import RedisStore

        # What is left in the query are options of the redis package.
        return RedisStore(parts._replace(query=urlencode(query)).geturl(), server=server, limits=ClaimLimits(**limits))
    secret = "@" in url  # it may be a URL with a password
    shown = f"{parts.scheme}:" if parts.scheme else "a URL without a scheme" if secret else repr(url)
    raise BadStore(f"{shown} is not a store; use {_FORMS}")


def check_store(url: str) -> None:
    """Connect to a shared store, and create it if it is a file that does not exist.

    Raises `StoreUnavailable`, or `BadStore` for a URL that cannot be used or a store of one process.
    """
    store = open_store(url, "bespeak")
    if not store.shared:
        raise BadStore(
            "memory: keeps approvals in one process; several workers need sqlite:/path/to/file or redis://host:port/0"
        )

    async def connect() -> None:
        await store.start()
        await store.close()

    asyncio.run(connect())


def _limits(query: dict[str, str]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for name, kind in _LIMITS.items():
        if name in query:
            try:
                limits[name] = kind(query.pop(name))
            except ValueError:
                raise BadStore(f"the option {name} of a store must be a number") from None
    return limits


def _yes_or_no(query: dict[str, str], name: str) -> bool:
    said = query.pop(name, "yes")
    if said not in ("yes", "no"):
        raise BadStore(f"the option {name} of a store must be yes or no")
    return said == "yes"


def _check_rest(query: Mapping[str, str], *others: str) -> None:
    if query:
        raise BadStore(f"this store has no option {next(iter(query))!r}; it has {', '.join((*_LIMITS, *others))}")
