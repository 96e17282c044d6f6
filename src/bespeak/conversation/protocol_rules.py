"""The rules of the protocol that servers are checked against, and findings: rules that a server broke.

Each rule is one clause of the specification. A rule of strength `must` fails a test. A rule of strength `advice` stands for a
SHOULD: it is reported apart and fails nothing. A rule of strength `attack` also stands for a SHOULD, and fails only tests that
attack the server in this way. docs/rules.md lists them all, and the clauses that no rule checks.
"""

from dataclasses import dataclass
from typing import Any

from bespeak.conversation.probe_rules import PROBE_RULES
from bespeak.conversation.rule_types import JUNE, MARCH, MODERN, NOVEMBER, Rule, Strength, advice, attack, modern

_BASE = "basic/index"
_MRTR = "basic/patterns/mrtr"
_PROGRESS = "basic/patterns/progress"
_HTTP = "basic/transports/streamable-http"
_TOOLS = "server/tools"
_RESOURCES = "server/resources"
_ELICITATION = "client/elicitation"
_CACHING = "server/utilities/caching"
_LOGGING = "server/utilities/logging"

_ALL = (
    # Messages
    Rule(
        "envelope",
        "a response is one JSON-RPC 2.0 object with the id of its request, and with either a result or an error",
        f'{_BASE} "Messages"',
    ),
    advice("duplicate-member", "an object should not have two members with the same name", "RFC 8259, section 4"),
    Rule("stdout", "a server writes nothing but messages to its standard output", "basic/transports/stdio"),
    modern("pushed", "a server sends no requests; questions travel in results", "basic/patterns/index"),
    Rule("after-final", "nothing that belongs to a request is sent after its response", _PROGRESS),
    modern("session-id", "a server does not send the header Mcp-Session-Id", _HTTP),
    modern("event-ids", "events have no ids, because streams cannot be resumed", _HTTP),
    Rule("accepted", "a notification is answered with status 202 and no body", _HTTP),
    Rule("content-type", "a request over HTTP is answered with JSON or with a stream of events", _HTTP),
    Rule(
        "request-id",
        "a request of the server has an id that the server has not used before in the session",
        f'{_BASE} "Messages"',
        last=NOVEMBER,
    ),
    Rule(
        "request-id-type",
        "the id of a server's request is a string or an integer",
        f'{_BASE} "Messages"',
        last=NOVEMBER,
    ),
    Rule(
        "meta-keys",
        "the keys of _meta follow the grammar for names, and reserved prefixes are not used",
        _BASE,
        first=JUNE,
    ),
    modern("trace-context", "traceparent in _meta has the form that W3C Trace Context defines", _BASE),
    # Results
    modern("no-result-type", "each result has a resultType", f'{_BASE} "ResultType"'),
    modern(
        "result-type",
        "resultType is complete or input_required, unless the client declared an extension that adds another",
        f'{_BASE} "ResultType"',
    ),
    Rule("result", "the members of a result have the types that the schema defines", "schema"),
    Rule("content", "a complete result has its required members, with blocks as the schema defines them", "schema"),
    Rule("later-block", "a result has no blocks that came with a later revision", "schema", last=MARCH),
    Rule("base64", "binary data is encoded as base64", _RESOURCES),
    Rule("prompt-media", "an image and a sound in a prompt have a valid MIME type", "server/prompts"),
    advice(
        "prompt-resource",
        "a resource in a prompt should have its MIME type; the page says must, the schema says that it is optional",
        "server/prompts",
    ),
    Rule("resource-uri", "the URI of a resource follows RFC 3986", _RESOURCES, first=JUNE),
    advice("structured-text", "structured content should be given as text, too", _TOOLS, JUNE),
    Rule("structured-object", "structuredContent is an object", _TOOLS, first=JUNE, last=NOVEMBER),
    Rule(
        "output-schema",
        "the result of a tool with an outputSchema has structuredContent that matches it",
        _TOOLS,
        first=JUNE,
    ),
    Rule("tool-schema", "the inputSchema of a tool is a JSON Schema whose type is object", _TOOLS),
    Rule(
        "valid-schema",
        "the inputSchema and the outputSchema of a tool are valid in their dialect of JSON Schema",
        f'{_BASE} "JSON Schema Usage"',
        first=NOVEMBER,
    ),
    advice("tool-name", "names should have 1 to 128 letters, digits, '_', '-' and '.'", _TOOLS, MODERN),
    advice("unique-tool", "the names of a server's tools should be unique", _TOOLS, MODERN),
    modern("parameter-header", "x-mcp-header is a valid, unique header name on a string, integer or boolean", _TOOLS),
    Rule("completion", "a completion has at most 100 values, all of them strings", "server/utilities/completion"),
    modern("cache-hints", "a result that can be cached has ttlMs, at least 0, and cacheScope", _CACHING),
    modern("page-scope", "all pages of a list have the same cacheScope", _CACHING),
    modern("cache-question", "an input_required result has neither ttlMs nor cacheScope", _CACHING),
    Rule(
        "era",
        "a server of this revision asks during the call; a result that asks belongs to a later revision",
        "schema",
        last=NOVEMBER,
    ),
    # Errors
    modern(
        "error-code",
        "a server uses no code from -32020 to -32099 that the protocol does not define, and neither -32002 nor -32042",
        f'{_BASE} "Error Codes"',
    ),
    advice(
        "error-range",
        "the codes of a server's own errors should be outside -32768 to -32000",
        f'{_BASE} "Error Codes"',
        MODERN,
    ),
    modern(
        "error-data", "the errors -32021 and -32022 carry the data that the schema requires", f'{_BASE} "Error Codes"'
    ),
    modern(
        "error-status", "-32601 has the HTTP status 404, and -32020, -32021 and -32022 have the HTTP status 400", _HTTP
    ),
    Rule(
        "page-required",
        "the data of -32042 lists the pages to open",
        f'{_BASE} "Error Codes"',
        first=NOVEMBER,
        last=NOVEMBER,
    ),
    modern(
        "error-meaning",
        "-32020 is only used over HTTP, -32021 for a capability that was not declared, -32022 for another revision",
        f'{_BASE} "Error Codes"',
    ),
    advice("unknown-tool", "an unknown tool should be answered with -32602", _TOOLS),
    advice(
        "unknown-prompt", "an unknown prompt or a missing argument should be answered with -32602", "server/prompts"
    ),
    advice("argument-errors", "arguments that do not match the schema should be a result with isError", _TOOLS, MODERN),
    # Questions
    modern(
        "dialect",
        "the MCP shape is {resultType: input_required, inputRequests: a map}; an array is a compatibility dialect",
        _MRTR,
    ),
    modern("shape", "inputRequests is a map of key to {method, params}, and requestState a string", _MRTR),
    modern("empty", "an input_required result carries inputRequests or requestState, or both", _MRTR),
    modern("duplicate-key", "each question of a result has a key of its own", _MRTR),
    Rule(
        "question",
        "a question is elicitation/create, sampling/createMessage or roots/list with the params of that method",
        "schema",
    ),
    modern("method", "only tools/call, prompts/get and resources/read may ask for input", _MRTR),
    Rule("undeclared", "a server does not ask for what the client did not declare", _MRTR),
    Rule(
        "form",
        "a form is a flat object; its fields are strings, numbers, booleans, and choices from a list",
        _ELICITATION,
        first=JUNE,
    ),
    Rule("url", "a question that opens a page has a valid URL", _ELICITATION, first=NOVEMBER),
    Rule("url-secret", "the URL of a question contains no credentials", _ELICITATION, first=NOVEMBER),
    advice("url-https", "the URL of a question should use HTTPS outside development", _ELICITATION, NOVEMBER),
    Rule(
        "elicitation-id",
        "a question that opens a page has an elicitationId",
        _ELICITATION,
        first=NOVEMBER,
        last=NOVEMBER,
    ),
    Rule(
        "elicitation-complete",
        "notifications/elicitation/complete is sent only to the client that was asked to open the page",
        _ELICITATION,
        first=NOVEMBER,
        last=NOVEMBER,
    ),
    modern("elicitation-removed", "a server does not send notifications/elicitation/complete", "schema"),
    Rule(
        "tool-results",
        "a sampling message with tool results has nothing else, and answers every tool use of the message before it",
        "client/sampling",
        first=NOVEMBER,
    ),
    Rule("sampling-message", "a sampling message has the role user or assistant, and content", "client/sampling"),
    advice("declined", "a question that was declined should not be asked again unchanged", _ELICITATION, JUNE),
    advice("complete-asks", "a complete result should not carry inputRequests, which no client answers", _MRTR, MODERN),
    advice("missing-answer", "if an answer is missing, the server should ask again", _MRTR, MODERN),
    attack("unknown-answer", "answers that were not asked for should be ignored", _MRTR),
    # States
    modern(
        "state-verified",
        "a server must reject a requestState that was altered, or that belongs to another request, if it relies on it",
        _MRTR,
    ),
    advice(
        "state-ignored",
        "a requestState need not be verified if altering it can do no harm; make sure that this is meant",
        _MRTR,
        MODERN,
    ),
    modern("single-use", "what a state may cause only once is caused once, however often the state is sent", _MRTR),
    attack("state-bound", "a requestState should be for one caller, one round and a limited time", _MRTR),
    attack("answers-checked", "a server should check the form of inputResponses before it uses them", _MRTR),
    attack(
        "stale-answer",
        "an answer to one question should not count for another: a question whose words change needs a new key",
        _MRTR,
    ),
    attack(
        "process-state",
        "a call should not need the process that began it: any process can continue it with a valid requestState",
        f'{_BASE} "Statelessness"',
    ),
    # Notifications
    Rule("progress-token", "progress names the token of a request that is under way", _PROGRESS),
    Rule("progress-increases", "progress increases with each notification", _PROGRESS),
    modern(
        "log-level",
        "a server logs only during a request that asks for logs, and at or above the level it asks for",
        _LOGGING,
    ),
    Rule("logging-capability", "a server that sends logs declares the capability logging", _LOGGING),
    Rule("log-entry", "a log entry has one of the eight levels, and data", _LOGGING),
    modern(
        "unsubscribed",
        "changes of lists and resources are sent only on a stream that the client opened with subscriptions/listen",
        "basic/patterns/subscriptions",
    ),
    modern(
        "cancelled", "a server sends notifications/cancelled only to end a subscription", "basic/patterns/cancellation"
    ),
    Rule("cancels-own", "a server cancels only its own requests", "basic/patterns/cancellation", last=NOVEMBER),
    # Capabilities
    modern("undeclared-method", "a method without its declared capability is answered with -32601", _HTTP),
    modern(
        "declared-list", "a server that declares tools, prompts or resources answers the request for their list", _TOOLS
    ),
    Rule("capability", "a server declares the capability of each feature that it serves", "server/discover"),
)

RULES = {rule.name: rule for rule in (*_ALL, *PROBE_RULES)}
"""Each rule by its short name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a server broke, and how."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.text} ({self.rule}: {RULES[self.rule]})"

    @property
    def is_advice(self) -> bool:
        """Whether it fails nothing."""
        return RULES[self.rule].strength is Strength.ADVICE

    def as_json(self) -> dict[str, Any]:
        """Return the name of the rule and the text, for a report."""
        return {"rule": self.rule, "text": self.text}
