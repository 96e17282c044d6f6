"""One request at a time: fresh ids, full metadata, reading responses, questions by hand, timeouts and cancellation."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    CallToolResult,
    ElicitResult,
    Implementation,
    InputRequiredResult,
)

from bespeak import Client, MCPError, MCPServer
from bespeak.client import InvalidServerResponse
from bespeak.transports.interfaces import Ask, Outgoing
from tests.conftest import Connect
from tests.waiting import eventually

pytestmark = pytest.mark.every_revision

COMPLETE: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
DISCOVERED: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}
FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Sure?",
        "requestedSchema": {
            "type": "object",
            "properties": {"sure": {"type": "boolean"}},
            "required": ["sure"],
        },
    },
}


def asking(questions: dict[str, Any] | None = None, state: str | None = None) -> dict[str, Any]:
    """An `input_required` result."""
    result: dict[str, Any] = {"resultType": "input_required"}
    if questions is not None:
        result["inputRequests"] = questions
    if state is not None:
        result["requestState"] = state
    return result


class Fake:
    """A transport that answers from a script, the last reply again and again.

    A reply is a result, raw bytes, or a function of the request (and of the `notify` it may use) that gives one.
    """

    sends_headers = False

    def __init__(self, *replies: Any, discovered: Any = DISCOVERED) -> None:
        self._replies = list(replies)
        self._discovered = discovered
        self.requests: list[dict[str, Any]] = []
        """All but `server/discover`."""
        self.said: list[dict[str, Any]] = []
        """What wants no response."""
        self.entered = 0

    async def __aenter__(self) -> "Fake":
        self.entered += 1
        return self

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.entered -= 1

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        message = json.loads(request.message)
        if request.method == "server/discover":
            reply = self._discovered
        else:
            self.requests.append(message)
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if callable(reply):
            reply = reply(message, notify)
            if inspect.isawaitable(reply):
                reply = await reply
        if isinstance(reply, bytes):
            return reply
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": reply}).encode()

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        self.said.append(json.loads(message))

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        """Nothing comes but with a request."""

    @property
    def params(self) -> list[dict[str, Any]]:
        return [request["params"] for request in self.requests]


# What is sent


async def test_every_request_has_a_fresh_id_and_the_full_metadata() -> None:
    fake = Fake(COMPLETE)
    info = Implementation(name="tester", version="9")
    async with Client(fake, client_info=info, log_level="warning") as client:
        await client.call_tool("tool", {"a": 1}, meta={"com.example/x": 1})
        await client.call_tool("tool")
    first, second = fake.requests
    assert first["id"] != second["id"]
    assert first["jsonrpc"] == "2.0"
    assert first["method"] == "tools/call"
    assert first["params"]["name"] == "tool"
    assert first["params"]["arguments"] == {"a": 1}
    standing = {
        PROTOCOL_VERSION_META_KEY: "2026-07-28",
        CLIENT_CAPABILITIES_META_KEY: {},
        CLIENT_INFO_META_KEY: {"name": "tester", "version": "9"},
        LOG_LEVEL_META_KEY: "warning",
    }
    assert first["params"]["_meta"] == {**standing, "com.example/x": 1}
    assert second["params"]["_meta"] == standing


async def test_a_caller_s_metadata_cannot_displace_the_protocol_s() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.call_tool("tool", meta={PROTOCOL_VERSION_META_KEY: "1999-01-01", CLIENT_CAPABILITIES_META_KEY: 5})
    assert fake.params[0]["_meta"][PROTOCOL_VERSION_META_KEY] == "2026-07-28"
    assert fake.params[0]["_meta"][CLIENT_CAPABILITIES_META_KEY] == {}


@pytest.mark.parametrize("value", [object(), "\ud800", b"\xff", float("nan"), float("inf"), {1, object()}])
async def test_arguments_that_are_not_json_are_a_type_error_and_nothing_is_sent(value: Any) -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        with pytest.raises(TypeError, match="the arguments of tools/call are not JSON"):
            await client.call_tool("tool", {"value": value})
    assert fake.requests == []


async def test_arguments_that_contain_themselves_are_a_type_error() -> None:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    async with Client(Fake(COMPLETE)) as client:
        with pytest.raises(TypeError, match="not JSON"):
            await client.call_tool("tool", circle)


# What comes back


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "is no object"),
        (b"null", "is no object"),
        (b"{}", "instead of 2"),
        (b'{"jsonrpc": "2.0", "id": 99, "result": {}}', "answered request 99 instead of 2"),
        (b'{"jsonrpc": "2.0", "id": "2", "result": {}}', "answered request '2' instead of 2"),
        (b'{"jsonrpc": "2.0", "id": null, "result": {}}', "instead of 2"),
        (b'{"jsonrpc": "2.0", "id": 2}', "has no result"),
        (b'{"jsonrpc": "2.0", "id": 2, "result": null}', "has no result"),
        (b'{"jsonrpc": "2.0", "id": 2, "result": []}', "has no result"),
        (b'{"jsonrpc": "2.0", "id": 2, "error": "no"}', "has no result"),
    ],
)
async def test_a_response_the_protocol_does_not_allow_is_an_error_of_its_own(raw: bytes, told: str) -> None:
    async with Client(Fake(raw)) as client:
        with pytest.raises(InvalidServerResponse, match=told):
            await client.call_tool("tool")


async def test_an_error_in_reply_to_another_request_is_not_taken_for_this_one_s() -> None:
    raw = b'{"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "not yours"}}'
    async with Client(Fake(raw)) as client:
        with pytest.raises(InvalidServerResponse, match="answered request 99 instead of 2"):
            await client.call_tool("tool")


@pytest.mark.parametrize("id_", ["", ', "id": null', ', "id": 2'])
async def test_the_server_s_error_is_raised_as_it_is(id_: str) -> None:
    # an error may omit the id if the server could not read it; some peers send null
    raw = f'{{"jsonrpc": "2.0"{id_}, "error": {{"code": -32602, "message": "no", "data": {{"a": 1}}}}}}'.encode()
    async with Client(Fake(raw)) as client:
        with pytest.raises(MCPError, match=r"^no$") as caught:
            await client.call_tool("tool")
    assert (caught.value.code, caught.value.data) == (-32602, {"a": 1})


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "complete"},
        {"resultType": "complete", "content": "text"},
        {"resultType": "complete", "content": [{"type": "nonsense"}]},
        {"content": [], "isError": "perhaps"},
    ],
)
async def test_a_malformed_tool_result_is_an_error_that_says_where(result: dict[str, Any]) -> None:
    async with Client(Fake(result)) as client:
        with pytest.raises(InvalidServerResponse, match=r"the server's CallToolResult is malformed: see \w+"):
            await client.call_tool("tool")


async def test_a_malformed_list_is_an_error_that_says_where() -> None:
    async with Client(Fake({"resultType": "complete", "tools": [{"name": 1}]})) as client:
        with pytest.raises(InvalidServerResponse, match=r"ListToolsResult is malformed: see tools\.0"):
            await client.list_tools()


# By hand


async def test_a_session_hands_out_the_question_instead_of_answering_it() -> None:
    fake = Fake(asking({"q": FORM}, "s1"), COMPLETE)
    async with Client(fake) as client:
        asked = await client.session.call_tool("tool", {"a": 1}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        assert asked.request_state == "s1"
        answers = {"q": ElicitResult(action="accept", content={"sure": True})}
        done = await client.session.call_tool("tool", {"a": 1}, input_responses=answers, request_state="s1")
    assert isinstance(done, CallToolResult)
    assert fake.params[1]["inputResponses"] == {"q": {"action": "accept", "content": {"sure": True}}}
    assert fake.params[1]["requestState"] == "s1"


async def test_a_session_refuses_a_question_nobody_expects() -> None:
    async with Client(Fake(asking({"q": FORM}))) as client:
        with pytest.raises(RuntimeError, match="'tool' asks for input; pass allow_input_required=True"):
            await client.session.call_tool("tool")


async def test_raw_answers_and_an_empty_state_are_sent_as_they_are() -> None:
    fake = Fake(COMPLETE)
    async with Client(fake) as client:
        await client.session.call_tool("tool", input_responses={"q": {"raw": None}}, request_state="")
        await client.session.call_tool("tool")
    assert (fake.params[0]["inputResponses"], fake.params[0]["requestState"]) == ({"q": {"raw": None}}, "")
    assert not {"inputResponses", "requestState"} & fake.params[1].keys()


# Time


async def never(request: Any, notify: Any) -> Any:
    await asyncio.Event().wait()


async def test_a_server_that_does_not_answer_in_time_is_a_timeout() -> None:
    async with Client(Fake(never), read_timeout_seconds=5) as client:
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 0\.01 s"):
            await client.call_tool("tool", read_timeout_seconds=0.01)


async def test_the_client_s_own_timeout_holds_where_a_call_gives_none() -> None:
    async with Client(Fake(never), read_timeout_seconds=0.01) as client:
        with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
            await client.call_tool("tool")


async def test_a_timeout_of_the_transport_s_own_is_left_as_it_is() -> None:
    def fail(request: Any, notify: Any) -> Any:
        raise TimeoutError("connect timed out")

    async with Client(Fake(fail), read_timeout_seconds=5) as client:
        with pytest.raises(TimeoutError, match="connect timed out"):
            await client.call_tool("tool")


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_call_that_is_given_up_cancels_the_server_s_handler(connect: Connect, how: str) -> None:
    mcp = MCPServer("shop")
    ended: list[str] = []
    started = asyncio.Event()

    @mcp.tool()
    async def tool() -> None:
        started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async with connect(mcp) as client:
        call = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=0.05 if how == "timeout" else None))
        starting = asyncio.create_task(started.wait())
        await asyncio.wait({call, starting}, return_when=asyncio.FIRST_COMPLETED)
        while not started.is_set():  # on a busy machine the time may be up before the server has begun
            call = asyncio.create_task(client.call_tool("tool", read_timeout_seconds=1))
            await asyncio.wait({call, starting}, return_when=asyncio.FIRST_COMPLETED)
        if how == "cancel":
            call.cancel()
        await asyncio.wait({call})
        await eventually(lambda: ended)
        assert ended == ["cancelled"]
