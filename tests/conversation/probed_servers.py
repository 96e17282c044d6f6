"""For each rule that needs a probe: a raw server that breaks just it, and a legal neighbour."""

from typing import Any

from tests.conversation.raw_servers import ID, MODERN, NOVEMBER, SCHEMA, Json, Raw, done, failed, note, result

RESULT: Json = result(
    resultType="complete", ttlMs=0, cacheScope="private", tools=[], prompts=[], resources=[], contents=[]
)
NO_METHOD = "bespeak-probe/that-does-not-exist"
WATCHED: Json = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
VERSIONS: Json = {"supported": [MODERN], "requested": "2031-01-01"}
CHALLENGE = 'Bearer resource_metadata="$host/document"'


def probed(name: str, **more: Any) -> Raw:
    """A server that meets one probe."""
    return Raw([[done()]], test=f"probe: {name}", **more)


def answering(name: str, method: str, *messages: Any, **more: Any) -> Raw:
    return probed(name, answers={method: list(messages)}, **more)


def guarded(name: str, revision: str = MODERN, **gate: Any) -> Raw:
    return probed(name, http=True, gate=gate, revision=revision)


def acknowledged(id_: Any = ID, **kinds: bool) -> Json:
    return note(
        "subscriptions/acknowledged", notifications=kinds, _meta={"io.modelcontextprotocol/subscriptionId": id_}
    )


def subscribed(*messages: Any) -> Raw:
    return answering("subscription", "subscriptions/listen", *messages, capabilities=WATCHED)


PAIRS: dict[str, tuple[Raw, Raw]] = {
    "metadata": (
        answering("metadata", "tools/list", failed(-32601)),
        answering("metadata", "tools/list", failed(-32602)),
    ),
    "unknown-version": (
        answering("version", "tools/list", RESULT),
        answering("version", "tools/list", failed(-32022, data=VERSIONS)),
    ),
    "headers": (guarded("headers"), guarded("headers", headers=True)),
    "origin": (guarded("origin"), guarded("origin", origin=True)),
    "get": (guarded("get", get=200), guarded("get")),
    "notification": (probed("notification", answers_notifications=True), probed("notification")),
    "unknown-resource": (
        answering("resource", "resources/read", failed(-32603)),
        answering("resource", "resources/read", failed(-32602)),
    ),
    "empty-resource": (
        answering("resource", "resources/read", RESULT),
        answering("resource", "resources/read", failed(-32602)),
    ),
    "unknown-cursor": (
        answering("cursor", "tools/list", RESULT),
        answering("cursor", "tools/list", failed(-32602)),
    ),
    "unknown-level": (
        answering("level", "tools/list", RESULT),
        answering("level", "tools/list", failed(-32602)),
    ),
    "ended-session": (
        guarded("session", NOVEMBER, session="ignored"),
        guarded("session", NOVEMBER, session="checked"),
    ),
    "unknown-method": (
        answering("method", NO_METHOD, failed(-32602)),
        answering("method", NO_METHOD, failed(-32601)),
    ),
    "version-header": (
        guarded("version", NOVEMBER),
        guarded("version", NOVEMBER, versions=True),
    ),
    "stream": (guarded("get", NOVEMBER, get=200), guarded("get", NOVEMBER, get=405)),
    "ping": (
        answering("ping", "ping", result(pong=True), revision=NOVEMBER),
        answering("ping", "ping", result(), revision=NOVEMBER),
    ),
    "tool-order": (
        probed("order", tools=[{"name": name, "inputSchema": SCHEMA} for name in "xy"], shuffles=True),
        probed("order", tools=[{"name": name, "inputSchema": SCHEMA} for name in "xy"]),
    ),
    "handshake": (
        probed("handshake", older=[NOVEMBER], agreed="2025-06-18"),
        probed("handshake", older=[NOVEMBER], agreed=NOVEMBER),
    ),
    "acknowledged": (
        subscribed(note("tools/list_changed"), acknowledged()),
        subscribed(acknowledged(toolsListChanged=True), note("tools/list_changed")),
    ),
    "subscription-id": (subscribed(acknowledged("another")), subscribed(acknowledged())),
    "subscription-filter": (
        subscribed(acknowledged(toolsListChanged=True, promptsListChanged=True)),
        subscribed(acknowledged(toolsListChanged=True, promptsListChanged=False)),
    ),
    "token": (guarded("token", token=""), guarded("token", token="Bearer")),
    "resource-metadata": (
        guarded("token", token=CHALLENGE, document={"authorization_servers": []}),
        guarded("token", token=CHALLENGE, document={"authorization_servers": ["https://login.example"]}),
    ),
}
"""By the name of the rule."""
