"""Which revision a client and a server speak: what the client was told, or what the server turns out to know.

A verdict is about the server, not about one request: whatever says nothing about its revision (a refused token, a broken
connection, a failing proxy) is raised as it is.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_types import SERVER_INFO_META_KEY, DiscoverResult, Implementation, ServerCapabilities
from pydantic import ValidationError

from bespeak.client.session import ClientSession, typed
from bespeak.protocol.errors import (
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from bespeak.protocol.quoting import one_line
from bespeak.protocol.versions import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
    SPOKEN,
)
from bespeak.transports.http.client import HttpStatusError
from bespeak.transports.interfaces import Lost

MODES = ("auto", "legacy", *SPOKEN)
PROBE_SECONDS = 10.0
"""How long a server that is no HTTP server may take to say that it does not know what it is asked."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a server says of itself, in either era."""

    capabilities: ServerCapabilities
    info: Implementation | None
    instructions: str | None


@dataclass(frozen=True, slots=True)
class Legacy:
    """The verdict that a server needs a handshake, why, and which revision to propose."""

    reason: str
    version: str = LATEST_HANDSHAKE_VERSION
    suspected: DiscoverResult | None = None
    """What it answered to a modern request all the same."""


Found = DiscoverResult | Legacy


async def negotiate(session: ClientSession, mode: str) -> Hello:
    """Agree on a revision. Raises what shows that there is none."""
    if mode == "legacy":
        return await _shake(session, LATEST_HANDSHAKE_VERSION)
    if mode in HANDSHAKE_PROTOCOL_VERSIONS:
        return await _shake(session, mode, exactly=True)
    if mode != "auto":
        session.speak(mode)
        return _hello(await session.discover())
    found = await _probe(session)
    if isinstance(found, DiscoverResult):
        return _hello(found)
    try:
        return await _shake(session, found.version)
    except (MCPError, ConnectionError) as error:
        if found.suspected is not None and isinstance(error, MCPError):
            session.speak(LATEST_MODERN_VERSION)
            return _hello(found.suspected)
        error.add_note(f"before that, the server did not speak {LATEST_MODERN_VERSION}: {found.reason}")
        raise


async def _probe(session: ClientSession, version: str = LATEST_MODERN_VERSION, *, again: bool = False) -> Found:
    session.speak(version)
    try:
        async with asyncio.timeout(None if session.transport.mirrors else PROBE_SECONDS):
            result = await session.probe()
    except MCPError as error:
        if error.code in (HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY):
            raise
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            return Legacy(f"{one_line(error.message)} ({error.code})")
        mutual = _mutual(_listed(error.data), error)
        if mutual not in MODERN_PROTOCOL_VERSIONS:
            return Legacy(f"it speaks {mutual}", mutual)
        if again:
            raise
    except HttpStatusError as error:
        if error.says_nothing:
            raise
        return Legacy(str(error))
    except TimeoutError as error:
        if session.transport.mirrors:
            raise
        return Legacy(str(error) or f"no answer within {PROBE_SECONDS:g} s")
    except Lost as error:
        if session.transport.mirrors:
            raise
        return Legacy(str(error))  # there are servers that do not survive a question they do not know
    else:
        return _verdict(result)
    return await _probe(session, mutual, again=True)


def _verdict(result: dict[str, Any]) -> Found:
    """What a result that came says."""
    try:
        found = DiscoverResult.model_validate(result)
    except ValidationError:
        if "resultType" in result:
            typed(DiscoverResult, result)  # raises: a modern server, and a malformed answer
        return Legacy("it answered, but with nothing that a server of that revision answers")
    if "resultType" not in result:
        return Legacy("its answer has no resultType", suspected=found)
    mutual = _mutual(found.supported_versions, None)
    return found if mutual in MODERN_PROTOCOL_VERSIONS else Legacy(f"it speaks {mutual}", mutual)


def _listed(data: Any) -> Sequence[str]:
    supported: Any = cast("dict[str, Any]", data).get("supported") if isinstance(data, dict) else None
    return cast("list[str]", supported) if isinstance(supported, list) else ()


def _mutual(theirs: Sequence[str], error: MCPError | None) -> str:
    """The newest revision both speak. Raises `ConnectionError` if there is none."""
    for version in SPOKEN:
        if version in theirs:
            return version
    listed = one_line(", ".join(map(str, theirs))) or "nothing that it names"
    raise ConnectionError(f"the server speaks {listed}, and this client {', '.join(SPOKEN)}") from error


async def _shake(session: ClientSession, version: str, *, exactly: bool = False) -> Hello:
    try:
        result = await session.initialize(version, exactly=exactly)
    except HttpStatusError as error:
        if error.status in (400, 404, 405):
            error.add_note("perhaps it serves HTTP+SSE, the transport of 2024-11-05, which this client does not speak")
        raise
    return Hello(result.capabilities, result.server_info, result.instructions)


def _hello(found: DiscoverResult) -> Hello:
    info = (found.meta or {}).get(SERVER_INFO_META_KEY)
    try:
        named = Implementation.model_validate(info) if info else None
    except ValidationError:
        named = None
    return Hello(found.capabilities, named, found.instructions)
