"""The handshake with an older server (protocol sections 25.1 and 25.5): what it says, what follows, and when it is repeated."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp_types import Icon, Implementation, SamplingCapability, SamplingToolsCapability

from bespeak import Client
from bespeak.client import Lost
from bespeak.protocol.legacy import declared_at, info_at
from tests.answering import text
from tests.client.older_child import OlderChild
from tests.client.older_server import OldServer, Slow, asking_tool, plain, result_of
from tests.client.sample_questions import FORM, list_roots, say_yes, write
from tests.transports.http.old_http import OldHttp, answers, client_of, event, for_ever, refuses, says, streams
from tests.waiting import eventually

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


EVERYTHING: dict[str, Any] = {
    "elicitation_callback": say_yes,
    "sampling_callback": write,
    "sampling_capabilities": SamplingCapability(tools=SamplingToolsCapability()),
    "list_roots_callback": list_roots,
}


INFO = Implementation(
    name="desk",
    version="7",
    title="The desk",
    description="at the window",
    website_url="https://example.com",
    icons=[Icon(src="https://example.com/i.png")],
)


async def initialized(version: str, **options: Any) -> dict[str, Any]:
    """The params of the handshake of a client of one revision."""
    server = OldServer(version)
    async with Client(server, mode=version, **options):
        (message,) = server.told("initialize")
    return message["params"]


# What the handshake says


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_handshake_says_what_its_revision_knows_of_the_client(version: str) -> None:
    params = await initialized(version, client_info=INFO, log_level="info", **EVERYTHING)
    assert params.keys() == {"protocolVersion", "capabilities", "clientInfo"}
    assert params["protocolVersion"] == version
    info = INFO.model_dump(mode="json", by_alias=True, exclude_none=True)
    capabilities: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
    assert params["clientInfo"] == info_at(version, info)
    assert params["capabilities"] == declared_at(version, capabilities)
    assert (await initialized(version))["capabilities"] == {}


async def test_the_handshake_ends_with_a_notification_before_anything_else_is_asked() -> None:
    server = OldServer(tool=plain)
    async with Client(server) as client:
        await client.call_tool("tool")
    methods = [message["method"] for message in server.heard]
    assert methods == ["server/discover", "initialize", "notifications/initialized", "tools/call"]
    (ended,) = server.told("notifications/initialized")
    assert "id" not in ended


async def set_level(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
    return {}


async def hear(params: Any) -> None:
    """A logging callback."""


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"log_level": "warning"}, "warning"),
        ({"log_level": "error", "logging_callback": hear}, "error"),
        ({"logging_callback": hear}, "debug"),
    ],
)
async def test_a_level_of_logs_is_set_after_the_handshake(options: dict[str, Any], level: str) -> None:
    server = OldServer(logging_setLevel=set_level)
    server.capabilities = {"logging": {}}
    async with Client(server, **options):
        (message,) = server.told("logging/setLevel")
    assert message["params"] == {"level": level}
    assert server.heard.index(message) > server.heard.index(server.told("notifications/initialized")[0])


@pytest.mark.parametrize(("capabilities", "level"), [({}, "info"), ({"logging": {}}, None)])
async def test_no_level_is_set_without_logs_or_without_a_level(capabilities: dict[str, Any], level: Any) -> None:
    server = OldServer()
    server.capabilities = capabilities
    async with Client(server, log_level=level):
        assert server.told("logging/setLevel") == []


async def test_a_server_that_refuses_the_log_level_writes_no_lines_of_its_own_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
        return {"code": -32602, "message": "no\nCRITICAL all is lost\x1b[2J"}

    server = OldServer(logging_setLevel=refuse)
    server.capabilities["logging"] = {}
    async with Client(server, log_level="info"):
        pass
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "The server refused to set its log level: no\\nCRITICAL all is lost\\x1b[2J"
    ]


# What follows


async def introduce(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
    capabilities: dict[str, Any] = {
        "tools": {"listChanged": True},
        "logging": {},
        "experimental": {"x": {}},
        "later": {},
    }
    info = {"name": "shop", "version": "2", "title": "The shop", "later": 5}
    return {
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "serverInfo": info,
        "instructions": "ask nicely",
        "later": True,
    }


async def test_what_a_server_says_of_itself_is_known_after_the_handshake() -> None:
    async with Client(OldServer(initialize=introduce)) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.title) == ("shop", "The shop")
        assert client.instructions == "ask nicely"
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is True
        assert client.server_capabilities.prompts is None
        assert client.protocol_version == "2025-06-18"


async def list_tools(server: OldServer, message: dict[str, Any]) -> dict[str, Any]:
    mirrored = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
    return {"tools": [{"name": "plain", "inputSchema": {"type": "object"}}, {"name": "odd", "inputSchema": mirrored}]}


@pytest.mark.parametrize("wire", ["lines", "http"])
async def test_no_tool_is_left_out_for_a_header_that_its_revision_does_not_know(wire: str) -> None:
    listed = await list_tools(OldServer(), {})
    older = Client(OldServer(tools_list=list_tools)) if wire == "lines" else client_of(OldHttp(answers(listed)))
    async with older as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["plain", "odd"]


async def test_a_request_to_an_older_server_carries_no_metadata_but_what_was_asked_for() -> None:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        pass

    server = OldServer(tool=plain)
    async with Client(server, log_level="info", **EVERYTHING) as client:
        await client.call_tool("tool", {"a": 1})
        await client.call_tool("tool", meta={"mine": 1}, progress_callback=on_progress)
    first, second = server.told("tools/call")
    assert first["params"] == {"name": "tool", "arguments": {"a": 1}}
    assert second["params"]["_meta"] == {"mine": 1, "progressToken": second["id"]}


async def test_what_a_server_says_between_calls_is_handed_to_the_message_handler() -> None:
    got: list[Any] = []

    async def hear(message: dict[str, Any]) -> None:
        got.append(message["method"])

    server = OldServer()
    async with Client(server, message_handler=hear):
        server.note("tools/list_changed")
        await eventually(lambda: got)
    assert got == ["notifications/tools/list_changed"]


async def test_several_messages_on_one_line_are_taken_one_by_one() -> None:
    got: list[Any] = []

    async def hear(message: dict[str, Any]) -> None:
        got.append(message["method"])

    async def tool(server: OldServer, message: dict[str, Any]) -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/x"}
        ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
        done = {"jsonrpc": "2.0", "id": message["id"], "result": result_of("done")}
        server.write(json.dumps([note, 5, ping, done]))

    server = OldServer("2025-03-26", tool=tool)
    async with Client(server, message_handler=hear) as client:
        assert text(await client.call_tool("tool")) == "done"
        await eventually(lambda: server.replies)
    assert got == ["notifications/x"]
    assert server.replies == [{"jsonrpc": "2.0", "id": 9, "result": {}}]


# Child processes that die


AGAIN = ["initialize", "notifications/initialized"]


@pytest.fixture
def child(tmp_path: Path) -> OlderChild:
    return OlderChild(tmp_path)


@pytest.mark.timing
async def test_a_child_that_died_between_two_calls_gets_its_handshake_before_the_next(child: OlderChild) -> None:
    async with Client(child.parameters()) as client:
        with pytest.raises(
            Lost, match=r"exited with code 4 before the response arrived; whether .* was carried out is not known"
        ):
            await client.call_tool("die")
        assert text(await client.call_tool("life")) == "1"
        assert text(await client.call_tool("life")) == "1"
    assert child.heard[-5:] == ["start", *AGAIN, "tools/call", "tools/call"]


@pytest.mark.timing
async def test_calls_at_the_same_time_make_one_handshake_with_a_new_child(child: OlderChild) -> None:
    async with Client(child.parameters()) as client:
        with pytest.raises(Lost):
            await client.call_tool("die")
        results = await asyncio.gather(*(client.call_tool("life") for _ in range(5)))
    assert [text(one) for one in results] == ["1"] * 5
    assert (child.heard.count("start"), child.heard.count("initialize")) == (2, 2)


@pytest.mark.timing
async def test_a_child_that_died_of_a_request_that_only_reads_gets_it_again_after_its_handshake(
    child: OlderChild,
) -> None:
    async with Client(child.parameters()) as client:
        assert (await client.list_tools()).tools == []
    assert child.heard[-4:] == ["start", *AGAIN, "tools/list"]


@pytest.mark.timing
async def test_a_new_child_that_chooses_another_version_is_refused(child: OlderChild) -> None:
    async with Client(child.parameters("changes")) as client:
        with pytest.raises(Lost):
            await client.call_tool("die")
        with pytest.raises(
            ConnectionError, match="chose the protocol version '2025-03-26', but this client supports 2025-11-25"
        ):
            await client.call_tool("life")


# The end


async def test_a_client_that_is_closed_takes_its_open_questions_with_it() -> None:
    slow = Slow()
    async with Client(OldServer(tool=asking_tool(FORM)), elicitation_callback=slow) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: slow.asked)
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(calling, 5)
    assert slow.cancelled == 1


async def test_a_client_over_http_that_is_closed_takes_its_open_questions_with_it() -> None:
    slow = Slow()
    app = OldHttp(streams(event({"jsonrpc": "2.0", "id": "q", **FORM}), for_ever), gets=[streams(for_ever)])
    async with client_of(app, elicitation_callback=slow) as client:
        calling = asyncio.create_task(client.call_tool("tool"))
        await eventually(lambda: slow.asked)
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(calling, 5)
    assert slow.cancelled == 1
    assert app.methods[-1] == "DELETE"


async def test_a_question_of_a_session_that_is_gone_ends_with_the_client_too() -> None:
    slow = Slow()
    app = OldHttp(
        streams(event({"jsonrpc": "2.0", "id": "q", **FORM}), for_ever), says(404), answers(), gets=[streams(for_ever)]
    )
    async with client_of(app, elicitation_callback=slow) as client:
        calling = asyncio.create_task(client.call_tool("first"))
        await eventually(lambda: slow.asked)
        assert text(await client.call_tool("second")) == "done"
        assert len(app.at("initialize")) == 2
    await asyncio.wait({calling}, timeout=5)
    assert calling.done()
    assert calling.exception() is not None
    await eventually(lambda: slow.cancelled)


# What is repeated with a handshake


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_server_that_has_forgotten_the_client_is_asked_again_to_watch_its_resources(
    is_refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    again = refuses(-32602, "no such resource") if is_refused else answers({})
    app = OldHttp(answers({}), answers({}), answers({}), says(404), again, answers(), gets=[says(405)])
    async with client_of(app) as client:
        await client.subscribe_resource("a://b")
        await client.subscribe_resource("a://c")
        await client.unsubscribe_resource("a://c")
        assert text(await client.call_tool("tool")) == "done"
    assert [got.message["params"]["uri"] for got in app.at("resources/subscribe")] == ["a://b", "a://c", "a://b"]
    warned = "The server does not watch 'a://b' any longer: no such resource" in caplog.text
    assert warned == is_refused


async def test_a_log_level_that_was_set_later_is_set_again_with_the_next_handshake() -> None:
    app = OldHttp(answers({}), says(404), answers({}), answers(), gets=[says(405)], capabilities={"logging": {}})
    async with client_of(app) as client:
        await client.set_logging_level("error")
        await client.call_tool("tool")
    assert [got.message["params"]["level"] for got in app.at("logging/setLevel")] == ["error", "error"]
