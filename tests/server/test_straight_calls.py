"""Calls that need nothing but their arguments take a shorter way, with the same response as on the general one."""

import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak import MCPServer
from bespeak.protocol.headers import Headers
from bespeak.server import RequestEnd, RequestInfo, call_log, straight_calls
from bespeak.server.straight_calls import StraightCalls
from bespeak.transports.interfaces import StraightCall
from tests.server.straight_shop import Sent, length, never, post, shop


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test may have loaded OpenTelemetry, and then every call is followed."""
    monkeypatch.setattr(straight_calls, "is_tracing", lambda: False)


META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


def request(name: str = "echo", **more: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": {"text": "hello"}, "_meta": META, **more}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def headers_for(name: str = "echo", *more: tuple[bytes, bytes], without: bytes = b"") -> list[tuple[bytes, bytes]]:
    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", name.encode()),
    ]
    return [*(one for one in headers if one[0] != without), *more]


async def both_ways(
    mcp: MCPServer[Any], message: Any, headers: list[tuple[bytes, bytes]], **options: Any
) -> tuple[Sent, bool]:
    """Return the response, which is the same on both ways, and whether the shorter way was taken."""
    taken: list[bool] = []
    begin = StraightCalls.begin

    def noted(self: StraightCalls, message: Any, headers: Headers) -> StraightCall | None:
        call = begin(self, message, headers)
        taken.append(call is not None)
        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StraightCalls, "begin", noted)
        first = await post(mcp.streamable_http_app(**options), message, headers)
        patch.setattr(StraightCalls, "begin", never)
        second = await post(mcp.streamable_http_app(**options), message, headers)
    assert without_state(first) == without_state(second)
    return first, any(taken)


def without_state(sent: Sent) -> Any:
    status, headers, body = sent
    parsed = json.loads(body or b"{}")
    if parsed.get("result", {}).pop("requestState", None) is not None:  # it is different each time
        return status, parsed
    return status, headers, body


STRAIGHT = [
    *("echo", "waits", "in_a_thread", "counted", "optional", "crashes", "refuses", "breaks_off", "unsendable"),
    *("unsendable_text", "unsendable_sum"),
    *("approved", "approved_twice"),
]
GENERAL = ["rounds", "identified", "repeated", "Bücher", "=?base64?eA==?="]


@pytest.mark.parametrize("name", STRAIGHT)
async def test_a_call_that_needs_nothing_but_its_arguments_goes_the_shorter_way(name: str) -> None:
    sent, straight = await both_ways(shop(), request(name), headers_for(name))
    assert straight
    assert sent[0] == 200
    assert json.loads(sent[2])["id"] == 7


@pytest.mark.parametrize("name", GENERAL)
async def test_a_call_that_needs_more_goes_the_general_way(name: str) -> None:
    _, straight = await both_ways(shop(), request(name), headers_for(name))
    assert not straight


async def test_a_plain_tool_that_turns_out_to_ask_by_hand_asks() -> None:
    sent, straight = await both_ways(shop(), request("asks"), headers_for("asks"))
    assert straight
    assert json.loads(sent[2])["result"]["resultType"] == "input_required"


Way = Callable[..., StraightCall | None]


async def conversation(name: str, ways: Iterable[Way], answers: list[dict[str, Any]]) -> list[Any]:
    """Return the responses to all rounds of a call. Each round goes its own way."""
    mcp, more, responses = shop(), dict[str, Any](), list[Any]()
    remaining = iter(answers)
    for way in ways:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StraightCalls, "begin", way)
            sent = await post(mcp.streamable_http_app(), request(name, **more), headers_for(name))
        responses.append(without_state(sent))
        result = json.loads(sent[2])["result"]
        if result.get("resultType") == "input_required":
            answer = next(remaining)
            more = {
                "requestState": result["requestState"],
                "inputResponses": dict.fromkeys(result["inputRequests"], answer),
            }
    return responses


YES, NO, BAD = ({"action": "accept", "content": {"value": True}}, {"action": "decline"}, {"action": "accept"})
SHORT, LONG = StraightCalls.begin, never


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("approved", [YES]),
        ("approved", [NO]),
        ("approved", [BAD]),
        ("approved_twice", [YES, YES]),
        ("approved_twice", [YES, NO]),
    ],
)
async def test_every_round_of_a_call_has_the_same_response_on_both_ways(name: str, answers: list[Any]) -> None:
    rounds = len(answers) + 2  # the last request is sent twice
    expected = await conversation(name, [LONG] * rounds, answers)
    assert await conversation(name, [SHORT] * rounds, answers) == expected
    assert await conversation(name, [SHORT if one % 2 else LONG for one in range(rounds)], answers) == expected


async def test_a_round_with_a_state_that_is_not_valid_is_refused_on_the_shorter_way() -> None:
    more: dict[str, Any] = {"requestState": "b1.x.y", "inputResponses": {}}
    sent, straight = await both_ways(shop(), request("approved", **more), headers_for("approved"))
    assert straight
    assert json.loads(sent[2])["error"]["code"] == -32602


async def test_a_client_that_cannot_be_asked_gets_the_same_error_on_the_shorter_way() -> None:
    meta: dict[str, Any] = {**META, "io.modelcontextprotocol/clientCapabilities": {}}
    sent, straight = await both_ways(shop(), request("approved", _meta=meta), headers_for("approved"))
    assert straight
    assert sent[0] == 400
    assert json.loads(sent[2])["error"]["code"] == -32021


META_WITH: dict[str, dict[str, Any]] = {
    "a log level": {"io.modelcontextprotocol/logLevel": "info"},
    "an unknown log level": {"io.modelcontextprotocol/logLevel": "loud"},
    "a progress token": {"progressToken": "p"},
    "a bad progress token": {"progressToken": 1.5},
    "another version": {"io.modelcontextprotocol/protocolVersion": "2027-01-01"},
    "an older version": {"io.modelcontextprotocol/protocolVersion": "2025-11-25"},
    "no object as capabilities": {"io.modelcontextprotocol/clientCapabilities": []},
    "a capability that is null": {"io.modelcontextprotocol/clientCapabilities": {"roots": None}},
    "a capability that is text": {"io.modelcontextprotocol/clientCapabilities": {"roots": "yes"}},
    "a client's name": {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}},
}


@pytest.mark.parametrize("more", META_WITH.values(), ids=META_WITH)
async def test_metadata_of_any_kind_gets_the_same_response(more: dict[str, Any]) -> None:
    await both_ways(shop(), request(_meta={**META, **more}), headers_for())


REQUESTS: dict[str, Any] = {
    "no object": [],
    "no JSON": b"{",
    "another method": {**request(), "method": "tools/list"},
    "no method": {"jsonrpc": "2.0", "id": 1, "params": {}},
    "another JSON-RPC": {**request(), "jsonrpc": "1.0"},
    "a notification": {"jsonrpc": "2.0", "method": "tools/call", "params": request()["params"]},
    "an id that is null": {**request(), "id": None},
    "an id that is true": {**request(), "id": True},
    "an id that is text": {**request(), "id": "seven"},
    "params that are a list": {**request(), "params": []},
    "no metadata": {**request(), "params": {"name": "echo", "arguments": {}}},
    "a name that is a number": request(7),  # pyright: ignore[reportArgumentType]  # what a client may send
    "a tool that there is not": request("nothing"),
    "no arguments": {**request(), "params": {"name": "optional", "_meta": META}},
    "arguments that are null": request("optional", arguments=None),
    "arguments that are a list": request(arguments=[]),
    "arguments that are missing": request(arguments={}),
    "arguments of another type": request(arguments={"text": 7}),
    "arguments that are not known": request(arguments={"text": "hello", "more": 1, "n": 99}),
    "a value for a marked parameter": request("counted", arguments={"text": "hello", "n": 99}),
    "a state": request(requestState="x"),
    "answers": request(inputResponses={}),
    "answers that are a list": request(inputResponses=[]),
}


@pytest.mark.parametrize("message", REQUESTS.values(), ids=REQUESTS)
async def test_requests_of_any_kind_get_the_same_response(message: Any) -> None:
    await both_ways(shop(), message, headers_for("echo"))
    with contextlib.suppress(TypeError, AttributeError):  # no object, or params that are none
        await both_ways(shop(), message, headers_for(str(message["params"].get("name"))))


HEADERS = {
    "another name": headers_for("counted"),
    "no name": headers_for(without=b"mcp-name"),
    "no method": headers_for(without=b"mcp-method"),
    "no version": headers_for(without=b"mcp-protocol-version"),
    "the name twice": headers_for("echo", (b"mcp-name", b"echo")),
    "another header twice": headers_for("echo", (b"x-a", b"1"), (b"x-a", b"2")),
    "an encoded name": headers_for("=?base64?ZWNobw==?="),
    "a name with spaces around": headers_for(" echo "),
    "another origin": headers_for("echo", (b"origin", b"https://evil.example")),
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
async def test_headers_of_any_kind_get_the_same_response(headers: list[tuple[bytes, bytes]]) -> None:
    await both_ways(shop(), request(), headers)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["echo", "counted", "tools/call", "2.0", "2026-07-28"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "name", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
PLACES = [
    *((key,) for key in ("jsonrpc", "id", "method", "params")),
    *(("params", key) for key in ("name", "arguments", "_meta", "requestState", "inputResponses")),
    *(("params", "_meta", key) for key in (*META, "progressToken", "io.modelcontextprotocol/logLevel")),
    ("params", "arguments", "text"),
]


@given(place=st.sampled_from(PLACES), value=JSON, name=st.sampled_from(["echo", "counted", "optional", "approved"]))
async def test_any_change_of_a_request_gets_the_same_response(place: tuple[str, ...], value: Any, name: str) -> None:
    message = json.loads(json.dumps(request(name)))
    inner = message
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    await both_ways(shop(), message, headers_for(name))


# What follows every call


async def test_hooks_see_every_request_and_every_call() -> None:
    mcp, seen = shop(), list[str]()

    @mcp.on_request
    async def noted(info: RequestInfo, proceed: Callable[[], Awaitable[RequestEnd]]) -> RequestEnd:
        seen.append(info.method)
        return await proceed()

    _, straight = await both_ways(mcp, request(), headers_for())
    assert not straight
    assert seen == ["tools/call", "tools/call"]


async def test_bounded_calls_are_counted() -> None:
    mcp = MCPServer[Any]("shop", max_concurrent_calls=1)

    @mcp.tool()
    async def echo(text: str) -> str:
        return text

    _, straight = await both_ways(mcp, request(), headers_for())
    assert not straight


async def test_a_program_that_uses_opentelemetry_gets_its_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(straight_calls, "is_tracing", lambda: True)
    _, straight = await both_ways(shop(), request(), headers_for())
    assert not straight


async def test_an_override_is_honoured() -> None:
    mcp = shop()
    with mcp.override(length, value=50):
        sent, _ = await both_ways(mcp, request("counted"), headers_for("counted"))
    assert json.loads(sent[2])["result"]["structuredContent"]["n"] == 100
    sent, _ = await both_ways(mcp, request("counted"), headers_for("counted"))
    assert json.loads(sent[2])["result"]["structuredContent"]["n"] == 10


async def test_a_tool_that_was_removed_is_unknown() -> None:
    mcp = shop()
    await both_ways(mcp, request(), headers_for())
    mcp.remove_tool("echo")
    sent, straight = await both_ways(mcp, request(), headers_for())
    assert not straight
    assert json.loads(sent[2])["error"]["code"] == -32602


async def test_included_tools_go_the_shorter_way_under_their_names() -> None:
    outer = MCPServer[Any]("mall")
    outer.include(shop(), prefix="shop")
    name = next(tool.name for tool in await outer.list_tools() if tool.name.endswith("echo"))
    _, straight = await both_ways(outer, request(name), headers_for(name))
    assert straight


async def test_a_response_may_have_to_be_json() -> None:
    _, straight = await both_ways(shop(), request("waits"), headers_for("waits"), json_response=True)
    assert straight


@pytest.mark.parametrize("name", ["crashes", "refuses", "breaks_off"])
async def test_failed_calls_are_logged_as_on_the_general_way(caplog: pytest.LogCaptureFixture, name: str) -> None:
    caplog.set_level(logging.INFO, "bespeak.calls")
    await both_ways(shop(), request(name), headers_for(name))
    lines = [record.getMessage().partition(",")[0] for record in caplog.records if record.name == "bespeak.calls"]
    assert lines == [name, name]


async def test_slow_calls_are_logged_as_on_the_general_way(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (straight_calls, call_log):
        monkeypatch.setattr(module, "SLOW_SECONDS", -1.0)
    mcp = shop()
    caplog.set_level(logging.INFO, "bespeak.calls")
    await both_ways(mcp, request(), headers_for())
    lines = [record.getMessage().rpartition(", ")[0] for record in caplog.records if record.name == "bespeak.calls"]
    assert lines == ["echo, round 1: done"] * 2


async def test_with_a_log_of_everything_each_call_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "bespeak.calls")
    _, straight = await both_ways(shop(), request(), headers_for())
    assert not straight
    assert [record.getMessage().partition(":")[0] for record in caplog.records if record.name == "bespeak.calls"] == [
        "echo, round 1",
        "echo, round 1",
    ]
