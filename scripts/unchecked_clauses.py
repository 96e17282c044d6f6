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
_SUBSCRIPTIONS = "basic/patterns/subscriptions"
_CANCELLATION = "basic/patterns/cancellation"
_HTTP = "basic/transports/streamable-http"
_AUTHORIZATION = "basic/authorization"
_TOOLS = "server/tools"
_ELICITATION = "client/elicitation"
_INSIDE = "happens inside the server"
_NO_LISTEN = "suites cannot open subscriptions"
_NO_RAW = "suites cannot send malformed requests or headers"
_SAY_SO = "a suite can say so with method and expect"

UNCHECKED = (
    # The base protocol
    _later(
        _BASE,
        "missing or invalid metadata of a request is answered with -32602, and over HTTP with status 400",
        _NO_RAW,
    ),
    _unseen(f'{_BASE} "Statelessness"', "a server takes no context from earlier requests on the connection", _INSIDE),
    _unseen(
        f'{_BASE} "Statelessness"', "state across requests is found by an identifier that the client sends", _INSIDE
    ),
    _later(
        _BASE,
        "results should carry serverInfo in _meta, unless the server is configured not to",
        "the exception is legal",
    ),
    _later(f'{_BASE} "Messages"', "a notification is not answered", "suites send no notifications", None),
    _later(
        f'{_BASE} "Error Codes"',
        "a resource that is not found is answered with -32602",
        "a suite can say so with expect",
    ),
    # Versions and capabilities
    _later("basic/versioning", "a version that is not supported is answered with -32022", _NO_RAW),
    _later(
        "server/discover",
        "a server implements server/discover",
        "a server without it counts as one of an older revision",
    ),
    _unseen("basic/versioning", "a server does not rely on capabilities that a client did not declare", _INSIDE),
    _later("basic/versioning", "an extension that only one side supports is not used", "suites know no extensions"),
    _later(
        "basic/lifecycle",
        "initialize is answered with the requested version if the server supports it",
        "the check is not written",
        None,
        NOVEMBER,
    ),
    # Multi round-trip requests
    _unseen(_MRTR, "a requestState is treated as if an attacker had written it", "tamper tests show only some of it"),
    _later(
        _MRTR, "a state that belongs to a user is bound to that user", "a suite can attack with tamper: other-caller"
    ),
    _unseen(_MRTR, "a server does not assume that a client answers or retries", _INSIDE),
    # Subscriptions, cancellation
    _later(_SUBSCRIPTIONS, "the acknowledgement is the first message of a subscription", _NO_LISTEN),
    _later(_SUBSCRIPTIONS, "each message of a subscription carries its subscriptionId", _NO_LISTEN),
    _later(_SUBSCRIPTIONS, "only what was asked for is sent on a subscription", _NO_LISTEN),
    _later(_CANCELLATION, "nothing is sent for a request that was cancelled", "suites cannot cancel", None),
    _unseen(_CANCELLATION, "over HTTP, closing the stream of a response cancels its request", _INSIDE),
    # Transports
    _later(_HTTP, "a request with an Origin that is not allowed is answered with status 403", _NO_RAW, None),
    _later(_HTTP, "headers that are missing or differ from the body are answered with -32020 and status 400", _NO_RAW),
    _later(_HTTP, "GET and DELETE should be answered with status 405 if no older revision is served", _NO_RAW),
    _later(_HTTP, "the stream of a response should be closed after the response", "the check is not written"),
    _later(
        _HTTP,
        "a session id is visible ASCII, and an unknown one is answered with status 404",
        "the check is not written",
        "2025-03-26",
        NOVEMBER,
    ),
    _unseen(
        "basic/transports/stdio", "a server should exit when its input ends", "servers are ended in any case", None
    ),
    # Authorization
    _later(
        _AUTHORIZATION,
        "a request without a valid token is answered with status 401 and WWW-Authenticate",
        _NO_RAW,
        JUNE,
    ),
    _later(
        _AUTHORIZATION,
        "the protected resource metadata names an authorization server",
        "the check is not written",
        JUNE,
    ),
    _unseen(
        _AUTHORIZATION,
        "a server accepts only tokens that were issued for it, and passes none on",
        _INSIDE,
        "2025-03-26",
    ),
    # Features
    _unseen(_TOOLS, "a server validates arguments, controls access, limits rates and sanitises output", _INSIDE, None),
    _unseen(
        _TOOLS,
        "the list of tools does not vary by connection or because of other requests",
        "lists may also change for other reasons",
    ),
    _later(
        _TOOLS,
        "the order of tools should be the same",
        _SAY_SO,
    ),
    _later(
        "server/resources",
        "a resource that does not exist is not answered with empty contents",
        "whether it exists is not known",
    ),
    _unseen("server/resources", "a server validates URIs, and sanitises file paths", _INSIDE, None),
    _later("server/utilities/pagination", "an invalid cursor should be answered with -32602", _SAY_SO, None),
    _later("server/utilities/caching", "lists that differ by user are not public", "a suite has one caller"),
    _later("server/utilities/logging", "an unknown level should be answered with -32602", _NO_RAW, None),
    _unseen("server/utilities/logging", "logs contain no secrets", "needs judgement", None),
    # Questions
    _unseen(_ELICITATION, "a form does not ask for secrets", "needs judgement", JUNE),
    _unseen(_ELICITATION, "who opens a page is the user who was asked", "happens in the browser", NOVEMBER),
    _unseen(_ELICITATION, "decline, cancel and clients that fail are handled", "a suite can say so with expect", JUNE),
    _unseen("client/sampling", "loops of tool use should be limited", "maxRounds ends the test", NOVEMBER),
)
"""The clauses without a rule."""
