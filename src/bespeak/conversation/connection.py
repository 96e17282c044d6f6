"""One live connection to a server: raw responses, their notifications, and messages that the server must not send.

It uses the client's session, which knows what each revision requires of a request. The session does not interpret responses.
"""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, cast

from mcp_types import Implementation, LoggingLevel, ServerCapabilities

from bespeak.client.errors import CallbackFailed, Declined, InvalidServerResponse
from bespeak.client.negotiation import negotiate
from bespeak.client.session import ClientSession
from bespeak.conversation.connection_answers import REFUSED, ConnectionAnswers, Outside, question_of
from bespeak.conversation.differences import shown
from bespeak.conversation.http_watch import HttpWatch
from bespeak.conversation.live_checks import LiveChecks
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from bespeak.conversation.strict_reading import read_strictly
from bespeak.protocol.capabilities import lacking, requirements
from bespeak.protocol.errors import MCPError
from bespeak.protocol.legacy import capabilities_at, declared_at
from bespeak.protocol.methods import ROOTS
from bespeak.protocol.versions import is_modern
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.interfaces import Transport
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.stdio.client import StdioTransport

SHOWN = 100_000
"""How many bytes of a stray line are shown."""
SETTLE_SECONDS = 2.0
TAKE_IN_SECONDS = 0.25
"""How long a server may take to use an answer that it got outside a call."""
Push = Callable[[Question], Awaitable[Any]]
"""Answers a question that a server of an older revision pushes. Returns what to send, `None` if the call has failed, or
`DECLINED`."""
DECLINED: dict[str, Any] = {"error": {"code": REFUSED, "message": "the user declined this request"}}
"""What is sent for sampling and roots that are declined. There is no result for that."""
Scripts = Callable[[Question], bool]
"""Returns whether the answers of a call have one for just this question."""
MOST_NOTED = 10_000
"""How many notifications of a request, and how many lines that are not messages, are kept."""
MOST_KEPT = 20
"""How many questions outside calls are kept for messages."""


def nothing(question: Question) -> bool:
    """Return false: a call without answers."""
    return False


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

    async def send(self, method: str, params: dict[str, Any], push: Push, scripts: Scripts = nothing) -> Received:
        """Send one request. Raises `OSError` (`TimeoutError` too) if no response comes.

        `push` answers the questions of the call. `scripts` helps to tell them from those that belong to no call.
        """
        ...

    def astray(self) -> list[Finding]:
        """Return the findings since the last call of this method that do not belong to a response."""
        ...

    async def settle(self) -> None:
        """Wait until everything that the server wrote with its last response has arrived."""
        ...


class Connection:
    """One client of one server, with given capabilities."""

    def __init__(
        self,
        transport: Transport,
        mode: str,
        declared: Mapping[str, Any],
        timeout: float,
        answers: ConnectionAnswers | None = None,
        log_level: LoggingLevel | None = "info",
        *,
        watch: HttpWatch | None = None,
    ) -> None:
        """`watch` is what sees the responses over HTTP, if there are any."""
        self._transport = transport
        self._mode = mode
        self._session = ClientSession(
            transport,
            answers=self,
            capabilities=dict(declared),
            client_info=Implementation(name="bespeak-test", version="1"),
            read_timeout_seconds=timeout,
            log_level=log_level,
            message_handler=self._noted,
            answer_outside=self._answer_outside,
            dropped=self._dropped,
        )
        self.timeout = timeout
        """How long a request may take, in seconds."""
        self.server_name = ""
        """What the server calls itself, once the connection is open."""
        self._declared = dict(declared)
        self._answers = answers or ConnectionAnswers()
        self.outside: list[Outside] = []
        """The first questions that belonged to no call."""
        self._unfit: dict[str, bool] = {}
        """Why prepared answers to such questions could not be sent, and whether that has been said."""
        self._answered_at: float | None = None
        """When the last of them was answered, if there was no call since."""
        self._push: Push | None = None
        self._scripts: Scripts = nothing
        self._keys: set[str] = set()
        """The keys of the call's questions so far."""
        self._asked: dict[str | int, Question] = {}
        """The questions of the call that are not answered yet, by the ids of their requests."""
        self._notifications: list[dict[str, Any]] = []
        self._findings: list[Finding] = []
        self._checks = LiveChecks(self._session, log_level, watch or HttpWatch(), self._declared)
        if isinstance(transport, HttpTransport | StdioTransport):
            transport.watch(self._checks)

    async def __aenter__(self) -> "Connection":
        await self._transport.__aenter__()
        try:
            described = await negotiate(self._session, self._mode)
            self._checks.server = described.capabilities
            self.server_name = described.info.name if described.info is not None else ""
            if self._transport.sends_headers and is_modern(self.version):
                # The list of tools says which arguments are repeated in headers.
                with suppress(MCPError, InvalidServerResponse):
                    await self._session.learn_parameter_headers()
            if not is_modern(self.version):
                await self._flush()  # so that what it asks right after the handshake comes before the first call
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

    def hurry(self) -> None:
        """Do not wait on closing until a server that was started leaves by itself: it does not respond."""
        if isinstance(self._transport, StdioTransport):
            self._transport.hurry()

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
    def server(self) -> ServerCapabilities:
        """What the server declares."""
        return self._checks.server

    @property
    def session_id(self) -> str | None:
        """The session that the server has named in a response over HTTP."""
        return self._checks.session_id

    def unfit_answers(self) -> list[str]:
        """Return why prepared answers to questions outside calls could not be sent. Each reason is returned once."""
        found = [problem for problem, said in self._unfit.items() if not said]
        self._unfit = dict.fromkeys(self._unfit, True)
        return found

    @contextmanager
    def listening(self, take: Callable[[dict[str, Any]], None]) -> Generator[None]:
        """Hand over all notifications while the block runs. They are not checked: a subscription is open."""
        self._checks.listener = take
        try:
            yield
        finally:
            self._checks.listener = None

    @property
    def keeps_state(self) -> bool | None:
        """Whether a new process of the server could continue a call; `None` if that is not known."""
        if not isinstance(self._transport, MemoryTransport):
            return None
        return getattr(self._transport.server, "keeps_state_keys", None)

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities the server may use, in the form of the latest revision."""
        if is_modern(self.version):
            return self._declared
        return capabilities_at(self.version, declared_at(self.version, self._declared))

    def stray(self, line: bytes) -> None:
        """Note a line that the server should not have written. Of a flood only the beginning is noted."""
        if len(self._findings) >= MOST_NOTED:
            return
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and "method" in message:
            asked: Any = cast("dict[str, Any]", message)["method"]
            self._findings.append(Finding("pushed", f"the server sent the request {shown(asked)}"))
        elif isinstance(message, dict) and ("result" in message or "error" in message):
            self._checks.unclaimed(line)
        elif isinstance(message, list) and message:
            if is_modern(self.version):
                self._findings.append(Finding("envelope", "the server sent several messages in one array"))
        else:
            said = json.dumps(line[:SHOWN].decode(errors="replace"), ensure_ascii=False)
            rule = "envelope" if self._transport.sends_headers else "stdout"
            self._findings.append(Finding(rule, f"the server wrote {said}, which is not a message"))

    async def send(self, method: str, params: dict[str, Any], push: Push, scripts: Scripts = nothing) -> Received:
        await self._let_take_in()
        self._push, self._scripts, self._keys, self._notifications = push, scripts, set(), []
        self._asked.clear()
        self._checks.begin()
        try:
            sent = await self._session.exchange(
                method, params, read_timeout_seconds=self.timeout, progress_callback=_ignore
            )
        finally:
            self._push = None
            self._checks.pause()
        envelope, findings = read_strictly(sent.response, sent.id)
        findings += self._checks.end(sent.id, method, params, envelope)
        return Received(envelope, self._notifications, findings)

    def astray(self) -> list[Finding]:
        found, self._findings = self._findings, []
        return found + self._checks.taken()

    async def settle(self) -> None:
        await self._flush()
        await self._checks.check_features()

    async def tools(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the tools that the server lists, by name; none if it does not list them."""
        return await self._checks.tools()

    async def _flush(self) -> None:
        if not isinstance(self._transport, StdioTransport):
            return
        # Everything goes through one pipe: when this response arrives, everything written before it has arrived.
        method = "server/discover" if is_modern(self.version) else "ping"
        with suppress(OSError, InvalidServerResponse):
            await self._session.exchange(method, {}, read_timeout_seconds=SETTLE_SECONDS)

    async def _let_take_in(self) -> None:
        """Give the server time to use the answer to a question outside a call, such as its new roots, before the next call.

        Nothing that it sends would say when it has done so.
        """
        if self._answered_at is not None:
            since, self._answered_at = asyncio.get_running_loop().time() - self._answered_at, None
            await asyncio.sleep(max(0.0, TAKE_IN_SECONDS - since))

    async def _noted(self, message: dict[str, Any]) -> None:
        if len(self._notifications) >= MOST_NOTED and not self._checks.listener:
            return  # a flood, of which the beginning says enough
        self._checks.heard(message)
        params: Any = message.get("params", {})
        if isinstance(params, dict):  # without our own token, which differs in every request
            members = cast("dict[str, Any]", params).items()
            params = {name: value for name, value in members if name not in ("progressToken", "_meta")}
        self._notifications.append({"method": message["method"], "params": params})

    # Answering pushed questions

    def check_declared(self, key: str, question: Mapping[str, Any], pushed_to: Mapping[str, Any] | None = None) -> None:
        """Allow every question here: the conversation checks whether it may be asked."""

    async def answer(self, session: ClientSession, key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        asked = self._asked.pop(question["id"])
        if self._push is None:
            raise CallbackFailed(asked.key, question["method"], "the call has ended")
        self._checks.pushed(asked)
        answered = await self._push(asked)
        if answered is DECLINED:
            raise Declined(DECLINED["error"]["message"])
        if answered is None:
            raise CallbackFailed(asked.key, question["method"], "there is no answer to it")
        return answered

    def _answer_outside(self, request: Mapping[str, Any], on_its_stream: bool) -> Mapping[str, Any] | None:
        """Return the response to a question that belongs to no call; `None` if it belongs to the open call."""
        self._checks.asked(request["id"], request.get("params"))
        question = question_of(request, self._numbered)
        if self._belongs_to_call(question, on_its_stream):
            self._keys.add(question.key)
            self._asked[request["id"]] = question
            return None
        outside = self._answers.answered(question_of(request), self.capabilities)
        if outside.problem:
            self._unfit.setdefault(outside.problem, False)
        self._answered_at = asyncio.get_running_loop().time()
        if len(self.outside) < MOST_KEPT:
            self.outside.append(outside)
        return outside.reply

    def _dropped(self, id_: Any) -> None:
        self._checks.dropped(id_)

    def _belongs_to_call(self, question: Question, on_its_stream: bool) -> bool:
        """Whether a question belongs to the open call.

        Over HTTP the call's own stream says so. Elsewhere it cannot be known. Servers often ask for roots by themselves,
        and rarely for anything else.
        """
        if self._push is None:
            return False
        if self._scripts(question):
            return True
        if self._answers.covers(question):
            return False
        known = on_its_stream and not isinstance(self._transport, StdioTransport)
        declared = not lacking(requirements(question.method or "", question.params), self.capabilities)
        return known or question.method != ROOTS or not declared

    def _numbered(self, name: str) -> str:
        """A key for the next question of that name in the call."""
        keys = itertools.chain([name], (f"{name}#{number}" for number in itertools.count(2)))
        return next(key for key in keys if key not in self._keys)


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    """Do nothing: progress is kept with the other notifications."""
