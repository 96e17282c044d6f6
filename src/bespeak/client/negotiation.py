"""Negotiation: the client and the server agree on a protocol version, of the modern or of the legacy era.

In mode `auto` the client probes the server with a modern request, and makes the handshake of the legacy era if the response
shows that the server needs one. Failures that say nothing about the server's version (a rejected token, a broken connection,
a failing proxy) are raised unchanged.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from bespeak.client.server_responses import typed, with_valid_hints
from bespeak.client.session import ClientSession
from bespeak.protocol import wire_types
from bespeak.protocol.errors import (
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from bespeak.protocol.quoting import one_line
from bespeak.protocol.reserved_meta import SERVER_INFO_META_KEY
from bespeak.protocol.versions import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
    SPOKEN,
)
from bespeak.transports.http.client import HttpStatusError
from bespeak.transports.interfaces import Lost

if TYPE_CHECKING:
    from mcp_types import DiscoverResult, Implementation, ServerCapabilities

MODES = ("auto", "legacy", *SPOKEN)
PROBE_SECONDS = 10.0
"""How long a server may take to respond to the probe, except over HTTP."""


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """What a server says about itself, in either era."""

    capabilities: "ServerCapabilities"
    info: "Implementation | None"
    instructions: str | None
    discovered: "DiscoverResult | None" = None
    """The description itself, if the server is modern."""


@dataclass(frozen=True, slots=True)
class NeedsHandshake:
    """The server needs a handshake: the reason, and the version to propose."""

    reason: str
    version: str = LATEST_HANDSHAKE_VERSION
    suspected: "DiscoverResult | None" = None
    """The server's response to the modern request, if it may be a modern server after all."""


async def negotiate(session: ClientSession, mode: str, known: "DiscoverResult | None" = None) -> ServerDescription:
    """Agree on a protocol version. Raises the error that made it impossible.

    `known` is an earlier description of the server that is still valid. In mode `auto` it makes the probe unnecessary.
    """
    if mode == "legacy":
        return await _handshake(session, LATEST_HANDSHAKE_VERSION)
    if mode in HANDSHAKE_PROTOCOL_VERSIONS:
        return await _handshake(session, mode, exactly=True)
    if mode != "auto":
        session.speak(mode)
        return _description(await session.discover())
    if known is not None:
        for version in reversed(MODERN_PROTOCOL_VERSIONS):
            if version in known.supported_versions:
                session.speak(version)
                return _description(known)
    found = await _probe(session)
    if isinstance(found, wire_types.DiscoverResult):
        return _description(found)
    try:
        return await _handshake(session, found.version)
    except (MCPError, ConnectionError) as error:
        if found.suspected is not None and isinstance(error, MCPError):
            session.speak(LATEST_MODERN_VERSION)
            return _description(found.suspected)
        if found.reason != _reason(error):  # a server that cannot be reached fails twice in the same way
            error.add_note(f"before that, the server did not support {LATEST_MODERN_VERSION}: {found.reason}")
        raise


async def _probe(
    session: ClientSession, version: str = LATEST_MODERN_VERSION, *, again: bool = False
) -> "DiscoverResult | NeedsHandshake":
    session.speak(version)
    try:
        async with asyncio.timeout(None if session.transport.sends_headers else PROBE_SECONDS):
            result = await session.probe()
    except MCPError as error:
        if error.code in (HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY):
            raise
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            return NeedsHandshake(_reason(error))
        mutual = _mutual(_listed(error.data), error)
        if mutual not in MODERN_PROTOCOL_VERSIONS:
            return NeedsHandshake(f"it supports {mutual}", mutual)
        if again:
            raise
    except HttpStatusError as error:
        if error.says_nothing:
            raise
        return NeedsHandshake(_reason(error))
    except TimeoutError as error:
        if session.transport.sends_headers:
            raise
        return NeedsHandshake(str(error) or f"no answer within {PROBE_SECONDS:g} s")
    except Lost as error:
        if session.transport.sends_headers:
            raise
        return NeedsHandshake(_reason(error))  # some servers exit when they receive a method they do not know
    else:
        return _verdict(result)
    return await _probe(session, mutual, again=True)


def _reason(error: Exception) -> str:
    """What an error says, and its code if it has one."""
    return f"{one_line(error.message)} ({error.code})" if isinstance(error, MCPError) else str(error)


def _verdict(result: dict[str, Any]) -> "DiscoverResult | NeedsHandshake":
    """Return what the result of a probe says about the server."""
    try:
        found = wire_types.DiscoverResult.model_validate(with_valid_hints(result))
    except ValidationError:
        if "resultType" in result:
            typed(wire_types.DiscoverResult, result)  # raises: a modern server with a malformed result
        return NeedsHandshake("its response does not match that version")
    if "resultType" not in result:
        return NeedsHandshake("its response has no resultType", suspected=found)
    mutual = _mutual(found.supported_versions, None)
    return found if mutual in MODERN_PROTOCOL_VERSIONS else NeedsHandshake(f"it supports {mutual}", mutual)


def _listed(data: Any) -> Sequence[str]:
    supported: Any = cast("dict[str, Any]", data).get("supported") if isinstance(data, dict) else None
    return cast("list[str]", supported) if isinstance(supported, list) else ()


def _mutual(theirs: Sequence[str], error: MCPError | None) -> str:
    """Return the newest version that both sides support. Raises `ConnectionError` if there is none."""
    for version in SPOKEN:
        if version in theirs:
            return version
    listed = one_line(", ".join(map(str, theirs)))
    known = f"the server supports {listed}" if listed else "the server does not say which versions it supports"
    raise ConnectionError(f"{known}; this client supports {', '.join(SPOKEN)}") from error


async def _handshake(session: ClientSession, version: str, *, exactly: bool = False) -> ServerDescription:
    try:
        result = await session.initialize(version, exactly=exactly)
    except HttpStatusError as error:
        # A web framework describes a path that it does not have in JSON; servers of that transport do not.
        if error.status in (400, 404, 405) and not (error.status == 404 and error.in_json):
            error.add_note(
                "the server may use HTTP+SSE, the transport of 2024-11-05, which this client does not support"
            )
        raise
    return ServerDescription(result.capabilities, result.server_info, result.instructions)


def _description(found: "DiscoverResult") -> ServerDescription:
    info = (found.meta or {}).get(SERVER_INFO_META_KEY)
    try:
        named = wire_types.Implementation.model_validate(info) if info else None
    except ValidationError:
        named = None
    return ServerDescription(found.capabilities, named, found.instructions, found)
