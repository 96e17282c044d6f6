"""The rules that a client sees only if it sends something unusual: suites do so with `probe`."""

from bespeak.conversation.rule_types import JUNE, MARCH, NOVEMBER, Rule, advice, modern

_BASE = "basic/index"
_HTTP = "basic/transports/streamable-http"
_AUTHORIZATION = "basic/authorization"
_SUBSCRIPTIONS = "basic/patterns/subscriptions"

PROBE_RULES = (
    # Malformed requests
    modern(
        "metadata",
        "missing or invalid metadata of a request is answered with -32602, and over HTTP with status 400",
        _BASE,
    ),
    modern("unknown-version", "a version that is not supported is answered with -32022", "basic/versioning"),
    modern(
        "headers", "headers that are missing or differ from the body are answered with -32020 and status 400", _HTTP
    ),
    Rule("origin", "a request with an Origin that is not allowed is answered with status 403", _HTTP),
    advice(
        "get",
        "GET and DELETE should be answered with status 405 if no older revision is served",
        _HTTP,
        "2026-07-28",
    ),
    modern(
        "unknown-method",
        "a method that the server does not have is answered with -32601, and over HTTP with status 404",
        _HTTP,
    ),
    Rule(
        "version-header",
        "a revision in the header MCP-Protocol-Version that the server does not support is answered with status 400",
        _HTTP,
        first=JUNE,
        last=NOVEMBER,
    ),
    Rule("stream", "GET is answered with a stream of events or with status 405", _HTTP, first=MARCH, last=NOVEMBER),
    Rule("ping", "a ping is answered with an empty result", "basic/utilities/ping", last=NOVEMBER),
    Rule("notification", "a notification is not answered", f'{_BASE} "Messages"'),
    # What is not there
    modern("unknown-resource", "a resource that is not found is answered with -32602", f'{_BASE} "Error Codes"'),
    modern("empty-resource", "a resource that does not exist is not answered with empty contents", "server/resources"),
    advice("unknown-cursor", "an invalid cursor should be answered with -32602", "server/utilities/pagination"),
    advice("unknown-level", "an unknown level should be answered with -32602", "server/utilities/logging"),
    Rule(
        "ended-session",
        "the id of a session that was ended is answered with status 404",
        _HTTP,
        first=MARCH,
        last=NOVEMBER,
    ),
    # Lists and versions
    advice("tool-order", "the order of tools should be the same", "server/tools", "2026-07-28"),
    Rule(
        "handshake",
        "initialize is answered with the requested version if the server supports it",
        "basic/lifecycle",
        last=NOVEMBER,
    ),
    # Subscriptions
    modern("acknowledged", "the acknowledgement is the first message of a subscription", _SUBSCRIPTIONS),
    modern("subscription-id", "each message of a subscription carries its subscriptionId", _SUBSCRIPTIONS),
    modern("subscription-filter", "only what was asked for is sent on a subscription", _SUBSCRIPTIONS),
    # Authorization
    Rule(
        "token",
        "a request without a valid token is answered with status 401 and WWW-Authenticate",
        _AUTHORIZATION,
        first=JUNE,
    ),
    Rule(
        "resource-metadata",
        "the protected resource metadata names an authorization server",
        _AUTHORIZATION,
        first=JUNE,
    ),
)
"""The rules, in the order of the page."""
