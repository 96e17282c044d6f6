"""The probes that only servers over HTTP have: origins, headers, other methods, sessions and tokens."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from bespeak.conversation.http_watch import EVENTS
from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.rule_types import JUNE, MARCH, MODERN, NOVEMBER
from bespeak.protocol.errors import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION
from bespeak.protocol.versions import is_modern
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.probes.probe_sessions import begun, http_session, initialize
from bespeak.testing.probes.probe_wire import NOWHERE, ProbeWire, listing

_Wrong = tuple[str, Mapping[str, Any], str, Mapping[str, str | None]]

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
_METADATA = re.compile(r'resource_metadata="([^"]+)"')
_LATER = "2031-01-01"
"""A revision that no server speaks."""


def _need_http(wire: ProbeWire) -> str:
    if wire.url is None:
        raise NotReached("it is for servers that are reached over HTTP")
    return wire.url


async def origin(wire: ProbeWire) -> list[Finding]:
    """A page of somebody else's asks a server on this machine. Servers elsewhere may be meant for every page."""
    if not _LOOPBACK.fullmatch(urlsplit(_need_http(wire)).hostname or ""):
        raise NotReached("it is for servers on this machine; others may allow every origin")
    other = {"Origin": "http://bespeak-probe.example"}
    if is_modern(wire.version):
        reply = await wire.raw("tools/list", wire.meta(), other)
    else:  # the only request that needs no session, without which it could be refused for that reason
        reply = await initialize(wire, wire.version, other)
        session = begun(wire, reply)
        if session.id is not None:
            await session.end()
    # Older revisions do not say how such a request is refused.
    if reply.status == 403 or (wire.version < NOVEMBER and (reply.status or 0) >= 400):
        return []
    return [Finding("origin", f"a request from a page of another site was answered with {reply}")]


async def get(wire: ProbeWire) -> list[Finding]:
    _need_http(wire)
    if not is_modern(wire.version):
        return await _stream(wire)
    described = as_object((await wire.request("server/discover")).message.get("result"))
    versions = as_array(described.get("supportedVersions"))
    older = any(isinstance(one, str) and not is_modern(one) for one in versions)
    if older or not is_modern(await _agreed(wire, NOVEMBER) or MODERN):  # not every server lists them
        raise NotReached("the server also serves older revisions, which have GET and DELETE")
    found: list[Finding] = []
    for method in ("GET", "DELETE"):
        reply = await wire.http(method, b"", wire.given)
        if reply.status != 405:
            found.append(Finding("get", f"{method} was answered with status {reply.status}"))
    return found


async def _stream(wire: ProbeWire) -> list[Finding]:
    async with http_session(wire) as session:
        reply = await session.get()
    streams = reply.status == 200 and reply.headers.get("content-type", "").partition(";")[0].strip().lower() == EVENTS
    if streams or reply.status == 405:
        return []
    return [Finding("stream", f"GET was answered with {reply} and no stream of events")]


async def version_header(wire: ProbeWire) -> list[Finding]:
    """At the revisions between those without the header and those in which each request names its revision."""
    if wire.version < JUNE:
        raise NotReached(f"revision {wire.version} has no header for the revision")
    async with http_session(wire) as session:
        reply = await session.ping(**{"MCP-Protocol-Version": _LATER})
    if reply.status == 400:
        return []
    return [
        Finding("version-header", f"a request with the header MCP-Protocol-Version: {_LATER} was answered with {reply}")
    ]


async def session(wire: ProbeWire) -> list[Finding]:
    async with http_session(wire) as own:
        if own.id is None:
            raise NotReached("the server has no sessions")
        headers = own.headers
        if (await own.end()).status not in (200, 202, 204):
            raise NotReached("the server does not let clients end their sessions")
        reply = await own.ping(**headers)
    if reply.status == 404:
        return []
    return [Finding("ended-session", f"a request in a session that was ended was answered with {reply}")]


async def headers(wire: ProbeWire) -> list[Finding]:
    if not is_modern(wire.version):
        raise NotReached(f"it is for revision {MODERN}, and the server speaks {wire.version}")
    if wire.url is None:
        raise NotReached("only requests over HTTP have headers")
    found: list[Finding] = []
    for method, params, what, other in await _wrong_headers(wire):
        reply = await wire.raw(method, wire.meta(), other, params)
        # A server may look at the revision first.
        right = (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION) if _LATER in other.values() else (HEADER_MISMATCH,)
        if reply.code not in right or reply.status != 400:
            found.append(Finding("headers", f"a request {what} was answered with {reply}"))
    return found


async def _wrong_headers(wire: ProbeWire) -> list[_Wrong]:
    """Requests with wrong headers: the method, the params, what is wrong, and the headers that are."""
    method = listing(wire)
    wrong: list[_Wrong] = [
        (method, {}, "without the header Mcp-Method", {"Mcp-Method": None}),
        (method, {}, "with another method in the header Mcp-Method", {"Mcp-Method": "ping"}),
        (
            method,
            {},
            "with another revision in the header MCP-Protocol-Version",
            {"MCP-Protocol-Version": _LATER},
        ),
    ]
    agreed = await _agreed(wire, MARCH)
    if agreed is None or agreed >= JUNE:  # otherwise the server has clients that do not send the header
        wrong.append((method, {}, "without the header MCP-Protocol-Version", {"MCP-Protocol-Version": None}))
    if wire.connection.server.tools is not None:  # a tool that does not exist: nothing is called
        called = {"name": NOWHERE}
        wrong += [
            ("tools/call", called, "without the header Mcp-Name", {"Mcp-Name": None}),
            ("tools/call", called, "with another name in the header Mcp-Name", {"Mcp-Name": f"{NOWHERE}-either"}),
            ("tools/call", called, "with invalid base64 in the header Mcp-Name", {"Mcp-Name": "=?base64?a*b?="}),
        ]
    return wrong


async def _agreed(wire: ProbeWire, version: str) -> str | None:
    """The revision that the server agrees to in a handshake; `None` if it has none."""
    reply = await initialize(wire, version, {})
    session = begun(wire, reply)
    if session.id is not None:
        await session.end()
    agreed: Any = as_object(reply.message.get("result")).get("protocolVersion")
    return agreed if isinstance(agreed, str) else None


async def token(wire: ProbeWire) -> list[Finding]:
    url = _need_http(wire)
    known = next((name for name in wire.given if name.lower() == "authorization"), None)
    if known is None:
        raise NotReached("the suite gives the server no Authorization header")
    meta = wire.meta() if is_modern(wire.version) else None
    reply = await wire.raw("tools/list", meta, {known: None})
    challenge = reply.headers.get("www-authenticate")
    if _is_bearer(wire.given[known]) and reply.status == 401:
        other = await wire.raw("tools/list", meta, {known: "Bearer bespeak-probe-that-is-not-valid"})
        if other.status != 401:
            return [Finding("token", f"a request with a token that is not valid was answered with {other}")]
    if reply.status != 401 or challenge is None:
        more = "" if challenge is not None or reply.status != 401 else " and no WWW-Authenticate"
        return [Finding("token", f"a request without a token was answered with {reply}{more}")]
    named = _METADATA.search(challenge)
    return [] if named is None else await _metadata(wire, url, named[1])


def _is_bearer(authorization: str) -> bool:
    """Whether a header has a token, whose place another one can take."""
    return authorization.lower().startswith("bearer ")


async def _metadata(wire: ProbeWire, url: str, document: str) -> list[Finding]:
    """Read the document that describes who gives tokens. One on another host is not read: its server is not ours to probe."""
    if urlsplit(document)[:2] != urlsplit(url)[:2]:
        return []
    reply = await wire.http("GET", b"", {}, document)
    servers = as_array(reply.message.get("authorization_servers"))
    if servers and all(isinstance(one, str) for one in servers):
        return []
    return [Finding("resource-metadata", f"the resource metadata ({reply}) names no authorization server")]
