"""A line to a live server during a hostile test: the server may be restarted, and the caller may be another."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from bespeak.conversation.connection import Connection, Push, Received, Scripts, nothing
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.servers import Unreachable
from bespeak.testing.altered_requests import NotReached


@dataclass(slots=True)
class LiveLine:
    """A line whose connection can be replaced between two requests."""

    connection: Connection
    pool: Pool
    wanted: Callable[[], Wanted]
    """Returns the connection that the test needs. Each call chooses another free port."""

    @property
    def version(self) -> str:
        return self.connection.version

    @property
    def notifications(self) -> list[dict[str, Any]]:
        return self.connection.notifications

    async def send(self, method: str, params: dict[str, Any], push: Push, scripts: Scripts = nothing) -> Received:
        return await self.connection.send(method, params, push, scripts)

    def astray(self) -> list[Finding]:
        return self.connection.astray()

    async def settle(self) -> None:
        await self.connection.settle()

    # What an attack does

    async def restart(self) -> None:
        """Stop the server and start it again. Raises `NotReached`, and `Unreachable` if it does not start again."""
        wanted = self.wanted()
        if wanted.server.command is None:
            how = "by its URL" if wanted.server.url is not None else "in this process"
            raise NotReached(f"{wanted.name} is reached {how}, and only a server with a command can be restarted")
        await self.pool.drop(wanted)
        try:
            self.connection = await self.pool.connection(wanted)
        except Unreachable as error:
            raise Unreachable(f"the server could not be started again: {error}") from None

    @asynccontextmanager
    async def other_caller(self, headers: Mapping[str, str]) -> AsyncGenerator[None]:
        """Send requests over another connection, with other headers, to the same server. Raises `NotReached`."""
        opened = self.pool.opened(self.wanted())
        if opened.server.url is None:
            raise NotReached(f"{opened.name} is not reached by a URL, so there is no other caller")
        literal = {name: value.replace("${", "$${") for name, value in headers.items()}
        other = self.pool.beside(opened, opened.mode)
        other = replace(other, server=replace(other.server, headers={**opened.server.headers, **literal}))
        try:
            theirs = await self.pool.connection(other)
        except Unreachable as error:
            raise NotReached(f"the other caller cannot connect: {error}") from None
        ours, self.connection = self.connection, theirs
        try:
            yield
        finally:
            self.connection = ours
            await self.pool.drop(other)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
