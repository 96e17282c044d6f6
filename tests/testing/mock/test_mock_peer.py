"""The mock and one client of an older revision: the handshake, small requests, and a client that goes away."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bespeak.protocol.messages import LegacyRequest, Notification, Response
from bespeak.testing.mock.mock_server import MockServer
from bespeak.testing.mock.tapes import load_tapes
from bespeak.transports.interfaces import SessionPeer

TAPES = Path(__file__).parents[3] / "interop" / "tapes"
LEGACY = "2025-11-25"
Json = dict[str, Any]
HELLO: Json = {
    "protocolVersion": LEGACY,
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "c", "version": "1"},
}
CALL: Json = {"name": "forecast", "arguments": {"loc": "SFO"}}


class Wire:
    """What is sent to the client."""

    has_reader = True

    def __init__(self, *, broken: bool = False) -> None:
        self._broken = broken
        self.pushed: asyncio.Queue[Json] = asyncio.Queue()

    def notify(self, message: bytes) -> None:
        """Notifications are tried elsewhere."""

    def push(self, message: bytes) -> None:
        if self._broken:
            raise ConnectionError("there is no stream")
        self.pushed.put_nowait(json.loads(message))

    def pause(self) -> None:
        """It cannot be resumed."""

    def when_gone(self, callback: Callable[[], object]) -> None:
        """It never goes by itself."""


def peer(*, modern_only: bool = False) -> SessionPeer:
    return MockServer(load_tapes([TAPES / "weather-2026-07-28.json"] if modern_only else [TAPES])).peer()


async def said(one: SessionPeer, method: str, params: Json | None = None, wire: Wire | None = None) -> Json:
    return json.loads((await one.answer(LegacyRequest(1, method, params or {}), wire or Wire())).message)


@pytest.mark.parametrize("wanted", [LEGACY, "2025-06-18", "2099-01-01"])
async def test_the_handshake_agrees_on_a_recorded_revision(wanted: str) -> None:
    one = peer()
    agreed = (await said(one, "initialize", {**HELLO, "protocolVersion": wanted}))["result"]
    assert agreed["protocolVersion"] == one.version == LEGACY
    assert agreed["capabilities"] == {"tools": {}}
    assert agreed["serverInfo"]["name"] == "bespeak-mock"


@pytest.mark.parametrize("hello", [{}, {"protocolVersion": 1, "capabilities": {}}, {**HELLO, "capabilities": None}])
async def test_a_handshake_that_says_too_little_is_refused(hello: Json) -> None:
    error = (await said(peer(), "initialize", hello))["error"]
    assert error["message"] == "initialize needs protocolVersion, a string, and capabilities, an object"


async def test_there_is_no_handshake_where_nothing_was_recorded_with_one() -> None:
    error = (await said(peer(modern_only=True), "initialize", HELLO))["error"]
    assert error["code"] == -32022
    assert error["message"] == "nothing was recorded at a revision that has a handshake"
    assert error["data"] == {"supported": ["2026-07-28"], "requested": LEGACY}


async def test_a_ping_is_answered_at_any_time_and_nothing_else_before_the_handshake() -> None:
    one = peer()
    assert (await said(one, "ping"))["result"] == {}
    error = (await said(one, "tools/list"))["error"]
    assert error["message"] == "tools/list was sent before initialize; send initialize first"


async def test_a_log_level_is_taken() -> None:
    one = peer()
    await said(one, "initialize", HELLO)
    assert (await said(one, "logging/setLevel", {"level": "error"}))["result"] == {}
    assert one.facts().log_level == "error"
    error = (await said(one, "logging/setLevel", {"level": "loud"}))["error"]
    assert error["message"].startswith("level must be one of debug, info")


async def test_a_question_that_cannot_be_sent_ends_the_call() -> None:
    one = peer()
    await said(one, "initialize", HELLO)
    error = (await said(one, "tools/call", CALL, Wire(broken=True)))["error"]
    assert error["message"] == "the recorded question could not be sent: there is no stream"


async def asked() -> tuple[SessionPeer, "asyncio.Task[Json]", Json]:
    """A call whose first question is open."""
    one, wire = peer(), Wire()
    await said(one, "initialize", HELLO)
    calling = asyncio.create_task(said(one, "tools/call", CALL, wire))
    return one, calling, await wire.pushed.get()


async def test_a_client_that_goes_away_ends_its_call() -> None:
    one, calling, _ = await asked()
    one.close("the client has gone")
    one.close("the client has gone")
    assert (await calling)["error"]["message"] == "the recorded question could not be sent: the client has gone"


async def test_an_error_in_place_of_an_answer_diverges() -> None:
    one, calling, question = await asked()
    assert one.waits_for(Response(question["id"], None, None))
    one.heard(Notification("notifications/cancelled", {}))
    one.heard(Response("another", {}, None))
    one.heard(Response(question["id"], None, {"code": -32603, "message": "no terminal"}))
    one.heard(Response(question["id"], {}, None))
    message = (await calling)["error"]["message"]
    assert message.startswith("diverged: the client answered the question 'city~")
    assert message.endswith("with an error")


async def test_nothing_of_a_recording_changes() -> None:
    one = peer()
    await said(one, "initialize", HELLO)
    await one.stand(lambda _: None)
    await one.listen()
    facts = one.facts()
    one.restore(facts)
    assert one.applied(LegacyRequest(1, "resources/subscribe", {"uri": "a:b"}), facts) == facts
