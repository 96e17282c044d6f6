"""The store of a server: which one it is, opening it with the server's lifespan, and sharing sessions through it."""

import asyncio
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from bespeak.server.calls.call import Calls
from bespeak.server.features.subscriptions import Changes
from bespeak.state.seal import RequestStateSecurity
from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.session_store import SessionStore
from bespeak.state.stores.store import Store, StoreUnavailable
from bespeak.state.stores.store_urls import open_store, store_from_environment
from bespeak.transports.interfaces import CannotStart

if TYPE_CHECKING:
    from bespeak.state.sessions import SessionWorker

NO_STORE = (
    "State keys are configured, but no shared store is: approvals are remembered in this process only. After a restart, or on "
    "another worker, the same approval could be spent again. Pass a shared store: MCPServer(store='sqlite:/path/to/file'), "
    "or set BESPEAK_STORE"
)
NO_KEYS = (
    "A shared store is configured, but state keys are not: each process makes its own, and cannot continue what another began. "
    "Set BESPEAK_STATE_KEYS; `bespeak keys new` makes a key"
)


def choose_store(store: Store | str | None, server: str, security: RequestStateSecurity) -> Store:
    """Return the store of a server: the given one, or the one in the environment, or the memory of this process.

    Warns if it does not fit the state keys. Raises `ValueError` for a URL that cannot be used.
    """
    url = store if isinstance(store, str) else store_from_environment() if store is None else None
    if url is None:
        if store is None and security.shared:
            warnings.warn(NO_STORE, RuntimeWarning, stacklevel=3)
        return cast("Store | None", store) or MemoryStore()
    opened = open_store(url, server)
    if opened.shared and not security.shared:
        warnings.warn(NO_KEYS, RuntimeWarning, stacklevel=3)
    return opened


class SharedStore:
    """A store that other processes use too, and the worker that each event loop is among them."""

    def __init__(self, store: Store, calls: Calls, changes: Changes) -> None:
        self._store = store
        self._calls = calls
        self._changes = changes
        self._workers: dict[asyncio.AbstractEventLoop, SessionWorker] = {}

    @property
    def worker(self) -> "SessionWorker | None":
        """The worker that the running event loop is; `None` while the server does not run in it."""
        return self._workers.get(asyncio.get_running_loop())

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Keep the store open while the block is. Raises `CannotStart` if it cannot be reached."""
        try:
            await self._store.start()
        except StoreUnavailable as error:
            raise CannotStart(str(error)) from None
        try:
            if self._store.sessions is None:
                yield
            else:
                async with self._working(self._store.sessions):
                    yield
            await self._calls.ledger.close()
        finally:
            await self._store.close()

    @asynccontextmanager
    async def _working(self, sessions: SessionStore) -> AsyncGenerator[None]:
        from bespeak.state.sessions import SessionWorker  # only servers with a shared store have sessions to share

        worker = SessionWorker(sessions, self._calls.seal, lambda: self._changes.wanted, self._changes.heard)
        loop = asyncio.get_running_loop()
        async with worker.running():
            self._workers[loop] = worker
            try:
                with self._changes.shared_with(worker):
                    yield
            finally:
                del self._workers[loop]
