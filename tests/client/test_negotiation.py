"""What a client concludes from the first responses of a server (protocol section 27.2), over lines and over HTTP."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bespeak import Client, MCPError
from bespeak.client import InvalidServerResponse, negotiation
from bespeak.transports.http.asgi import Send
from tests.answering import text
from tests.client.negotiating import NOVEMBER, UNTYPED, WHY
from tests.client.older_server import OldServer, plain
from tests.client.scripted_transport import DISCOVERED
from tests.transports.http.old_http import Got, OldHttp, answers, refuses
from tests.wires import Listening

Reply = dict[str, Any]
"""A result, or an error if it has a code."""


OLD: dict[str, Any] = {
    "protocolVersion": NOVEMBER,
    "capabilities": {},
    "serverInfo": {"name": "old", "version": "1"},
}


def speaking(*versions: str) -> Reply:
    return {**DISCOVERED, "supportedVersions": list(versions)}


def unsupported(*versions: Any) -> Reply:
    return {"code": -32022, "message": "no such version", "data": {"supported": list(versions), "requested": "x"}}


class Script:
    """What a server answers to `server/discover`, one after another, and to `initialize`; what it was asked."""

    def __init__(self, *discover: Reply, initialize: Reply | None = None) -> None:
        self._discover = list(discover)
        self._initialize = initialize or OLD
        self.heard: list[dict[str, Any]] = []

    def __call__(self, message: dict[str, Any]) -> Reply:
        self.heard.append(message)
        if message["method"] == "initialize":
            return self._initialize
        return self._discover.pop(0) if len(self._discover) > 1 else self._discover[0]

    @property
    def methods(self) -> list[str]:
        return [message["method"] for message in self.heard]

    @property
    def proposed(self) -> list[str]:
        """The revisions that handshakes began with."""
        return [one["params"]["protocolVersion"] for one in self.heard if one["method"] == "initialize"]


Wire = Callable[..., Any]


@asynccontextmanager
async def by_lines(script: Script, **options: Any) -> AsyncGenerator[Client]:
    async def answer(server: OldServer, message: dict[str, Any]) -> Reply:
        return script(message)

    async with Client(OldServer(server_discover=answer, initialize=answer), **options) as client:
        yield client


@asynccontextmanager
async def by_http(script: Script, **options: Any) -> AsyncGenerator[Client]:
    async def answer(got: Got, send: Send) -> None:
        reply = script(got.message)
        if "code" in reply:
            status = {-32601: 404, -32020: 400, -32021: 400, -32022: 400}.get(reply["code"], 200)
            await refuses(reply["code"], reply["message"], status, reply.get("data"))(got, send)
        else:
            await answers(reply)(got, send)

    app = OldHttp(discover=answer, initialize=[answer])
    async with Listening(app) as listening, Client(listening.url, **options) as client:
        yield client


@pytest.fixture(params=[by_lines, by_http])
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
async def test_a_modern_server_needs_no_handshake(wire: Wire, mode: str) -> None:
    script = Script(DISCOVERED)
    async with wire(script, mode=mode) as client:
        assert client.protocol_version == "2026-07-28"
    assert script.methods == ["server/discover"]


@pytest.mark.parametrize("mode", ["auto", "2026-07-28"])
async def test_a_malformed_response_of_a_modern_server_is_an_error(wire: Wire, mode: str) -> None:
    script = Script({"resultType": "complete", "supportedVersions": 5})
    told = r"the server's DiscoverResult is malformed: see .*supportedVersions"
    with pytest.raises(InvalidServerResponse, match=told):
        async with wire(script, mode=mode):
            pass
    assert script.methods == ["server/discover"]


@pytest.mark.parametrize("reply", [speaking, unsupported])
@pytest.mark.parametrize(
    ("versions", "proposed"),
    [
        (["2024-11-05", "2025-06-18", "2025-03-26"], "2025-06-18"),
        (["2031-01-01", "2025-03-26"], "2025-03-26"),
    ],
)
async def test_a_server_that_lists_only_older_revisions_gets_a_handshake_with_the_newest_of_them(
    wire: Wire, reply: Callable[..., Reply], versions: list[str], proposed: str
) -> None:
    script = Script(reply(*versions), initialize={**OLD, "protocolVersion": proposed})
    async with wire(script) as client:
        assert client.protocol_version == proposed
    assert script.methods == ["server/discover", "initialize"]
    assert script.proposed == [proposed]


SILENT = "the server does not say which versions it supports"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (speaking("2031-01-01"), "the server supports 2031-01-01"),
        (unsupported("2031-01-01", "2032-01-01"), "the server supports 2031-01-01, 2032-01-01"),
        (speaking(), SILENT),
    ],
)
async def test_a_server_with_no_revision_in_common_is_not_asked_for_a_handshake(
    wire: Wire, reply: Reply, said: str
) -> None:
    script = Script(reply)
    with pytest.raises(ConnectionError, match=f"{said}; this client supports 2026-07-28, 2025-11-25, "):
        async with wire(script):
            pass
    assert script.methods == ["server/discover"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, SILENT),
        ({"supported": "2025-11-25"}, SILENT),
        ({"supported": [5, None]}, "the server supports 5, None"),
        ([1], SILENT),
    ],
)
async def test_a_refused_version_with_nothing_to_choose_from_is_an_error(wire: Wire, data: Any, said: str) -> None:
    script = Script({"code": -32022, "message": "no such version", "data": data})
    with pytest.raises(ConnectionError, match=f"{said}; this client supports 2026-07-28") as caught:
        async with wire(script):
            pass
    assert isinstance(caught.value.__cause__, MCPError)
    assert script.methods == ["server/discover"]


async def test_a_refused_version_is_asked_again_with_one_that_both_support(wire: Wire) -> None:
    script = Script(unsupported(NOVEMBER, "2026-07-28"), DISCOVERED)
    async with wire(script) as client:
        assert client.protocol_version == "2026-07-28"
    assert script.methods == ["server/discover", "server/discover"]
    ids = [message["id"] for message in script.heard]
    assert ids[0] != ids[1]


async def test_a_server_that_refuses_the_very_version_it_lists_is_not_asked_for_ever(wire: Wire) -> None:
    script = Script(unsupported("2026-07-28"))
    with pytest.raises(MCPError, match="no such version"):
        async with wire(script):
            pass
    assert script.methods == ["server/discover", "server/discover"]


@pytest.mark.parametrize("code", [-32020, -32021])
async def test_a_modern_error_is_raised_and_makes_no_handshake(wire: Wire, code: int) -> None:
    script = Script({"code": code, "message": "not so"})
    with pytest.raises(MCPError, match="not so") as caught:
        async with wire(script):
            pass
    assert caught.value.code == code
    assert script.methods == ["server/discover"]


@pytest.mark.parametrize("code", [-32700, -32601, -32603, -32001, 0, 400])
async def test_any_other_error_means_a_handshake(wire: Wire, code: int) -> None:
    script = Script({"code": code, "message": "what?"})
    async with wire(script) as client:
        assert client.protocol_version == NOVEMBER
    assert script.methods == ["server/discover", "initialize"]
    assert script.proposed == [NOVEMBER]


@pytest.mark.parametrize("reply", [UNTYPED, {}, {"tools": []}])
async def test_a_result_without_a_type_is_doubtful_and_a_handshake_settles_it(wire: Wire, reply: Reply) -> None:
    script = Script(reply)
    async with wire(script) as client:
        assert client.protocol_version == NOVEMBER
    assert script.methods == ["server/discover", "initialize"]


async def test_a_doubtful_server_that_knows_no_handshake_is_modern_after_all(wire: Wire) -> None:
    script = Script(UNTYPED, initialize={"code": -32601, "message": "what?"})
    async with wire(script) as client:
        assert client.protocol_version == "2026-07-28"
        assert client.server_capabilities.tools is not None


# The handshake


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_a_server_may_choose_any_older_revision(wire: Wire, version: str) -> None:
    script = Script({"code": -32601, "message": "what?"}, initialize={**OLD, "protocolVersion": version})
    async with wire(script) as client:
        assert client.protocol_version == version


@pytest.mark.parametrize("version", ["2031-01-01", "2026-07-28", ""])
async def test_a_server_that_chooses_a_revision_that_is_not_of_the_legacy_era_is_left(wire: Wire, version: str) -> None:
    script = Script({"code": -32601, "message": "what?"}, initialize={**OLD, "protocolVersion": version})
    expected = f"the server chose the protocol version '{version}', but this client supports 2024-11-05, .*2025-11-25"
    with pytest.raises(ConnectionError, match=expected) as caught:
        async with wire(script):
            pass
    assert caught.value.__notes__ == [WHY + "what? (-32601)"]


async def test_a_refused_handshake_says_why_it_was_tried(wire: Wire) -> None:
    script = Script({"code": -32601, "message": "what?"}, initialize={"code": -32602, "message": "go away"})
    with pytest.raises(MCPError, match="go away") as caught:
        async with wire(script):
            pass
    assert caught.value.__notes__ == [WHY + "what? (-32601)"]


async def test_a_malformed_answer_to_a_handshake_is_an_error(wire: Wire) -> None:
    script = Script({"code": -32601, "message": "what?"}, initialize={"protocolVersion": NOVEMBER})
    with pytest.raises(InvalidServerResponse, match=r"the server's InitializeResult is malformed: see .*capabilities"):
        async with wire(script):
            pass


# What the user wants


async def test_legacy_makes_the_handshake_at_once(wire: Wire) -> None:
    script = Script(DISCOVERED, initialize={**OLD, "protocolVersion": "2025-03-26"})
    async with wire(script, mode="legacy") as client:
        assert client.protocol_version == "2025-03-26"
    assert (script.methods, script.proposed) == (["initialize"], [NOVEMBER])


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_a_pinned_older_revision_is_proposed_at_once(wire: Wire, version: str) -> None:
    script = Script(DISCOVERED, initialize={**OLD, "protocolVersion": version})
    async with wire(script, mode=version) as client:
        assert client.protocol_version == version
    assert (script.methods, script.proposed) == (["initialize"], [version])


@pytest.mark.parametrize(
    ("reply", "error", "told"),
    [
        (
            {**OLD, "protocolVersion": "2025-03-26"},
            ConnectionError,
            "the server chose the protocol version '2025-03-26', but this client supports 2025-06-18",
        ),
        ({"code": -32602, "message": "Unsupported protocol version"}, MCPError, "Unsupported protocol version"),
    ],
)
async def test_a_pinned_older_revision_that_is_refused_is_no_reason_to_try_another(
    wire: Wire, reply: Reply, error: type[Exception], told: str
) -> None:
    script = Script(DISCOVERED, initialize=reply)
    with pytest.raises(error, match=told):
        async with wire(script, mode="2025-06-18"):
            pass
    assert script.methods == ["initialize"]


@pytest.mark.parametrize("reply", [unsupported(NOVEMBER), {"code": -32601, "message": "what?"}])
async def test_a_pinned_modern_revision_that_is_refused_makes_no_handshake(wire: Wire, reply: Reply) -> None:
    script = Script(reply)
    with pytest.raises(MCPError):
        async with wire(script, mode="2026-07-28"):
            pass
    assert script.methods == ["server/discover"]


# No response, over lines


class Mute(OldServer):
    """Never responds to a discovery."""

    asked = 0

    def __init__(self) -> None:
        async def silent(server: OldServer, message: dict[str, Any]) -> None:
            self.asked = message["id"]

        super().__init__(server_discover=silent, tool=plain)


@pytest.mark.timing
async def test_a_server_that_does_not_answer_in_time_gets_a_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "PROBE_SECONDS", 0.03)
    server = Mute()
    async with Client(server) as client:
        assert client.protocol_version == NOVEMBER
    assert [one["method"] for one in server.heard if "id" in one] == ["server/discover", "initialize"]


@pytest.mark.timing
async def test_the_client_s_own_time_limit_does_not_keep_it_from_an_older_server() -> None:
    async with Client(Mute(), read_timeout_seconds=0.05) as client:
        assert client.protocol_version == NOVEMBER


@pytest.mark.timing
async def test_an_answer_to_the_discovery_that_comes_late_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "PROBE_SECONDS", 0.03)
    server = Mute()
    async with Client(server) as client:
        server.send({"id": server.asked, "result": DISCOVERED})
        assert text(await client.call_tool("tool")) == "done"
        assert client.protocol_version == NOVEMBER
    assert "_meta" not in server.told("tools/call")[0]["params"]


@pytest.mark.timing
async def test_a_handshake_that_fails_after_a_silence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "PROBE_SECONDS", 0.03)
    server = Mute()
    server.version = "2031-01-01"
    with pytest.raises(ConnectionError) as caught:
        async with Client(server):
            pass
    assert caught.value.__notes__ == [WHY + "no answer within 0.03 s"]
