"""The probes that only servers over HTTP have: origins, other methods, sessions and tokens."""

import re
from urllib.parse import urlsplit

from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.protocol.headers import SESSION_HEADER
from bespeak.protocol.versions import is_modern
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.probes.probe_wire import ProbeWire

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
_PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
_METADATA = re.compile(r'resource_metadata="([^"]+)"')
UNKNOWN_SESSION = "bespeak-probe-unknown-session"


def _need_http(wire: ProbeWire) -> str:
    if wire.url is None:
        raise NotReached("it is for servers that are reached over HTTP")
    return wire.url


async def origin(wire: ProbeWire) -> list[Finding]:
    """A page of somebody else's asks a server on this machine. Servers elsewhere may be meant for every page."""
    if not _LOOPBACK.fullmatch(urlsplit(_need_http(wire)).hostname or ""):
        raise NotReached("it is for servers on this machine; others may allow every origin")
    meta = wire.meta() if is_modern(wire.version) else None
    reply = await wire.raw("tools/list", meta, {"Origin": "http://bespeak-probe.example"})
    if reply.status == 403:
        return []
    return [Finding("origin", f"a request from a page of another site was answered with {reply}")]


async def get(wire: ProbeWire) -> list[Finding]:
    _need_http(wire)
    if not is_modern(wire.version):
        raise NotReached(f"revision {wire.version} has GET and DELETE")
    described = as_object((await wire.request("server/discover")).message.get("result"))
    versions = as_array(described.get("supportedVersions"))
    if any(isinstance(one, str) and not is_modern(one) for one in versions):
        raise NotReached("the server also serves older revisions, which have GET and DELETE")
    found: list[Finding] = []
    for method in ("GET", "DELETE"):
        reply = await wire.http(method, b"", wire.given)
        if reply.status != 405:
            found.append(Finding("get", f"{method} was answered with status {reply.status}"))
    return found


async def session(wire: ProbeWire) -> list[Finding]:
    _need_http(wire)
    if is_modern(wire.version) or wire.version < "2025-03-26":
        raise NotReached(f"revision {wire.version} has no sessions")
    reply = await wire.http("POST", _PING, {**wire.message_headers(), SESSION_HEADER: UNKNOWN_SESSION})
    # A server without sessions has no use for the header.
    if reply.status == 404 or not wire.has_session:
        return []
    return [Finding("unknown-session", f"a request with an unknown session id was answered with {reply}")]


async def token(wire: ProbeWire) -> list[Finding]:
    url = _need_http(wire)
    known = next((name for name in wire.given if name.lower() == "authorization"), None)
    if known is None:
        raise NotReached("the suite gives the server no Authorization header")
    meta = wire.meta() if is_modern(wire.version) else None
    reply = await wire.raw("tools/list", meta, {known: None})
    challenge = reply.headers.get("www-authenticate")
    if reply.status != 401 or challenge is None:
        more = "" if challenge is not None or reply.status != 401 else " and no WWW-Authenticate"
        return [Finding("token", f"a request without a token was answered with {reply}{more}")]
    named = _METADATA.search(challenge)
    return [] if named is None else await _metadata(wire, url, named[1])


async def _metadata(wire: ProbeWire, url: str, document: str) -> list[Finding]:
    """Read the document that describes who gives tokens. One on another host is not read: its server is not ours to probe."""
    if urlsplit(document)[:2] != urlsplit(url)[:2]:
        return []
    reply = await wire.http("GET", b"", {}, document)
    servers = as_array(reply.message.get("authorization_servers"))
    if servers and all(isinstance(one, str) for one in servers):
        return []
    return [Finding("resource-metadata", f"the resource metadata ({reply}) names no authorization server")]
