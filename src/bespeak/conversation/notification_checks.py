"""Checks the notifications of a server: what belongs to a request, and what was sent outside of any."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bespeak.conversation.differences import shown
from bespeak.conversation.json_values import as_object, is_number, is_whole, kind_of
from bespeak.conversation.meta_keys import key_findings
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.protocol.methods import CHANGES
from bespeak.protocol.versions import is_modern

PROGRESS, LOG, CANCELLED = "notifications/progress", "notifications/message", "notifications/cancelled"
OPENED = "notifications/elicitation/complete"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of logs, from the lowest to the highest."""


@dataclass(slots=True)
class NotificationChecks:
    """What a connection knows that decides which notifications are allowed."""

    log_level: str | None
    """The level that each request asks for; `None` if it asks for no logs."""
    version: str = ""
    logs: bool = False
    """Whether the server declares that it logs."""
    finished: set[int] = field(default_factory=set[int])
    """The ids of the requests that have been answered. They are also their progress tokens."""
    asked: set[Any] = field(default_factory=set[Any])
    """The ids of the questions that the server has asked as requests of its own."""
    pages: set[str] = field(default_factory=set[str])
    """The ids of the pages that the server has asked the client to open."""
    last_id: int = 0
    """The id of the last request. The server may still report on one that the client has given up."""

    def of_request(self, token: int, messages: Sequence[Mapping[str, Any]]) -> list[Finding]:
        """Return the findings in the notifications of a request, in their order."""
        found: list[Finding] = []
        last: float | None = None
        for message in messages:
            params = _params(message)
            if message.get("method") == PROGRESS and _names(params.get("progressToken"), token):
                progress: Any = params.get("progress")
                if not is_number(progress):
                    found.append(Finding("progress-increases", f"progress is {kind_of(progress)}, not a number"))
                    continue
                if last is not None and progress <= last:
                    what = f"progress went from {shown(last)} to {shown(progress)}"
                    found.append(Finding("progress-increases", what))
                last = progress
            else:
                found += self._any(message)
        return self._holding(found)

    def of_none(self, message: Mapping[str, Any], *, idle: bool) -> list[Finding]:
        """Return the findings in a notification that belongs to no call. `idle` if no request at all was under way."""
        found = list(self._any(message))
        if idle and is_modern(self.version) and message.get("method") == LOG:
            found.append(Finding("after-final", "the server sent a log while no request was under way"))
        return self._holding(found)

    def _holding(self, found: Collection[Finding]) -> list[Finding]:
        return [finding for finding in found if RULES[finding.rule].holds_at(self.version)]

    def _any(self, message: Mapping[str, Any]) -> Iterator[Finding]:
        method, params = message.get("method"), _params(message)
        yield from key_findings(params, self.version)
        if method == PROGRESS:
            token: Any = params.get("progressToken")
            if is_whole(token) and token in self.finished:
                yield Finding("after-final", f"the server sent progress of request {shown(token)} after its response")
            elif not (is_whole(token) and 1 <= token <= self.last_id):
                yield Finding("progress-token", f"the server sent progress for the token {shown(token)}")
        elif method == LOG:
            yield from self._log(params)
        elif method in CHANGES or method == ACKNOWLEDGED:
            yield Finding("unsubscribed", f"the server sent {method}, but the client opened no subscription")
        elif method == OPENED:
            yield Finding("elicitation-removed", f"the server sent {OPENED}")
            page: Any = params.get("elicitationId")
            if not isinstance(page, str) or page not in self.pages:
                what = f"the server sent {OPENED} for {shown(page)}, but it asked for no such page to be opened"
                yield Finding("elicitation-complete", what)
        elif method == CANCELLED:
            id_: Any = params.get("requestId")
            yield Finding("cancelled", f"the server cancelled request {shown(id_)}")
            # An id that is neither ours nor that of a question may be the one of its ping.
            if is_whole(id_) and 1 <= id_ <= self.last_id and id_ not in self.asked:
                yield Finding(
                    "cancels-own", f"the server cancelled request {shown(id_)}, which is a request of the client"
                )

    def _log(self, params: Mapping[str, Any]) -> Iterator[Finding]:
        if not self.logs:
            yield Finding("logging-capability", "the server sent a log, but does not declare the capability logging")
        level: Any = params.get("level")
        if level not in LEVELS:
            yield Finding("log-entry", f"a log has the level {shown(level)}")
        elif self.log_level is None:
            yield Finding("log-level", f"the server sent a log of level {level}, but the request asked for none")
        elif LEVELS.index(level) < LEVELS.index(self.log_level):
            what = f"the server sent a log of level {level}, but the request asked for {self.log_level} and above"
            yield Finding("log-level", what)
        if "data" not in params:
            yield Finding("log-entry", "a log has no data")


def _params(message: Mapping[str, Any]) -> Mapping[str, Any]:
    params: Any = message.get("params")
    return as_object(params)


def _names(token: Any, id_: int) -> bool:
    return is_whole(token) and token == id_
