"""Checks all that a live server sends against the rules, one request at a time.

A recording is not checked again: it was checked when it was made, and what was redacted no longer has its form.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from mcp_types import ServerCapabilities

from bespeak.client.session import ClientSession
from bespeak.conversation.differences import shown
from bespeak.conversation.feature_checks import FeatureChecks
from bespeak.conversation.http_watch import HttpWatch
from bespeak.conversation.json_values import as_array, as_object, is_whole
from bespeak.conversation.notification_checks import NotificationChecks
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.conversation.question_checks import question_findings
from bespeak.conversation.responses import Question, read_question
from bespeak.conversation.result_checks import response_findings
from bespeak.conversation.rule_types import MARCH
from bespeak.protocol.errors import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from bespeak.protocol.headers import SESSION_HEADER
from bespeak.protocol.messages import is_id
from bespeak.terminal.safe_text import quoted

STATUSES = {-32601: 404, -32020: 400, -32021: 400, -32022: 400}
"""The HTTP status of each error that has one."""
FEATURES = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "completion": "completions",
    "logging": "logging",
}
"""The capability of each feature, by the first part of its methods."""

LISTS = ("tools/list", "prompts/list", "resources/list")
"""What a server answers if it declares the feature."""

MOST_LATE = 1000
"""How many messages that nothing waited for are kept."""
_BEFORE_METHODS = (HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION)
"""Errors that a server finds before it looks at the method."""


class LiveChecks:
    """The checks of one connection."""

    def __init__(
        self, session: ClientSession, log_level: str | None, watch: HttpWatch, declared: Mapping[str, Any]
    ) -> None:
        self._declared = declared
        self.server = ServerCapabilities()
        """What the server declares."""
        self.session_id: str | None = None
        """The session that a response over HTTP has named."""
        self.listener: Callable[[dict[str, Any]], None] | None = None
        """Takes all notifications while the client has a subscription, in place of the checks."""
        self._session = session
        self._watch = watch
        self._notifications = NotificationChecks(log_level)
        self._features = FeatureChecks(session)
        self._is_open = False
        self._heard: list[dict[str, Any]] = []
        """The notifications of the request that is under way."""
        self._late: list[Any] = []
        """Messages that nothing waited for."""
        self._found: list[Finding] = []
        self._responses: dict[int, tuple[int, bool]] = {}
        """The HTTP status of each response, and whether it was streamed."""

    # Around a request

    def begin(self) -> None:
        """Take notifications as those of a request from now on."""
        self._is_open, self._heard = True, []
        self._responses.clear()

    def end(self, id_: int, method: str, params: Mapping[str, Any], envelope: Any) -> list[Finding]:
        """Return what is wrong with the response to a request, and with its notifications."""
        self._prepare()
        self._notifications.finished.add(id_)
        for page in as_array(as_object(as_object(as_object(envelope).get("error")).get("data")).get("elicitations")):
            self._opens(as_object(page))
        found = self._notifications.of_request(id_, self._heard)
        found += response_findings(method, envelope, self._session.version)
        others = (self._capability(method, envelope), self._status(id_, envelope), self._meaning(envelope))
        found += self._holding([finding for one in others for finding in one])
        self._features.keep(method, params, envelope)
        return found

    def pause(self) -> None:
        """Take notifications as those of no request from now on."""
        self._is_open = False

    def _capability(self, method: str, envelope: Any) -> list[Finding]:
        name = FEATURES.get(method.partition("/")[0])
        if name is None or (name == "completions" and self._session.version < MARCH):  # which did not have it
            return []
        if getattr(self.server, name) is not None:
            return self._list(method, envelope, name)
        if "result" in as_object(envelope):
            return [Finding("capability", f"the server answers {method}, but does not declare the capability {name}")]
        code = _code(envelope)
        if code in (METHOD_NOT_FOUND, *_BEFORE_METHODS) or not is_whole(code):
            return []
        what = f"{method} was answered with {code}, but the server does not declare the capability {name}"
        return [Finding("undeclared-method", what)]

    def _list(self, method: str, envelope: Any, name: str) -> list[Finding]:
        if method not in LISTS or _code(envelope) != METHOD_NOT_FOUND:
            return []
        what = f"the server declares the capability {name}, and answers {method} with {METHOD_NOT_FOUND}"
        return [Finding("declared-list", what)]

    def _meaning(self, envelope: Any) -> list[Finding]:
        """What is wrong with the use of an error that the protocol defines."""
        code, data = _code(envelope), as_object(as_object(as_object(envelope).get("error")).get("data"))
        if code == HEADER_MISMATCH and not self._session.transport.sends_headers:
            return [Finding("error-meaning", f"the error {code} came over a transport without headers")]
        if code == UNSUPPORTED_PROTOCOL_VERSION and self._session.version in as_array(data.get("supported")):
            what = (
                f"the error {code} says that {self._session.version} is supported, which is the revision of the request"
            )
            return [Finding("error-meaning", what)]
        needed = as_object(data.get("requiredCapabilities"))
        if code == MISSING_REQUIRED_CLIENT_CAPABILITY and needed and _declares(self._declared, needed):
            what = f"the error {code} asks for {', '.join(map(quoted, needed))}, which the client declared"
            return [Finding("error-meaning", what)]
        return []

    def _status(self, id_: int, envelope: Any) -> list[Finding]:
        status, streamed = self._responses.get(id_, (0, False))
        code = _code(envelope)
        wanted = STATUSES.get(code) if is_whole(code) else None
        if not status or wanted in (None, status):
            return []
        if streamed and self._heard:  # the status was sent before the server knew of the error
            return []
        return [Finding("error-status", f"the error {code} came with the HTTP status {status}, not {wanted}")]

    # What belongs to no request

    def heard(self, message: dict[str, Any]) -> None:
        """Take a notification, in the order of arrival."""
        if self.listener is not None:
            self.listener(message)
        elif self._is_open:
            self._heard.append(message)
        else:
            self._prepare()
            self._found += self._notifications.of_none(message, idle=False)

    def responded(self, request: int, status: int, headers: Mapping[str, str], *, streamed: bool) -> None:
        self._responses[request] = status, streamed
        if SESSION_HEADER in headers:
            if headers[SESSION_HEADER] != self.session_id:  # ids begin anew in a new session
                self._notifications.asked.clear()
            self.session_id = headers[SESSION_HEADER]
            self._found.append(Finding("session-id", f"the server sent the header {SESSION_HEADER}"))

    def unclaimed(self, message: bytes) -> None:
        try:
            read: Any = json.loads(message)
        except (ValueError, RecursionError):
            read = None
        if self.listener is not None and "method" in as_object(read):
            self.listener(read)
        elif len(self._late) < MOST_LATE:
            self._late.append(read)

    def taken(self) -> list[Finding]:
        """Return what was found outside of responses since the last time."""
        self._prepare()
        for message in self._late:
            self._found += self._out_of_place(message)
        found, self._found, self._late = [*self._found, *self._watch.taken()], [], []
        return self._holding(found)  # the revision is known by now

    def _out_of_place(self, read: Any) -> list[Finding]:
        if not isinstance(read, dict):
            return [Finding("after-final", "the server sent something else than a message after its response")]
        message = cast("dict[str, Any]", read)
        if "method" not in message:
            return self._second(message.get("id"))
        if "id" in message:
            return [Finding("pushed", f"the server sent the request {shown(message['method'])}")]
        return self._notifications.of_none(message, idle=True)

    def _second(self, id_: Any) -> list[Finding]:
        """What is wrong with a response that nothing waits for."""
        if is_whole(id_) and id_ in self._notifications.finished:
            return [Finding("after-final", f"the server sent another response to request {shown(id_)} after the first")]
        if is_whole(id_) and 1 <= id_ <= self._session.last_id:  # the client no longer waits for it
            self._notifications.finished.add(int(id_))
            return []
        what = f"the server's response to request {shown(id_)} cannot be read, or there was no such request"
        return [Finding("envelope", what)]

    def _prepare(self) -> None:
        self._notifications.version = self._session.version
        self._notifications.logs = self.server.logging is not None
        self._notifications.last_id = self._session.last_id

    def _holding(self, found: list[Finding]) -> list[Finding]:
        return [finding for finding in found if RULES[finding.rule].holds_at(self._session.version)]

    # Questions of older revisions

    def asked(self, id_: Any, params: Any = None) -> None:
        """Note the id of a question that the server sends as a request of its own, and of the page that it wants opened."""
        self._opens(as_object(params))
        if id_ in self._notifications.asked and (
            self.session_id is not None or not self._session.transport.sends_headers
        ):
            self._found.append(Finding("request-id", f"the server sent another request with the id {shown(id_)}"))
        self._notifications.asked.add(id_)

    def _opens(self, asked: Mapping[str, Any]) -> None:
        if isinstance(page := asked.get("elicitationId"), str):
            self._notifications.pages.add(page)

    def dropped(self, id_: Any) -> None:
        """Note a request of the server that the client does not answer, because of its id."""
        if is_id(id_):
            self.asked(id_)
        elif len(self._found) < MOST_LATE:
            self._found.append(Finding("request-id-type", f"the server sent a request with the id {shown(id_)}"))

    def pushed(self, question: Question) -> None:
        """Check a question that was asked during a call. One without the params it needs is refused elsewhere."""
        for asked in read_question(question).questions:
            self._found += question_findings(asked, self._session.version)

    # What the server lists

    async def tools(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the tools that the server lists, by name; none if they cannot be listed."""
        return await self._features.tools(self.server)

    async def check_features(self) -> None:
        """Compare the calls since the last time with what the server lists."""
        self._found += await self._features.check(self.server)


def _code(envelope: Any) -> Any:
    return as_object(as_object(envelope).get("error")).get("code")


def _declares(declared: Mapping[str, Any], needed: Mapping[str, Any]) -> bool:
    """Whether a client declares all that is needed. `elicitation: {}` means forms."""
    for name, part in needed.items():
        if name not in declared:
            return False
        has, wants = as_object(declared[name]), as_object(part)
        if name == "elicitation":
            has, wants = has or {"form": {}}, wants or {"form": {}}
        if not _declares(has, wants):
            return False
    return True
