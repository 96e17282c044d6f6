"""The clauses about servers that no rule checks: those that a client cannot see, and those that are left for later.

Together with `bespeak.conversation.protocol_rules` this is every clause of the specification that concerns a server.
"""

from dataclasses import dataclass

from bespeak.conversation.rule_types import JUNE, MODERN, NOVEMBER, Strength, revisions


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A clause that no rule checks."""

    clause: str
    """The page of the specification, as in a rule."""
    sentence: str
    why: str
    """Why a client cannot see it, or what is missing here."""
    later: bool = False
    """Whether it could be checked."""
    first: str | None = None
    last: str | None = None

    @property
    def revisions(self) -> str:
        """The revisions that have the clause, in words."""
        return revisions(self.first, self.last)

    @property
    def strength(self) -> Strength:
        """The strength that a rule would have."""
        return Strength.ADVICE if " should " in self.sentence else Strength.MUST


def _unseen(clause: str, sentence: str, why: str, first: str | None = MODERN, last: str | None = None) -> Unchecked:
    return Unchecked(clause, sentence, why, first=first, last=last)


def _later(clause: str, sentence: str, why: str, first: str | None = MODERN, last: str | None = None) -> Unchecked:
    return Unchecked(clause, sentence, why, True, first, last)


_BASE = "basic/index"
_MRTR = "basic/patterns/mrtr"
_CANCELLATION = "basic/patterns/cancellation"
_HTTP = "basic/transports/streamable-http"
_AUTHORIZATION = "basic/authorization"
_TOOLS = "server/tools"
_ELICITATION = "client/elicitation"
_INSIDE = "happens inside the server"

UNCHECKED = (
    # The base protocol
    _unseen(f'{_BASE} "Statelessness"', "a server takes no context from earlier requests on the connection", _INSIDE),
    _unseen(
        f'{_BASE} "Statelessness"', "state across requests is found by an identifier that the client sends", _INSIDE
    ),
    _unseen(
        _BASE,
        "results should carry serverInfo in _meta, unless the server is configured not to",
        "its configuration is not known",
    ),
    _later(
        f'{_BASE} "Messages"',
        "several messages that come in one array are answered",
        "no test sends several messages at once",
        "2025-03-26",
        "2025-03-26",
    ),
    _unseen(
        f'{_BASE} "JSON Schema Usage"',
        "a server supports JSON Schema 2020-12, and follows no $ref to the network unless it is told to",
        _INSIDE,
    ),
    # Versions and capabilities
    _later(
        "basic/lifecycle",
        "initialize with a revision that the server does not support is answered with one that it supports",
        "handshakes are made only at revisions that the tool speaks",
        None,
        NOVEMBER,
    ),
    _later(
        "basic/utilities/tasks",
        "tasks keep their rules: states, identifiers, results, cancellation",
        "tasks are experimental at this revision, and no test uses them",
        NOVEMBER,
        NOVEMBER,
    ),
    _unseen(
        "server/discover",
        "a server implements server/discover",
        "a server without it counts as one of an older revision",
    ),
    _unseen("basic/versioning", "a server does not rely on capabilities that a client did not declare", _INSIDE),
    _unseen(
        "basic/versioning",
        "an extension that only one side supports is not used",
        "what an extension adds is known to it alone; an unknown resultType is found",
    ),
    # Multi round-trip requests
    _unseen(_MRTR, "a requestState is treated as if an attacker had written it", "tamper tests show only some of it"),
    _unseen(
        _MRTR,
        "a state that belongs to a user is bound to that user",
        "whose state it is is not known; tamper: other-caller shows whether it is bound at all",
    ),
    _unseen(_MRTR, "a server does not assume that a client answers or retries", _INSIDE),
    # Subscriptions, cancellation
    _unseen(
        _CANCELLATION,
        "nothing is sent for a request that was cancelled",
        "what comes may have been sent before the cancellation arrived",
        None,
    ),
    _unseen(_CANCELLATION, "over HTTP, closing the stream of a response cancels its request", _INSIDE),
    _later(
        "basic/patterns/subscriptions",
        "no logs are sent on the stream of a subscription",
        "a probe ends its subscription after the first message",
    ),
    _unseen(
        _CANCELLATION,
        "a server that ends a subscription over stdio sends notifications/cancelled",
        "when a server ends one is its own decision",
    ),
    # Transports
    _later(
        _HTTP,
        "the header of a parameter that is missing or differs from the body is answered with -32020 and status 400",
        "probes call no tools of the server",
    ),
    _later(
        _HTTP,
        "the id of an event is used once in a session",
        "ids of events are looked at only at 2026-07-28, where there are none",
        "2025-03-26",
        NOVEMBER,
    ),
    _later(
        _HTTP,
        "each message is sent on only one stream",
        "messages of different streams are not compared",
        "2025-03-26",
        NOVEMBER,
    ),
    _unseen(_HTTP, "the stream of a response should be closed after the response", "nothing says how soon"),
    _unseen(
        _HTTP,
        "a session id is visible ASCII",
        "a connection with any other is refused before a test runs",
        "2025-03-26",
        NOVEMBER,
    ),
    _unseen(
        "basic/transports/stdio", "a server should exit when its input ends", "servers are ended in any case", None
    ),
    # Authorization
    _unseen(
        _AUTHORIZATION,
        "a server accepts only tokens that were issued for it, and passes none on",
        _INSIDE,
        "2025-03-26",
    ),
    _unseen(
        _AUTHORIZATION,
        "the scopes of a challenge take into account that one scope may include others",
        "which scope includes which is known only to the authorization server",
    ),
    # Features
    _unseen(_TOOLS, "a server validates arguments, controls access, limits rates and sanitises output", _INSIDE, None),
    _unseen(
        _TOOLS,
        "the list of tools does not vary by connection or because of other requests",
        "lists may also change for other reasons",
    ),
    _unseen("server/resources", "a server validates URIs, and sanitises file paths", _INSIDE, None),
    _later(
        "server/utilities/caching",
        "lists that differ by user are not public",
        "only tamper: other-caller has a second caller, and lists are not compared",
    ),
    _unseen("server/utilities/logging", "logs contain no secrets", "needs judgement", None),
    # Questions
    _unseen(_ELICITATION, "a form does not ask for secrets", "needs judgement", JUNE),
    _unseen(_ELICITATION, "who opens a page is the user who was asked", "happens in the browser", NOVEMBER),
    _unseen(
        _ELICITATION,
        "a page is not a way to log in to the server itself, and no credentials of third parties come to the client",
        "happens in the browser, and inside the server",
        NOVEMBER,
    ),
    _unseen(_ELICITATION, "decline, cancel and clients that fail are handled", "a suite can say so with expect", JUNE),
    _unseen("client/sampling", "loops of tool use should be limited", "maxRounds ends the test", NOVEMBER),
)
"""The clauses without a rule."""
