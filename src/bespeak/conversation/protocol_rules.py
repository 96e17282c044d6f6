"""The rules of the protocol that servers are checked against, and findings: rules that a server broke.

Each rule is one clause of the specification. A rule of strength `must` fails a test. A rule of strength `advice` stands for a
SHOULD: it is reported apart and fails nothing. A rule of strength `attack` also stands for a SHOULD, and fails only tests that
attack the server in this way. docs/rules.md lists them all, and the clauses that no rule checks.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MODERN = "2026-07-28"
NOVEMBER = "2025-11-25"
JUNE = "2025-06-18"


class Strength(StrEnum):
    """What it means to break a rule."""

    MUST = "must"
    """The test fails."""
    ADVICE = "advice"
    """It is reported, and the test passes."""
    ATTACK = "attack"
    """The protocol does not demand it, but a test that attacks the server in this way fails."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One clause of the specification that a client can check."""

    name: str
    sentence: str
    clause: str
    """The page of the specification, and the section in quotes if it is a long page."""
    strength: Strength = Strength.MUST
    first: str | None = None
    """The first revision that has the clause; `None` if all have it."""
    last: str | None = None
    """The last revision that has it; `None` if the newest has it."""

    def holds_at(self, version: str) -> bool:
        """Return whether the rule holds for a revision."""
        return (self.first is None or version >= self.first) and (self.last is None or version <= self.last)

    @property
    def revisions(self) -> str:
        """The revisions that have the clause, in words."""
        return revisions(self.first, self.last)

    def __str__(self) -> str:
        return f"{self.sentence}; see {self.clause}"


def revisions(first: str | None, last: str | None) -> str:
    """Return a range of revisions in words."""
    if first is None:
        return "all" if last is None else f"up to {last}"
    if first in (last, MODERN):
        return first
    return f"from {first}" if last is None else f"{first} to {last}"


def _advice(name: str, sentence: str, clause: str, first: str | None = None, last: str | None = None) -> Rule:
    return Rule(name, sentence, clause, Strength.ADVICE, first, last)


def _attack(name: str, sentence: str, clause: str) -> Rule:
    return Rule(name, sentence, clause, Strength.ATTACK, MODERN)


def _modern(name: str, sentence: str, clause: str) -> Rule:
    return Rule(name, sentence, clause, first=MODERN)


_BASE = "basic/index"
_MRTR = "basic/patterns/mrtr"
_PROGRESS = "basic/patterns/progress"
_HTTP = "basic/transports/streamable-http"
_TOOLS = "server/tools"
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
    _advice("duplicate-member", "an object should not have two members with the same name", "RFC 8259, section 4"),
    Rule("stdout", "a server writes nothing but messages to its standard output", "basic/transports/stdio"),
    _modern("pushed", "a server sends no requests; questions travel in results", "basic/patterns/index"),
    Rule("after-final", "nothing that belongs to a request is sent after its response", _PROGRESS),
    _modern("session-id", "a server does not send the header Mcp-Session-Id", _HTTP),
    # Results
    _modern("no-result-type", "each result has a resultType", f'{_BASE} "ResultType"'),
    _modern(
        "result-type",
        "resultType is complete or input_required, unless the client declared an extension that adds another",
        f'{_BASE} "ResultType"',
    ),
    Rule("result", "the members of a result have the types that the schema defines", "schema"),
    Rule("content", "a complete result has its required members, with blocks as the schema defines them", "schema"),
    Rule("structured-object", "structuredContent is an object", _TOOLS, first=JUNE, last=NOVEMBER),
    Rule(
        "output-schema",
        "the result of a tool with an outputSchema has structuredContent that matches it",
        _TOOLS,
        first=JUNE,
    ),
    Rule("tool-schema", "the inputSchema of a tool is a JSON Schema whose type is object", _TOOLS),
    Rule("completion", "a completion has at most 100 values, all of them strings", "server/utilities/completion"),
    _modern("cache-hints", "a result that can be cached has ttlMs, at least 0, and cacheScope", _CACHING),
    _modern("cache-question", "an input_required result has neither ttlMs nor cacheScope", _CACHING),
    Rule(
        "era",
        "a server of this revision asks during the call; a result that asks belongs to a later revision",
        "schema",
        last=NOVEMBER,
    ),
    # Errors
    _modern(
        "error-code",
        "a server uses no code from -32020 to -32099 that the protocol does not define, and neither -32002 nor -32042",
        f'{_BASE} "Error Codes"',
    ),
    _advice(
        "error-range",
        "the codes of a server's own errors should be outside -32768 to -32000",
        f'{_BASE} "Error Codes"',
        MODERN,
    ),
    _modern(
        "error-data", "the errors -32021 and -32022 carry the data that the schema requires", f'{_BASE} "Error Codes"'
    ),
    _modern(
        "error-status", "-32601 has the HTTP status 404, and -32020, -32021 and -32022 have the HTTP status 400", _HTTP
    ),
    # Questions
    _modern(
        "dialect",
        "the MCP shape is {resultType: input_required, inputRequests: a map}; an array is a compatibility dialect",
        _MRTR,
    ),
    _modern("shape", "inputRequests is a map of key to {method, params}, and requestState a string", _MRTR),
    _modern("empty", "an input_required result carries inputRequests or requestState, or both", _MRTR),
    _modern("duplicate-key", "each question of a result has a key of its own", _MRTR),
    Rule(
        "question",
        "a question is elicitation/create, sampling/createMessage or roots/list with the params of that method",
        "schema",
    ),
    _modern("method", "only tools/call, prompts/get and resources/read may ask for input", _MRTR),
    Rule("undeclared", "a server does not ask for what the client did not declare", _MRTR),
    Rule(
        "form",
        "a form is a flat object; its fields are strings, numbers, booleans, and choices from a list",
        _ELICITATION,
        first=JUNE,
    ),
    Rule("url", "a question that opens a page has a valid URL", _ELICITATION, first=NOVEMBER),
    Rule("url-secret", "the URL of a question contains no credentials", _ELICITATION, first=NOVEMBER),
    _advice("url-https", "the URL of a question should use HTTPS outside development", _ELICITATION, NOVEMBER),
    Rule(
        "elicitation-id",
        "a question that opens a page has an elicitationId",
        _ELICITATION,
        first=NOVEMBER,
        last=NOVEMBER,
    ),
    Rule(
        "tool-results",
        "a sampling message with tool results has nothing else, and answers every tool use of the message before it",
        "client/sampling",
        first=NOVEMBER,
    ),
    _advice("declined", "a question that was declined should not be asked again unchanged", _ELICITATION, JUNE),
    _advice(
        "complete-asks", "a complete result should not carry inputRequests, which no client answers", _MRTR, MODERN
    ),
    # States
    _modern(
        "state-verified",
        "a server must reject a requestState that was altered, or that belongs to another request, if it relies on it",
        _MRTR,
    ),
    _advice(
        "state-ignored",
        "a requestState need not be verified if altering it can do no harm; make sure that this is meant",
        _MRTR,
        MODERN,
    ),
    _modern("single-use", "what a state may cause only once is caused once, however often the state is sent", _MRTR),
    _attack("state-bound", "a requestState should be for one caller, one round and a limited time", _MRTR),
    _attack("answers-checked", "a server should check the form of inputResponses before it uses them", _MRTR),
    _attack(
        "stale-answer",
        "an answer to one question should not count for another: a question whose words change needs a new key",
        _MRTR,
    ),
    _attack(
        "process-state",
        "a call should not need the process that began it: any process can continue it with a valid requestState",
        f'{_BASE} "Statelessness"',
    ),
    # Notifications
    Rule("progress-token", "progress names the token of a request that is under way", _PROGRESS),
    Rule("progress-increases", "progress increases with each notification", _PROGRESS),
    _modern(
        "log-level",
        "a server logs only during a request that asks for logs, and at or above the level it asks for",
        _LOGGING,
    ),
    Rule("logging-capability", "a server that sends logs declares the capability logging", _LOGGING),
    Rule("log-entry", "a log entry has one of the eight levels, and data", _LOGGING),
    _modern(
        "unsubscribed",
        "changes of lists and resources are sent only on a stream that the client opened with subscriptions/listen",
        "basic/patterns/subscriptions",
    ),
    _modern(
        "cancelled", "a server sends notifications/cancelled only to end a subscription", "basic/patterns/cancellation"
    ),
    # Capabilities
    Rule("capability", "a server declares the capability of each feature that it serves", "server/discover"),
)

RULES = {rule.name: rule for rule in _ALL}
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
        return {"rule": self.rule, "text": self.text}
