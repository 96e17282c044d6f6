"""One live connection to a server: raw responses, their notifications, and messages that the server must not send.

It uses the client's session, which knows what each revision requires of a request. The session does not interpret responses.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, cast

from mcp_types import Implementation

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.client.negotiation import negotiate
from bespeak.client.session import ClientSession
from bespeak.conversation.differences import shown
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question, no_constant
from bespeak.protocol.errors import MCPError
from bespeak.protocol.legacy import capabilities_at, declared_at
from bespeak.protocol.methods import ELICIT, ROOTS, SAMPLE
from bespeak.protocol.question_keys import KEY_META
from bespeak.protocol.versions import is_modern
from bespeak.terminal.safe_text import quoted
from bespeak.transports.interfaces import Transport
from bespeak.transports.stdio.client import StdioTransport

SHOWN = 100_000
"""How many bytes of a stray line are shown."""
SETTLE_SECONDS = 2.0
DEEPEST = 200
"""How deeply a response may be nested."""
Push = Callable[[Question], Awaitable[Any]]
"""Answers a question that a server of an older revision pushes. Returns what to send, or `None` to send an error."""


@dataclass(frozen=True, slots=True)
class Received:
    """The response to one request, with its notifications and findings."""

    envelope: Any = field(repr=False)
    notifications: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    findings: list[Finding] = field(default_factory=list[Finding])


class Line(Protocol):
    """Where requests go: a live server, or a recording of one."""

    @property
    def version(self) -> str:
        """The negotiated revision."""
        ...

    async def send(self, method: str, params: dict[str, Any], push: Push) -> Received:
        """Send one request. Raises `OSError` (`TimeoutError` too) if no response comes."""
        ...

    def astray(self) -> list[Finding]:
        """Return the findings since the last call of this method that do not belong to a response."""
        ...

    async def settle(self) -> None:
        """Wait until everything that the server wrote with its last response has arrived."""
        ...


class Connection:
    """One client of one server, with given capabilities."""

    def __init__(self, transport: Transport, mode: str, declared: Mapping[str, Any], timeout: float) -> None:
        self._transport = transport
        self._mode = mode
        self._session = ClientSession(
            transport,
            answers=self,
            capabilities=dict(declared),
            client_info=Implementation(name="bespeak-test", version="1"),
            read_timeout_seconds=timeout,
            log_level="info",
            message_handler=self._noted,
        )
        self.timeout = timeout
        """How long a request may take, in seconds."""
        self._declared = dict(declared)
        self._push: Push | None = None
        self._keys: dict[str, int] = {}
        self._notifications: list[dict[str, Any]] = []
        self._findings: list[Finding] = []

    async def __aenter__(self) -> "Connection":
        await self._transport.__aenter__()
        try:
            await negotiate(self._session, self._mode)
            if self._transport.sends_headers and is_modern(self.version):
                # The list of tools says which arguments are repeated in headers.
                with suppress(MCPError, InvalidServerResponse):
                    await self._session.learn_parameter_headers()
        except BaseException as error:
            await self._transport.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._session.close()
        finally:
            await self._transport.__aexit__(kind, error, traceback)

    @property
    def version(self) -> str:
        return self._session.version

    @property
    def notifications(self) -> list[dict[str, Any]]:
        """The notifications of the current request so far."""
        return self._notifications

    @property
    def session(self) -> ClientSession:
        return self._session

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities the server may use, in the form of the latest revision."""
        if is_modern(self.version):
            return self._declared
        return capabilities_at(self.version, declared_at(self.version, self._declared))

    def stray(self, line: bytes) -> None:
        """Note a line that the server should not have written."""
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and "method" in message:
            asked: Any = cast("dict[str, Any]", message)["method"]
            self._findings.append(Finding("pushed", f"the server sent the request {shown(asked)}"))
        elif isinstance(message, dict) and ("result" in message or "error" in message):
            answered: Any = cast("dict[str, Any]", message).get("id")
            what = f"the server's response to request {shown(answered)} cannot be read, or there was no such request"
            self._findings.append(Finding("envelope", what))
        elif isinstance(message, list) and message:
            if is_modern(self.version):
                self._findings.append(Finding("envelope", "the server sent several messages in one array"))
        else:
            said = json.dumps(line[:SHOWN].decode(errors="replace"), ensure_ascii=False)
            rule = "envelope" if self._transport.sends_headers else "stdout"
            self._findings.append(Finding(rule, f"the server wrote {said}, which is not a message"))

    async def send(self, method: str, params: dict[str, Any], push: Push) -> Received:
        self._push, self._keys, self._notifications = push, {}, []
        try:
            sent = await self._session.exchange(
                method, params, read_timeout_seconds=self.timeout, progress_callback=_ignore
            )
        finally:
            self._push = None
        envelope, findings = read_strictly(sent.response, sent.id)
        return Received(envelope, self._notifications, findings)

    def astray(self) -> list[Finding]:
        found, self._findings = self._findings, []
        return found

    async def settle(self) -> None:
        if not isinstance(self._transport, StdioTransport):
            return
        # Everything goes through one pipe: when this response arrives, everything written before it has arrived.
        method = "server/discover" if is_modern(self.version) else "ping"
        with suppress(OSError, InvalidServerResponse):
            await self._session.exchange(method, {}, read_timeout_seconds=SETTLE_SECONDS)

    async def _noted(self, message: dict[str, Any]) -> None:
        params: Any = message.get("params", {})
        if isinstance(params, dict):  # without our own token, which differs in every request
            members = cast("dict[str, Any]", params).items()
            params = {name: value for name, value in members if name not in ("progressToken", "_meta")}
        self._notifications.append({"method": message["method"], "params": params})

    # Answering pushed questions

    def check_declared(self, key: str, question: Mapping[str, Any], pushed_to: Mapping[str, Any] | None = None) -> None:
        """Allow every question here: the conversation checks whether it may be asked."""

    async def answer(self, session: ClientSession, key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        method: str = question["method"]
        params = {name: value for name, value in question.get("params", {}).items() if name != "_meta"}
        meta: Any = question.get("params", {}).get("_meta")
        if not (isinstance(meta, dict) and isinstance(cast("dict[str, Any]", meta).get(KEY_META), str)):
            key = self._named(method, params)
        if self._push is None:
            raise CallbackFailed(key, method, "no call is under way")
        answered = await self._push(Question(key, method, params))
        if answered is None:
            raise CallbackFailed(key, method, "there is no answer to it")
        return answered

    def _named(self, method: str, params: Mapping[str, Any]) -> str:
        """A key for a question that was pushed without one: the form's only field, or the kind of question."""
        schema: Any = params.get("requestedSchema")
        fields: Any = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
        kinds = {ELICIT: "url" if params.get("mode") == "url" else "form", SAMPLE: "sampling", ROOTS: "roots"}
        only = cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}
        name = next(iter(only)) if len(only) == 1 else kinds[method]
        self._keys[name] = self._keys.get(name, 0) + 1
        return name if self._keys[name] == 1 else f"{name}#{self._keys[name]}"


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    """Do nothing: progress is kept with the other notifications."""


def read_strictly(response: bytes, id_: int) -> tuple[Any, list[Finding]]:
    """Parse a response, and find faults that a lenient parser would not notice."""
    findings: list[Finding] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        if len(read) < len(pairs):
            twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
            findings.append(
                Finding("duplicate-key", f"the response has the member {quoted(twice)} twice in one object")
            )
        return read

    try:
        envelope: Any = json.loads(response, object_pairs_hook=members, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return None, [Finding("envelope", "the response is not valid JSON")]
    if _depth(envelope) > DEEPEST:
        return None, [Finding("envelope", f"the response is nested more than {DEEPEST} levels deep")]
    if isinstance(envelope, dict):
        message = cast("dict[str, Any]", envelope)
        answered: Any = message.get("id")
        if message.get("jsonrpc") != "2.0":
            findings.append(Finding("envelope", "the response does not contain jsonrpc: 2.0"))
        if (answered != id_ or isinstance(answered, bool)) and not (answered is None and "error" in message):
            findings.append(
                Finding("envelope", f"the response has the id {shown(answered)}, which is not the id of its request")
            )
    return cast("Any", envelope), findings


def _depth(value: Any) -> int:
    """How many levels of arrays and objects there are."""
    depth, level = 0, [value]
    while level:
        level = [inner for one in level for inner in _inside(one)]
        depth += 1
    return depth - 1


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()
