"""A session of its own over HTTP, at a revision that has sessions: for probes that end it, or that do without the client."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic_core import to_json

from bespeak.conversation.rule_types import MARCH
from bespeak.protocol.headers import SESSION_HEADER
from bespeak.protocol.versions import is_modern
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.probes.probe_wire import ProbeWire, Reply

_PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
_BEGUN = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


@dataclass(slots=True)
class HttpSession:
    """One session of a server; its id is `None` if the server has no sessions."""

    wire: ProbeWire
    id: str | None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request in the session."""
        named = {} if self.id is None else {SESSION_HEADER: self.id}
        return {**self.wire.message_headers(), **named}

    async def ping(self, **headers: str) -> Reply:
        return await self.wire.http("POST", _PING, {**self.headers, **headers})

    async def get(self) -> Reply:
        return await self.wire.http("GET", b"", self.headers)

    async def end(self) -> Reply:
        """Ask the server to end the session."""
        reply = await self.wire.http("DELETE", b"", self.headers)
        if (reply.status or 0) < 300:
            self.id = None
        return reply


async def initialize(wire: ProbeWire, version: str, headers: Mapping[str, str]) -> Reply:
    """Send the first request of a session."""
    info = {"name": "bespeak-test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
    first = to_json({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    return await wire.http("POST", first, {**wire.given, **headers})


def begun(wire: ProbeWire, reply: Reply) -> HttpSession:
    """Return the session that a response to `initialize` began."""
    return HttpSession(wire, reply.headers.get(SESSION_HEADER.lower()))


@asynccontextmanager
async def http_session(wire: ProbeWire) -> AsyncGenerator[HttpSession]:
    """Begin a session beside that of the test, and end it. Raises `NotReached` if the server cannot have one."""
    if wire.url is None:
        raise NotReached("it is for servers that are reached over HTTP")
    if is_modern(wire.version) or wire.version < MARCH:
        raise NotReached(f"revision {wire.version} has no sessions")
    session = begun(wire, await initialize(wire, wire.version, {}))
    await wire.http("POST", _BEGUN, session.headers)
    try:
        yield session
    finally:
        if session.id is not None:
            await session.end()
