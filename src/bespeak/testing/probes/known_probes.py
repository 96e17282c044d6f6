"""The probes: what each sends, and which rules its answer may break."""

from collections.abc import Awaitable, Callable, Mapping

from bespeak.conversation.feature_list import read_pages
from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.result_checks import response_findings
from bespeak.protocol.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from bespeak.protocol.versions import is_modern
from bespeak.terminal.safe_text import printable
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.probes.http_probes import get, headers, origin, session, token, version_header
from bespeak.testing.probes.probe_wire import LISTS, NOWHERE, ProbeWire, Reply, listing
from bespeak.testing.probes.subscription_probe import subscription

NO_METHOD = "bespeak-probe/that-does-not-exist"
_LATER = "2031-01-01"
"""A revision that no server speaks."""
Probe = Callable[[ProbeWire], Awaitable[list[Finding]]]
"""Sends something, and returns the rules that the answer breaks. Raises `NotReached` if it does not apply to the server."""


def _need_modern(wire: ProbeWire) -> None:
    if not is_modern(wire.version):
        raise NotReached(f"it is for revision 2026-07-28, and the server speaks {wire.version}")


def _need(wire: ProbeWire, name: str) -> None:
    if getattr(wire.connection.server, name) is None:
        raise NotReached(f"the server does not declare the capability {name}")


def _refused(rule: str, what: str, reply: Reply, code: int, status: int | None = None) -> list[Finding]:
    """Return a finding unless a reply is this error, over HTTP with this status if one is given."""
    right = reply.code == code and (status is None or reply.status in (None, status))
    return [] if right else [Finding(rule, f"{what} was answered with {reply}")]


# Malformed requests


async def metadata(wire: ProbeWire) -> list[Finding]:
    _need_modern(wire)
    version = dict(list(wire.meta().items())[:1])  # without the capabilities
    reply = await wire.raw(listing(wire), version)
    return _refused("metadata", "a request without clientCapabilities", reply, INVALID_PARAMS, 400)


async def method(wire: ProbeWire) -> list[Finding]:
    _need_modern(wire)
    reply = await wire.raw(NO_METHOD, wire.meta())
    return _refused("unknown-method", "a method that does not exist", reply, METHOD_NOT_FOUND, 404)


async def version(wire: ProbeWire) -> list[Finding]:
    if not is_modern(wire.version):
        return await version_header(wire)
    method = listing(wire)
    reply = await wire.raw(method, wire.meta(_LATER))
    found = _refused("unknown-version", f"a request at revision {_LATER}", reply, UNSUPPORTED_PROTOCOL_VERSION)
    return found or response_findings(method, reply.message, wire.version)


async def ping(wire: ProbeWire) -> list[Finding]:
    if is_modern(wire.version):
        raise NotReached(f"revision {wire.version} has no ping")
    reply = await wire.request("ping")
    result = reply.message.get("result")
    if isinstance(result, dict) and not result.keys() - {"_meta"}:
        return []
    said = "a result that is not empty" if isinstance(result, dict) else reply
    return [Finding("ping", f"a ping was answered with {said}")]


async def notification(wire: ProbeWire) -> list[Finding]:
    name = "notifications/bespeak-probe"
    if wire.url is not None:
        body = b'{"jsonrpc":"2.0","method":"%s"}' % name.encode()
        reply = await wire.http("POST", body, wire.message_headers())
        answered = "result" in reply.message or reply.message.get("id") is not None
        found = [Finding("notification", f"a notification was answered with {reply}")] if answered else []
        refused = reply.status is None or reply.status >= 400
        if not found and not refused and reply.status != 202:
            found.append(Finding("accepted", f"a notification was answered with the status {reply.status}, not 202"))
        return found
    await wire.connection.session.notify(name)
    reply = await wire.request(listing(wire))  # whatever was written before it has arrived
    if "id" in reply.message and reply.message["id"] is None:
        return [Finding("notification", f"a notification was answered with {reply}")]
    return []


# What is not there


async def tool(wire: ProbeWire) -> list[Finding]:
    _need(wire, "tools")
    reply = await wire.request("tools/call", {"name": NOWHERE, "arguments": {}})
    return _refused("unknown-tool", "a call of a tool that does not exist", reply, INVALID_PARAMS)


async def prompt(wire: ProbeWire) -> list[Finding]:
    _need(wire, "prompts")
    reply = await wire.request("prompts/get", {"name": NOWHERE})
    return _refused("unknown-prompt", "a prompt that does not exist", reply, INVALID_PARAMS)


async def resource(wire: ProbeWire) -> list[Finding]:
    _need_modern(wire)
    _need(wire, "resources")
    reply = await wire.request("resources/read", {"uri": f"{NOWHERE}://x"})
    result = as_object(reply.message.get("result"))
    if "contents" in result and not as_array(result["contents"]):
        return [Finding("empty-resource", "a resource that does not exist was answered with empty contents")]
    return _refused("unknown-resource", "a resource that does not exist", reply, INVALID_PARAMS)


async def cursor(wire: ProbeWire) -> list[Finding]:
    method = listing(wire)
    reply = await wire.request(method, {"cursor": NOWHERE})
    return _refused("unknown-cursor", f"{method} with an invalid cursor", reply, INVALID_PARAMS)


async def level(wire: ProbeWire) -> list[Finding]:
    _need(wire, "logging")
    if is_modern(wire.version):
        meta = {**wire.meta(), "io.modelcontextprotocol/logLevel": "loud"}
        reply = await wire.raw(listing(wire), meta)
    else:
        reply = await wire.request("logging/setLevel", {"level": "loud"})
    return _refused("unknown-level", 'the log level "loud"', reply, INVALID_PARAMS)


async def undeclared(wire: ProbeWire) -> list[Finding]:
    declared = wire.connection.server
    found: list[Finding] = []
    missing = {name: method for name, method in LISTS.items() if getattr(declared, name) is None}
    if not missing:
        raise NotReached("the server declares all features")
    for name, method in missing.items():
        reply = await wire.request(method)
        if "result" in reply.message:
            what = f"the server answers {method}, but does not declare the capability {name}"
            found.append(Finding("capability", what))
        else:
            what = f"{method}, whose capability {name} is not declared,"
            found += _refused("undeclared-method", what, reply, METHOD_NOT_FOUND)
    return found


# Lists and versions


async def order(wire: ProbeWire) -> list[Finding]:
    _need_modern(wire)
    _need(wire, "tools")
    first, second = [await _tools(wire), await _tools(wire)]
    if first == second or sorted(first) != sorted(second):  # the list itself may have changed
        return []
    return [Finding("tool-order", "two lists of the tools have them in different orders")]


async def _tools(wire: ProbeWire) -> list[str]:
    pages = [page async for page in read_pages(wire.connection.session, "tools/list")]
    return [str(as_object(one).get("name")) for page in pages for one in as_array(page.get("tools"))]


async def handshake(wire: ProbeWire) -> list[Finding]:
    _need_modern(wire)
    described = as_object((await wire.request("server/discover")).message.get("result"))
    older = [one for one in as_array(described.get("supportedVersions")) if isinstance(one, str) and not is_modern(one)]
    if not older:
        raise NotReached("the server lists no older revision")
    found: list[Finding] = []
    for one in older:
        agreed = await wire.shake_hands(one)
        if agreed != one:
            what = f"the server lists {printable(one)}, but initialize with it {agreed}"
            found.append(Finding("handshake", what))
    return found


PROBES: Mapping[str, Probe] = {
    "metadata": metadata,
    "method": method,
    "version": version,
    "headers": headers,
    "origin": origin,
    "get": get,
    "ping": ping,
    "notification": notification,
    "tool": tool,
    "prompt": prompt,
    "resource": resource,
    "cursor": cursor,
    "level": level,
    "undeclared": undeclared,
    "order": order,
    "handshake": handshake,
    "session": session,
    "subscription": subscription,
    "token": token,
}
"""Each probe by its name."""
