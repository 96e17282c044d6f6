"""The wire of a probe: sends a message exactly as it is given, over any transport, and returns what comes back."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from pydantic_core import to_json

from bespeak.conversation.connection import Connection
from bespeak.conversation.http_watch import EVENTS, certificates
from bespeak.conversation.json_values import as_object
from bespeak.conversation.rule_types import JUNE
from bespeak.protocol.headers import SESSION_HEADER, routing_headers
from bespeak.protocol.server_sent_events import EventReader
from bespeak.protocol.versions import is_modern
from bespeak.testing.altered_requests import NotReached
from bespeak.transports.http.received_responses import media_type, parsed
from bespeak.transports.http.url_redaction import hiding
from bespeak.transports.interfaces import Outgoing

if TYPE_CHECKING:
    import httpx2

NOWHERE = "bespeak-probe-that-does-not-exist"
"""The name of something that no server has."""
LISTS: Mapping[str, str] = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
"""A request that each feature answers, by its capability."""
LARGEST = 4 * 1024 * 1024
"""How many bytes of a response are read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for a message."""

    message: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The JSON-RPC message; empty if there is none."""
    status: int | None = None
    """The HTTP status, over HTTP."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def code(self) -> Any:
        """The code of the error; `None` if there is none."""
        return as_object(self.message.get("error")).get("code")

    def __str__(self) -> str:
        """Return the reply for use in a message."""
        said = "a result" if "result" in self.message else f"the error {self.code}" if self.code is not None else ""
        status = "" if self.status is None else f"status {self.status}"
        return " and ".join(filter(None, [said, status])) or "nothing"


class ProbeWire:
    """Sends messages to one server, over the connection of the test or, over HTTP, beside it."""

    def __init__(
        self,
        connection: Connection,
        url: str | None,
        headers: Mapping[str, str],
        seconds: float,
        shake_hands: Callable[[str], Awaitable[str]],
    ) -> None:
        self.shake_hands = shake_hands
        """Makes a handshake at a revision over another connection. Returns the agreed revision, or what went wrong."""
        self.connection = connection
        self.url = url
        """The URL of the server; `None` if it is not reached over HTTP."""
        self.given = dict(headers)
        """The headers that the suite gives."""
        self.seconds = seconds
        """How long each request may take."""
        self._ids: Iterator[int] = itertools.count(10_000_000)  # far from those of the session

    @property
    def version(self) -> str:
        return self.connection.version

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Reply:
        """Send a request as a client should. Raises `OSError` (`TimeoutError` too)."""
        sent = await self.connection.session.exchange(method, dict(params or {}), read_timeout_seconds=self.seconds)
        return Reply(as_object(parsed(sent.response)))

    async def raw(
        self,
        method: str,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Send a request with other metadata or other headers. A header that is `None` is left out."""
        id_ = next(self._ids)
        params = {**(params or {}), **({} if meta is None else {"_meta": dict(meta)})}
        message = to_json({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        if self.url is not None:
            return await self.http("POST", message, self._routed(method, params, headers or {}))
        async with asyncio.timeout(self.seconds):
            response = await self.connection.session.transport.exchange(
                Outgoing(id_, method, message, {}), lambda _: None
            )
        return Reply(as_object(parsed(response)))

    def message_headers(self) -> dict[str, str]:
        """Return the headers of a message that is not a request, and of every message of an older revision."""
        told = {**self.given, **({"MCP-Protocol-Version": self.version} if self.version >= JUNE else {})}
        if not is_modern(self.version) and self.connection.session_id is not None:
            told[SESSION_HEADER] = self.connection.session_id
        return told

    def meta(self, version: str | None = None) -> dict[str, Any]:
        """Return the metadata that each request of the newest revision needs."""
        declared = self.connection.capabilities
        return {PROTOCOL_VERSION_META_KEY: version or self.version, CLIENT_CAPABILITIES_META_KEY: declared}

    def _routed(self, method: str, params: Mapping[str, Any], other: Mapping[str, str | None]) -> dict[str, str]:
        version: Any = as_object(params.get("_meta")).get(PROTOCOL_VERSION_META_KEY, self.version)
        modern = is_modern(self.version)
        usual = {**self.given, **routing_headers(str(version), method, params)} if modern else self.message_headers()
        both = {**usual, **other}
        return {name: value for name, value in both.items() if value is not None}

    async def http(self, method: str, content: bytes, headers: Mapping[str, str], url: str | None = None) -> Reply:
        """Send an HTTP request, and read its response up to the JSON-RPC response in it."""
        import httpx2

        accepts = {"Accept": f"application/json, {EVENTS}", "Content-Type": "application/json"}
        try:
            with hiding():
                async with (
                    asyncio.timeout(self.seconds),
                    httpx2.AsyncClient(verify=certificates(), timeout=self.seconds) as client,
                    client.stream(
                        method, url or self.url or "", content=content, headers={**accepts, **headers}
                    ) as got,
                ):
                    return Reply(await _message(got, method), got.status_code, dict(got.headers))
        except httpx2.TransportError as error:
            raise ConnectionError(f"the connection broke: {error or type(error).__name__}") from None


async def _message(response: "httpx2.Response", method: str) -> Mapping[str, Any]:
    """The message in a response. The stream of a GET may stay open, so only the head of its response counts."""
    body = bytearray()
    if method == "GET" and media_type(response) == EVENTS:
        return {}
    reader = EventReader(LARGEST) if media_type(response) == EVENTS else None
    async for piece in response.aiter_bytes():
        if reader is None:
            body += piece
            if len(body) > LARGEST:
                break
            continue
        for data in reader.feed(piece):
            read = as_object(parsed(data))
            if "result" in read or "error" in read:
                return read
    return as_object(parsed(body))


def listing(wire: ProbeWire) -> str:
    """Return a request that the server answers without any params. Raises `NotReached` if there is none."""
    declared = wire.connection.server
    found = next((method for name, method in LISTS.items() if getattr(declared, name) is not None), None)
    if found is None:
        raise NotReached("the server declares no tools, prompts or resources")
    return found
