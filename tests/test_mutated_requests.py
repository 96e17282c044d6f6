"""Whatever is wrong with a request, its sender gets the code of the protocol: never an internal error, and no Python.

Valid requests of every method and revision are changed by a seeded generator and sent to a server that has one of everything,
over HTTP and stdio. Afterwards, honest requests are still served.
"""

import asyncio
import json
import logging
import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from mcp_types import PROTOCOL_VERSION_META_KEY

from bespeak import MCPServer
from bespeak.protocol.headers import encode_value, routing_headers
from bespeak.protocol.messages import Batch, LegacyRequest, MalformedMessage, Request, read_message
from tests.everything_requests import (
    CALLS,
    COMPLETIONS,
    FILTER,
    MARCH,
    MODERN,
    NOTIFICATIONS,
    OLDER,
    SCOPED,
    Json,
    hello,
    modern,
    modern_seeds,
    older_seeds,
    request,
)
from tests.everything_server import SCOPE, make_server
from tests.mutations import Mutant, mutants
from tests.server.auth.issuers import Issuer, protected_server
from tests.transports.stdio.wire import Wire
from tests.wires import Listening

SECONDS = 20.0
WAVE = 250
"""So many requests share the states of their seeds. A state is spent by the first request that settles its call."""
STATUSES = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}
REFUSALS = {400, 401, 403, 404, 405, 406, 409, 413, 415}
PYTHON = re.compile(r'Traceback|\b[A-Z][A-Za-z]+(Error|Exception)\b|File "|\.py\b|pydantic|site-packages|0x[0-9a-f]{6}')
NOBODY_AGREED = re.compile(r"(could not resolve: elicitation was (decline|cancel)\. .*|got no answer: .*)$")
"""What a prompt or a resource says with -32603 if a person declined, or nobody answered (design section 5)."""
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
ISSUER = Issuer()


def check(sent: bytes, message: Json, status: int | None = None) -> None:
    """Check one message of the server, and the HTTP status that came with it."""
    where = (sent[:500], message)
    assert message["jsonrpc"] == "2.0", where
    written = json.dumps(message)
    assert not PYTHON.search(written), where
    assert "internal error" not in written.lower(), where
    if "error" not in message:
        assert status in (None, 200), where
        return
    code = message["error"]["code"]
    nobody_agreed = code == -32603 and NOBODY_AGREED.search(message["error"]["message"])
    assert code in STATUSES or code == -32002 or nobody_agreed, where
    assert message["error"]["message"], where
    if status is None:
        return
    allowed = REFUSALS if code == -32600 else {STATUSES.get(code, 200)}
    assert status in (allowed if is_modern(sent) else {200, *allowed}), where


def is_modern(sent: bytes) -> bool:
    """Whether a request names its revision itself."""
    try:
        return PROTOCOL_VERSION_META_KEY in json.loads(sent)["params"]["_meta"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def wrong_answer(question: Json, random_: random.Random) -> Json:
    """An answer to a pushed question, mostly a wrong one."""
    accepted: Json = {"action": "accept", "content": {"value": random_.choice((True, 5, None))}}
    results: list[Any] = [{"action": "decline"}, {"action": 1}, accepted, "x", None, [1], {"a": 1}]
    if question.get("params", {}).get("mode") == "url":
        results.remove(accepted)  # that would be waited for
    answers: list[Json] = [{"result": one} for one in results]
    answers += [{"error": {"code": -1, "message": "no"}}, {"error": 5}]
    return {"jsonrpc": "2.0", "id": question["id"], **random_.choice(answers)}


# HTTP


class HttpAttacker:
    """Sends requests on connections of their own, and answers whatever it is asked."""

    def __init__(self, port: int, random_: random.Random, token: str | None = None) -> None:
        self._port = port
        self._random = random_
        self._token = token
        self.sessions: dict[str, str] = {}

    def headers(self, version: str, message: Any) -> dict[str, str]:
        found = {
            "host": "127.0.0.1",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        if self._token is not None:
            found["authorization"] = f"Bearer {self._token}"
        if version != MODERN:
            session = {"mcp-session-id": self.sessions[version]} if version in self.sessions else {}
            return {**found, **session, **({"mcp-protocol-version": version} if version > MARCH else {})}
        sent = cast("Json", message) if isinstance(message, dict) else {}
        method, params = str(sent.get("method")), sent.get("params")
        known = cast("Json", params) if isinstance(params, dict) else {}
        found |= {**routing_headers(version, method, known), "Mcp-Method": encode_value(method)[:2000]}
        arguments = known.get("arguments")
        given = cast("Json", arguments) if isinstance(arguments, dict) else {}
        for name in ("region", "count"):
            if given.get(name) is not None:
                found[f"mcp-param-{name}"] = encode_value(str(given[name]))[:2000]
        return found

    async def send(self, body: bytes, headers: list[tuple[str, str]], verb: str = "POST") -> tuple[int, list[Any], str]:
        """Return the status, the messages, and the new session if there is one."""
        given = [*headers, ("content-length", str(len(body))), ("connection", "close")]
        head = "".join(f"{name}: {value}\r\n" for name, value in given)
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                writer.write(f"{verb} /mcp HTTP/1.1\r\n{head}\r\n".encode("latin-1", "replace") + body)
                return await self._answer(reader, headers, verb, listens=b"subscriptions/listen" in body)
            finally:
                writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, sent: list[tuple[str, str]], verb: str, *, listens: bool
    ) -> tuple[int, list[Any], str]:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:] if line)}
        status, session = int(lines[0].split()[1]), headers.get("mcp-session-id", "")
        if headers.get("content-type") != "text/event-stream":
            body = await reader.read()
            return status, _listed(json.loads(body)) if body else [], session
        messages: list[Any] = []
        while verb != "GET" and (line := await reader.readline()):
            if line.startswith(b"data: "):
                found = _listed(json.loads(line[6:]))
                messages += found
                for one in found:
                    if "method" in one and "id" in one:
                        await self._reply(one, sent)
                if listens and messages[0].get("method") == ACKNOWLEDGED:
                    break
        return status, messages, session

    async def _reply(self, question: Json, headers: list[tuple[str, str]]) -> None:
        """Answer a pushed question."""
        answer = json.dumps(wrong_answer(question, self._random)).encode()
        status, messages, _ = await self.send(answer, headers)
        assert (status, messages) == (202, []) or status == 400, (answer, status, messages)

    async def ask(self, message: Json, version: str = MODERN) -> Json:
        """Send an honest request, and return the response to it."""
        _, messages, session = await self.send(
            json.dumps(message).encode(), list(self.headers(version, message).items())
        )
        if session:
            self.sessions[version] = session
        return messages[-1]

    async def greet(self, version: str) -> None:
        self.sessions.pop(version, None)
        assert "result" in await self.ask(hello(version), version)

    async def attack(self, mutant: Mutant) -> None:
        """Send a wrong request, and check what comes back."""
        version = mutant.seed.version
        right = self.headers(version, mutant.message)
        headers, verb = list(right.items()), "POST"
        if self._random.random() < 0.15:
            headers = self._wrong_headers(headers)
        if self._random.random() < 0.02:
            verb = self._random.choice(("GET", "DELETE", "PUT", "HEAD", "OPTIONS"))
        status, messages, session = await self.send(mutant.body, headers, verb)
        if not messages and verb != "GET":
            assert status in ({202, 204} if verb != "HEAD" else REFUSALS), (mutant, status)
        for message in messages:
            if "method" not in message:
                check(mutant.body, message, status)
        if version != MODERN and (session or status == 404 or verb == "DELETE"):
            await self.greet(version)

    def _wrong_headers(self, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        at = self._random.randrange(1, len(headers))
        name, value = headers[at]
        other = self._random.choice(
            ("", "x", "2026-07-28", "2025-06-18", "=?base64?!?=", "\xff", "a" * 3000, value + "x")
        )
        changed = self._random.choice(
            ([], [(name, other)], [(name, value), (name, value)], [(name, value), (name, other)])
        )
        extra = self._random.choice(
            ([], [("last-event-id", other)], [("mcp-param-region", other)], [("origin", other)])
        )
        return [*headers[:at], *changed, *headers[at + 1 :], *extra]


def _listed(found: Any) -> list[Any]:
    return cast("list[Any]", found) if isinstance(found, list) else [found]


@asynccontextmanager
async def attacked(
    mcp: MCPServer[Any], random_: random.Random, token: str | None = None
) -> AsyncGenerator[HttpAttacker]:
    async with Listening(mcp.streamable_http_app(), "httptools") as server:
        attacker = HttpAttacker(server.port, random_, token)
        for version in OLDER:
            await attacker.greet(version)
        yield attacker


async def attack_over_http(
    mcp: MCPServer[Any], count: int, seed: int, token: str | None = None, *, staff: bool = False
) -> None:
    random_, scoped = random.Random(seed), token is not None
    async with attacked(mcp, random_, token) as attacker:
        older = [one for version in OLDER for one in older_seeds(version, scoped=scoped)]
        for done in range(0, count, WAVE):
            seeds = [*await modern_seeds(attacker.ask, scoped=scoped), *older]
            random_.shuffle(seeds)
            for mutant in mutants(seeds, random_, min(WAVE, count - done)):
                await attacker.attack(mutant)
        for version in (MODERN, *OLDER):
            if version != MODERN:
                await attacker.greet(version)
            for message in honest(version, scoped=staff):
                answer = await attacker.ask(message, version)
                assert "result" in answer or answer.get("method") == ACKNOWLEDGED, (message, answer)


def honest(version: str, *, scoped: bool = False) -> list[Json]:
    """One request of each kind that is answered at once."""
    write = modern if version == MODERN else request
    sent: list[tuple[str, Json]] = [*CALLS, *(SCOPED if scoped else ())]
    sent += [("completion/complete", one) for one in COMPLETIONS]
    sent += [("subscriptions/listen", {"notifications": FILTER}) if version == MODERN else ("ping", {})]
    return [write(method, params) for method, params in sent]


@pytest.fixture(autouse=True)
def nothing_is_an_error(caplog: pytest.LogCaptureFixture) -> Any:
    """No attack is worth a line in the log that wakes somebody up."""
    yield
    errors = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert errors == []


@pytest.mark.long
async def test_over_http() -> None:
    await attack_over_http(make_server(), 600, seed=600)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
async def test_ten_thousand_over_http(seed: int) -> None:
    await attack_over_http(make_server(), 1_000, seed)


@pytest.mark.parametrize("scope", [SCOPE, ""])
@pytest.mark.long
async def test_over_http_with_authentication(scope: str) -> None:
    await attack_with_token(scope, 200, seed=200)


@pytest.mark.long
@pytest.mark.parametrize("scope", [SCOPE, ""])
@pytest.mark.parametrize("seed", range(3))
async def test_six_thousand_over_http_with_authentication(seed: int, scope: str) -> None:
    await attack_with_token(scope, 1_000, seed)


async def attack_with_token(scope: str, count: int, seed: int) -> None:
    mcp = make_server(scopes=[SCOPE], server=protected_server(ISSUER, page_size=3, question_timeout=2.0))
    await attack_over_http(mcp, count, seed, ISSUER.token("alice", scope), staff=bool(scope))


# stdio


class StdioAttacker:
    """Sends lines to a server, each when the one before was answered, and answers whatever it is asked."""

    def __init__(self, wire: Wire, random_: random.Random) -> None:
        self._wire = wire
        self._random = random_
        self._sent = 0

    async def ask(self, message: Json) -> Json:
        """Send an honest request, and return the response to it, or the acknowledgement that it is listened to."""
        return (await self.send(json.dumps(message).encode()))[-1]

    async def send(self, line: bytes) -> list[Any]:
        """Send a line, and return what the server says until that line and one more request are answered."""
        self._sent += 1
        last = f"the last {self._sent}"
        self._wire.send(line + b"\n", modern("server/discover", id_=last))
        messages: list[Any] = []
        wanted: set[Any] = {last, _awaited(line)} - {None}
        while wanted:
            said: Any = await self._wire.next()
            if isinstance(said, list) or "id" not in said:
                wanted.discard(A_BATCH)
            for one in _listed(said):
                wanted.discard(None if "method" in one else one.get("id"))
                if "method" in one and "id" in one:
                    self._wire.send(wrong_answer(one, self._random))
                elif one.get("method") == ACKNOWLEDGED:
                    listening = one["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
                    stop = {**NOTIFICATIONS[1], "params": {"requestId": listening}}
                    wanted = (wanted - {listening}) | {f"{last}, stopped"}
                    self._wire.send(stop, modern("server/discover", id_=f"{last}, stopped"))
                if not str(one.get("id")).startswith("the last"):
                    messages.append(one)
        return messages

    async def attack(self, mutant: Mutant) -> None:
        """Send a wrong line, and check what comes back."""
        line = mutant.body.replace(b"\n", b" ")
        for message in await self.send(line):
            if "method" not in message:
                check(line, message)


A_BATCH = "the responses to a batch"


def _awaited(line: bytes) -> Any:
    """The id of the response that a line is answered with, some time; `None` if that happens at once, or never."""
    try:
        message = read_message(line)
    except MalformedMessage:
        return None
    if isinstance(message, Batch):
        answered = any(isinstance(one, LegacyRequest) for one in message.messages)
        return A_BATCH if answered and not any(isinstance(one, Request) for one in message.messages) else None
    return message.id if isinstance(message, (Request, LegacyRequest)) else None


async def attack_over_stdio(count: int, seed: int, version: str | None) -> None:
    """Attack one process of a client that has made a handshake at an older revision, or none."""
    random_ = random.Random(seed)
    async with Wire(make_server()) as wire:
        attacker = StdioAttacker(wire, random_)
        if version is not None:
            assert "result" in await attacker.ask(hello(version))
        for done in range(0, count, WAVE):
            seeds = [*await modern_seeds(attacker.ask), *older_seeds(version or MARCH)]
            random_.shuffle(seeds)
            for mutant in mutants(seeds, random_, min(WAVE, count - done)):
                await attacker.attack(mutant)
        for one in (MODERN, version) if version is not None else (MODERN,):
            for message in honest(one):
                answer = await attacker.ask(message)
                assert "result" in answer or answer.get("method") == ACKNOWLEDGED, (message, answer)


@pytest.mark.parametrize("version", [None, *OLDER])
@pytest.mark.parametrize("count", [150, pytest.param(2_000, marks=pytest.mark.long)])
async def test_on_stdio(count: int, version: str | None) -> None:
    await attack_over_stdio(count, count, version)
